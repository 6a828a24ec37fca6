"""Biased stratified sampling: every stratum gives the same number of items to a batch."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.designs.repulsive import Repulsive
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.scalars import as_batch_size
from dmsgd.polynomials import log_binomial
from dmsgd.samplers.parallel import draw_in_parallel


@final
class Stratified(Repulsive):
    """Batches with equal counts per stratum, drawn at random within each.

    With k = sM for M strata each gives s items; otherwise each gives floor(k/M) and the rest go to
    strata chosen at random, one each. A stratum with fewer items than its share gives all it has,
    and the others share what is missing equally. With k = M it is the k-DPP of `strata(labels)`.

    labels: (n,) strata, of any kind that classes may be. Set-up O(n log n), a draw O(k).

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
        self._base, self._extra = _shares(self._sizes, self.k)

    @property
    def _open(self) -> IntArray:
        """Strata that are not exhausted by their base count: those an extra item may come from."""
        return np.flatnonzero(self._base < self._sizes)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        from dmsgd.compiled.simple import draw_stratified

        starts = np.concatenate([[0], np.cumsum(self._sizes)])
        plan = (self._members, starts, self._base, self._extra)

        def rows(first: int, out: IntArray) -> int:
            return int(draw_stratified(*plan, np.uint64(key), np.uint64(first), out))

        return draw_in_parallel(rows, start, size, self.k, workers)

    @property
    def _lucky(self) -> FloatArray:
        """Probability that a stratum gives one more than its base count."""
        lucky = np.zeros(self._base.size)
        if self._extra:
            lucky[self._open] = self._extra / self._open.size
        return lucky

    def inclusion(self) -> FloatArray:
        """Return b_i = (expected count of i's stratum) / (size of i's stratum)."""
        return np.asarray(((self._base + self._lucky) / self._sizes)[self.stratum])

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        """E[c_a c_b] / (n_a n_b) across strata, E[c (c - 1)] / (n (n - 1)) within one."""
        base, lucky, opens = self._base.astype(float), self._lucky, self._open.size
        both_lucky = self._extra * (self._extra - 1) / max(opens * (opens - 1), 1)
        a, b = self.stratum[i], self.stratum[j]
        across = base[a] * base[b] + base[a] * lucky[b] + base[b] * lucky[a]
        across += np.where((lucky[a] > 0) & (lucky[b] > 0), both_lucky, 0.0)
        within = base[a] * (base[a] - 1) + 2 * base[a] * lucky[a]
        pairs_within = self._sizes[a] * np.maximum(self._sizes[a] - 1, 1)
        joint = np.where(a == b, within / pairs_within, across / (self._sizes[a] * self._sizes[b]))
        return np.asarray(joint)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        """-log(choices of lucky strata) - Σ_s log binomial(n_s, c_s)."""
        rows = np.arange(batches.shape[0])[:, None]
        counts = np.zeros((batches.shape[0], self._sizes.size), dtype=np.int64)
        np.add.at(counts, (rows, self.stratum[batches]), 1)
        more = counts - self._base
        room = (self._base < self._sizes).astype(np.int64)
        possible = np.all((more >= 0) & (more <= room), axis=1)
        ways = log_binomial(self._sizes, np.where(possible, counts.T, 0).T).sum(axis=1)
        return np.where(possible, -ways - log_binomial(self._open.size, self._extra), -np.inf)

    def fingerprint(self) -> str:
        """Return the hash of each item's stratum and k; what the strata are called is no part."""
        return digest("Stratified", self.k, self.stratum)

    def __repr__(self) -> str:
        return f"Stratified(n={self.n}, k={self.k}, {self._sizes.size} strata)"


def _shares(sizes: IntArray, k: int) -> tuple[IntArray, int]:
    """Return each stratum's sure count and the number of extra items dealt out at random.

    Strata that cannot give what an equal share may ask of them give everything; repeat.
    """
    exhausted = np.zeros(sizes.size, dtype=bool)
    while True:
        left, opens = k - sizes[exhausted].sum(), sizes.size - exhausted.sum()
        share, extra = divmod(int(left), int(opens)) if opens else (0, 0)
        short = ~exhausted & (sizes < share + (extra > 0))
        if not short.any():
            return np.where(exhausted, sizes, share).astype(np.int64), extra
        exhausted |= short
