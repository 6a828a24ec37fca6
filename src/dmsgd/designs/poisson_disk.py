"""Poisson disk sampling: batches whose items keep a distance, without a kernel or a spectrum.

Proposed for mini-batches by Zhang, Öztireli, Mandt, Salvi (AAAI 2019, arXiv 1804.02772). A dart
hits each item with the same probability, and the item is kept if it is at least a radius away from
all kept before. The default radius and its relaxation are choices of this package.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.designs.contract import Design, check_range
from dmsgd.designs.stratified import Uniform
from dmsgd.features import as_features
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.scalars import Seed, as_batch_size, as_count, as_positive, seed_key
from dmsgd.runtime.threads import thread_count
from dmsgd.samplers.parallel import draw_in_parallel

#: The default radius is the median of about this many distances to nearest neighbours.
NEIGHBOURS = 1000
#: Factor on the radius when no dart hits, and the share of the first radius that counts as zero.
SHRINK, LEAST = 0.9, 0.01


@final
class PoissonDisk(Design):
    """Batches of k items at pairwise distances of at least `radius`, less where k items do not fit.

    radius: Euclidean. Default: the median distance of an item to its nearest neighbour in uniform
            batches of k, so that k items block less than all of the data, in any dimension.
    misses: after this many misses in a row the radius is multiplied by 0.9 for the rest of this
            batch, repeatedly; below 1 % of the first radius it counts as 0, and any item not yet in
            the batch is taken. So every batch has k distinct items; `radii` shows the relaxed ones.

    O(k² d) per batch, independent of n; set-up O(1000 k d). Raises TypeError for sparse X, and
    ValueError if all items are equal and no radius is given. See also `cells`, `diversify`.

    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> design = PoissonDisk(X, k=10)
    >>> bool((design.radii(100, seed=0) == design.radius).all())  # no batch was relaxed
    True
    """

    def __init__(self, X: Any, k: int, radius: float | None = None, misses: int = 100) -> None:
        self.features = as_features(X).to_memory().copied()
        array = self.features.unwrap()
        if not isinstance(array, np.ndarray):
            raise TypeError("PoissonDisk needs dense rows; pass X.toarray(), or fewer features")
        self._rows: FloatArray = array
        self.n = self.features.n
        self.k = as_batch_size(k, self.n)
        given = None if radius is None else as_positive(radius, "radius")
        self.radius = neighbour_radius(array, self.k) if given is None else given
        self._named_radius = "neighbours" if given is None else given.hex()
        self.misses = as_count(misses, "misses")

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        return self._throw(key, start, size, workers)[0]

    def radii(
        self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1
    ) -> FloatArray:
        """Return the smallest radius used in each of batches start..start+size, shape (size,)."""
        size, start = check_range(size, start, self.k + 1)
        return self._throw(seed_key(seed), start, size, thread_count(workers))[1]

    def _throw(self, key: int, start: int, size: int, workers: int) -> tuple[IntArray, FloatArray]:
        from dmsgd.compiled.simple import draw_disks

        radii = np.empty(size)
        plan = (self._rows, self.radius, self.misses, SHRINK, LEAST * self.radius, np.uint64(key))

        def rows(first: int, out: IntArray) -> int:
            draw_disks(*plan, first, out, radii[first - start :][: len(out)])
            return len(out)

        return draw_in_parallel(rows, start, size, self.k, workers), radii

    def fingerprint(self) -> str:
        data = self.features.fingerprint()
        return digest("PoissonDisk", self.k, self._named_radius, self.misses, data)

    def provenance(self) -> dict[str, str]:
        return self._origin(data=self.features.fingerprint(), sampler="dart throwing")

    def __repr__(self) -> str:
        return f"PoissonDisk(n={self.n}, k={self.k}, radius={self.radius:.4g})"


def neighbour_radius(X: FloatArray, k: int) -> float:
    """Return the median distance to the nearest distinct neighbour in uniform batches of k > 1."""
    from scipy.spatial.distance import cdist

    if k == 1:
        return 0.0  # there are no neighbours
    nearest = []
    for batch in Uniform(X.shape[0], k).sample(-(-NEIGHBOURS // k), seed=0):
        distances = cdist(X[batch[:NEIGHBOURS]], X[batch])
        distances[distances == 0] = np.inf  # the item itself, and its duplicates
        nearest.append(distances.min(axis=1))
    found = np.concatenate(nearest)
    if not np.isfinite(found).any():
        raise ValueError("all items are equal, so there is no distance to keep; pass radius=")
    return float(np.median(found[np.isfinite(found)]))
