"""Designs without a kernel: `Uniform`, `Stratified`, and `clustered`, stratified over k-means."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.designs.design import ClosedForm
from dmsgd.features import as_features
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.scalars import Seed, as_batch_size, as_count, seed_key
from dmsgd.kernels.landmarks import k_means
from dmsgd.polynomials import log_binomial
from dmsgd.samplers.parallel import draw_in_parallel


@final
class Uniform(ClosedForm):
    """Every batch of k out of n items is equally likely: simple random sampling. O(k) per batch.

    >>> Uniform(4, 2).inclusion()
    array([0.5, 0.5, 0.5, 0.5])
    """

    def __init__(self, n: int, k: int) -> None:
        self.n = as_count(n, "n")
        self.k = as_batch_size(k, self.n)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        from dmsgd.compiled.simple import draw_uniform

        def rows(first: int, out: IntArray) -> int:
            return int(draw_uniform(self.n, np.uint64(key), np.uint64(first), out))

        return draw_in_parallel(rows, start, size, self.k, workers)

    def inclusion(self) -> FloatArray:
        """Return k/n for every item."""
        reserve(self.n, f"the probabilities of {self.n:,} items", f"each of them is {self.k}/n")
        return np.full(self.n, self.k / self.n)

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        return np.full(i.size, self.k * (self.k - 1) / (self.n * max(self.n - 1, 1)))

    def _log_prob(self, batches: IntArray) -> FloatArray:
        return np.full(batches.shape[0], -log_binomial(self.n, self.k))

    def _pair_moment(self, Y: FloatArray) -> float:
        """All pairs have the same joint probability. O(n p)."""
        total = Y.sum(axis=0)
        pairs = total @ total - np.einsum("ip,ip->", Y, Y)
        return float(self.k * (self.k - 1) / (self.n * max(self.n - 1, 1)) * pairs)

    def fingerprint(self) -> str:
        """Return the hash of n and k."""
        return digest("Uniform", self.n, self.k)

    def __repr__(self) -> str:
        return f"Uniform(n={self.n}, k={self.k})"


@final
class Stratified(ClosedForm):
    """Batches with equal counts per class (stratum), drawn at random within each.

    With k = sM for M classes each gives s items; otherwise each gives floor(k/M) and the rest come
    from classes chosen at random, one each. A class with fewer items than its share gives all it
    has, and the others share what is missing equally.

    labels: (n,) classes. Set-up O(n log n), O(k) per batch.

    >>> Stratified(["a", "a", "a", "b"], k=2).inclusion()
    array([0.33333333, 0.33333333, 0.33333333, 1.        ])
    """

    def __init__(self, labels: Any, k: int) -> None:
        #: The names of the strata, and for each item the number of its stratum.
        self.strata, self.stratum = as_classes(labels)
        self.n = int(self.stratum.size)
        self.k = as_batch_size(k, self.n)
        self._sizes = np.bincount(self.stratum)
        self._members = np.argsort(self.stratum, kind="stable")
        self._guaranteed, self._extra = _shares(self._sizes, self.k)

    @property
    def _not_exhausted(self) -> IntArray:
        """Strata with more items than their guaranteed count, which an extra item may come from."""
        return np.flatnonzero(self._guaranteed < self._sizes)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        from dmsgd.compiled.simple import draw_stratified

        starts = np.concatenate([[0], np.cumsum(self._sizes)])
        plan = (self._members, starts, self._guaranteed, self._extra)

        def rows(first: int, out: IntArray) -> int:
            return int(draw_stratified(*plan, np.uint64(key), np.uint64(first), out))

        return draw_in_parallel(rows, start, size, self.k, workers)

    @property
    def _extra_probability(self) -> FloatArray:
        """Probability that a stratum gives one more than its guaranteed count."""
        p = np.zeros(self._guaranteed.size)
        if self._extra:
            p[self._not_exhausted] = self._extra / self._not_exhausted.size
        return p

    def inclusion(self) -> FloatArray:
        """Return b_i = (expected count of i's stratum) / (size of i's stratum)."""
        expected = self._guaranteed + self._extra_probability
        return np.asarray((expected / self._sizes)[self.stratum])

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        """E[c_a c_b] / (n_a n_b) across strata, E[c (c - 1)] / (n (n - 1)) within one."""
        base, p, open_strata = (
            self._guaranteed.astype(float), self._extra_probability, self._not_exhausted.size
        )  # fmt: skip
        both = self._extra * (self._extra - 1) / max(open_strata * (open_strata - 1), 1)
        a, b = self.stratum[i], self.stratum[j]
        across = base[a] * base[b] + base[a] * p[b] + base[b] * p[a]
        across += np.where((p[a] > 0) & (p[b] > 0), both, 0.0)
        within = base[a] * (base[a] - 1) + 2 * base[a] * p[a]
        pairs_within = self._sizes[a] * np.maximum(self._sizes[a] - 1, 1)
        joint = np.where(a == b, within / pairs_within, across / (self._sizes[a] * self._sizes[b]))
        return np.asarray(joint)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        """-log(choices of strata with an extra item) - Σ_s log binomial(n_s, c_s)."""
        rows = np.arange(batches.shape[0])[:, None]
        counts = np.zeros((batches.shape[0], self._sizes.size), dtype=np.int64)
        np.add.at(counts, (rows, self.stratum[batches]), 1)
        more = counts - self._guaranteed
        room = (self._guaranteed < self._sizes).astype(np.int64)
        possible = np.all((more >= 0) & (more <= room), axis=1)
        ways = log_binomial(self._sizes, np.where(possible, counts.T, 0).T).sum(axis=1)
        choices = log_binomial(self._not_exhausted.size, self._extra)
        return np.where(possible, -ways - choices, -np.inf)

    def _pair_moment(self, Y: FloatArray) -> float:
        """Pairs within a stratum have one joint probability, and so have those across two."""
        order, sizes = self._members, self._sizes
        first, last = order[np.cumsum(sizes) - sizes], order[np.cumsum(sizes) - 1]
        sums = np.add.reduceat(Y[order], np.cumsum(sizes) - sizes, axis=0)
        squares = np.bincount(self.stratum, np.einsum("ip,ip->i", Y, Y))
        joint = self.joint(first[:, None], first)
        np.fill_diagonal(joint, np.where(sizes > 1, self.joint(first, last), 0.0))
        return float(np.einsum("ap,ap->", joint @ sums, sums) - joint.diagonal() @ squares)

    def fingerprint(self) -> str:
        """Return the hash of each item's stratum and k; names of strata are not part of it."""
        return digest("Stratified", self.k, self.stratum)

    def __repr__(self) -> str:
        return f"Stratified(n={self.n}, k={self.k}, {self._sizes.size} strata)"


def _shares(sizes: IntArray, k: int) -> tuple[IntArray, int]:
    """Return each stratum's guaranteed count and the number of extra items, dealt out at random.

    Strata that cannot give an equal share give everything; repeat for the others.
    """
    exhausted = np.zeros(sizes.size, dtype=bool)
    while True:
        left, opens = k - sizes[exhausted].sum(), sizes.size - exhausted.sum()
        share, extra = divmod(int(left), int(opens)) if opens else (0, 0)
        short = ~exhausted & (sizes < share + (extra > 0))
        if not short.any():
            return np.where(exhausted, sizes, share).astype(np.int64), extra
        exhausted |= short


def clustered(X: Any, k: int, clusters: int | None = None, seed: Seed = 0) -> Stratified:
    """Return stratified sampling over k-means clusters of X: pre-clustering (Proposition 2).

    `clusters` defaults to k, one item of each cluster per batch. The features, shape (n, d), are
    taken into memory. O(n d clusters) per pass of k-means over the data.

    >>> design = clustered([[0.0], [0.1], [5.0], [5.1], [5.2]], k=2)
    >>> [round(float(b), 3) for b in design.inclusion()]
    [0.5, 0.5, 0.333, 0.333, 0.333]
    """
    X = as_features(X)
    k = as_batch_size(k, X.n)
    count = as_count(k if clusters is None else clusters, "clusters")
    if count > X.n:
        raise ValueError(f"clusters={count} exceeds the number of items, {X.n}")
    return Stratified(k_means(X, count, seed_key(seed)).labels_, k)
