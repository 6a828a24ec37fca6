"""Designs without a kernel: `Uniform`, and `Stratified` by labels, k-means clusters or cells."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.designs.contract import ClosedForm
from dmsgd.features import as_features
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.scalars import Seed, as_count, as_part, seed_key
from dmsgd.kernels.landmarks import k_means
from dmsgd.polynomials import log_binomial
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.pieces import slices
from dmsgd.runtime.threads import draw_in_parallel, one_blas_thread
from dmsgd.spectra.decompose import principal

#: Positions along a direction that differ by less than this share of its length are tied, so that
#: rounding, which differs between processors, does not order duplicates and grids.
LEVEL = 1e-9
#: Directions of larger arrays with more columns are found by iteration.
LARGE, NARROW = 2**22, 1024
#: Counts of items of batches in strata that are held at a time.
COUNTS = 2**15


@final
class Uniform(ClosedForm):
    """Independent batches: every set of k out of n items is equally likely. O(k) per batch.

    Over an epoch some items come twice and some not at all. Shuffled epochs are
    `Partition(Uniform(n, k))`. See also `Partition`, `Stratified`, `Weighted`.

    >>> Uniform(4, 2).inclusion()
    array([0.5, 0.5, 0.5, 0.5])
    """

    def __init__(self, n: int, k: int) -> None:
        self.n = as_count(n, "n")
        self.k = as_part(k, "k", self.n)
        #: E[m_i m_j], the same for all pairs.
        self._pair = self.k * (self.k - 1) / (self.n * max(self.n - 1, 1))

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        from dmsgd.compiled.simple import draw_uniform

        def fill(first: int, out: IntArray) -> int:
            return int(draw_uniform(self.n, np.uint64(key), np.uint64(first), out))

        return draw_in_parallel(fill, start, size, self.k, workers)

    def inclusion(self) -> FloatArray:
        reserve(self.n, f"the probabilities of {self.n:,} items", f"each of them is {self.k}/n")
        return np.full(self.n, self.k / self.n)

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        return np.full(i.size, self._pair)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        return np.full(batches.shape[0], -log_binomial(self.n, self.k))

    def _pair_moment(self, Y: FloatArray) -> float:
        total = Y.sum(axis=0)
        return float(self._pair * (total @ total - np.einsum("ip,ip->", Y, Y)))

    def fingerprint(self) -> str:
        return digest("Uniform", self.n, self.k)

    def __repr__(self) -> str:
        return f"Uniform(n={self.n}, k={self.k})"


@final
class Stratified(ClosedForm):
    """Batches with equal counts per class, drawn at random within each class. O(k) per batch.

    labels: The class of each item, shape (n,). With k = sM for M classes each gives s items.
            Otherwise each gives floor(k/M), and the rest come from classes chosen at random, one
            each. A class that has fewer items than its share gives all of them, and the others
            share what is missing equally.

    See also `cells` and `clustered`, which need no labels, `Weighted`, `Partition`.

    >>> Stratified(["a", "a", "a", "b"], k=2).inclusion()
    array([0.33333333, 0.33333333, 0.33333333, 1.        ])
    """

    def __init__(self, labels: Any, k: int) -> None:
        #: The names of the strata, and for each item the number of its stratum.
        self.strata, self.stratum = as_classes(labels)
        self.n = int(self.stratum.size)
        self.k = as_part(k, "k", self.n)
        self._sizes = np.bincount(self.stratum)
        self._members = np.argsort(self.stratum, kind="stable")
        self._guaranteed, self._extra = _shares(self._sizes, self.k)
        #: Strata with more items than their guaranteed count, which an extra item may come from,
        self._open = self._guaranteed < self._sizes
        self._open_count = int(self._open.sum())
        #: and the probability that a stratum gives one.
        self._extra_probability = np.where(self._open, self._extra / max(self._open_count, 1), 0.0)

    def _draw(self, key: int, start: int, size: int, workers: int) -> IntArray:
        from dmsgd.compiled.simple import draw_stratified

        starts = np.concatenate([[0], np.cumsum(self._sizes)])
        plan = (self._members, starts, self._guaranteed, self._extra)

        def fill(first: int, out: IntArray) -> int:
            return int(draw_stratified(*plan, np.uint64(key), np.uint64(first), out))

        return draw_in_parallel(fill, start, size, self.k, workers)

    def inclusion(self) -> FloatArray:
        expected = self._guaranteed + self._extra_probability
        return np.asarray((expected / self._sizes)[self.stratum])

    def _joint(self, i: IntArray, j: IntArray) -> FloatArray:
        """E[c_a c_b] / (n_a n_b) across strata, E[c (c - 1)] / (n (n - 1)) within one."""
        base, p = self._guaranteed.astype(float), self._extra_probability
        both = self._extra * (self._extra - 1) / max(self._open_count * (self._open_count - 1), 1)
        a, b = self.stratum[i], self.stratum[j]
        across = base[a] * base[b] + base[a] * p[b] + base[b] * p[a]
        across += np.where((p[a] > 0) & (p[b] > 0), both, 0.0)
        within = base[a] * (base[a] - 1) + 2 * base[a] * p[a]
        pairs_within = self._sizes[a] * np.maximum(self._sizes[a] - 1, 1)
        joint = np.where(a == b, within / pairs_within, across / (self._sizes[a] * self._sizes[b]))
        return np.asarray(joint)

    def _log_prob(self, batches: IntArray) -> FloatArray:
        """-log(choices of strata with an extra item) - Σ_s log binomial(n_s, c_s)."""
        out, choices = np.empty(len(batches)), log_binomial(self._open_count, self._extra)
        step = max(1, COUNTS // self._sizes.size)
        for some in slices(len(batches), step):  # all counts at once may be far larger
            strata = self.stratum[batches[some]]
            counts = np.zeros((len(strata), self._sizes.size), dtype=np.int64)
            np.add.at(counts, (np.arange(len(strata))[:, None], strata), 1)
            more = counts - self._guaranteed
            possible = np.all((more >= 0) & (more <= self._open), axis=1)
            ways = log_binomial(self._sizes, np.where(possible[:, None], counts, 0)).sum(axis=1)
            out[some] = np.where(possible, -ways - choices, -np.inf)
        return out

    def _pair_moment(self, Y: FloatArray) -> float:
        """Pairs within a stratum have one joint probability, and so have those across two."""
        order, sizes, stops = self._members, self._sizes, np.cumsum(self._sizes)
        first, last = order[stops - sizes], order[stops - 1]
        sums = np.add.reduceat(Y[order], stops - sizes, axis=0)
        squares = np.bincount(self.stratum, np.einsum("ip,ip->i", Y, Y))
        joint = self.joint(first[:, None], first)
        np.fill_diagonal(joint, np.where(sizes > 1, self.joint(first, last), 0.0))
        return float(np.einsum("ap,ap->", joint @ sums, sums) - joint.diagonal() @ squares)

    def fingerprint(self) -> str:
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
    """Return `Stratified` batches over k-means clusters of X: pre-clustering (Proposition 2).

    X:        The features, shape (n, d), as `diversify` takes them. They are read into memory.
    clusters: The number of clusters. The default is k: one item of each cluster per batch.

    A pass of k-means is O(n d clusters). Raises ValueError if there are more clusters than items.
    See also `cells`, whose groups have equal sizes.

    >>> design = clustered([[0.0], [0.1], [5.0], [5.1], [5.2]], k=2)
    >>> [round(float(b), 3) for b in design.inclusion()]
    [0.5, 0.5, 0.333, 0.333, 0.333]
    """
    X = as_features(X)
    k = as_part(k, "k", X.n)
    count = k if clusters is None else as_part(clusters, "clusters", X.n)
    return Stratified(k_means(X, count, seed_key(seed)).labels_, k)


def cells(X: Any, k: int) -> Stratified:
    """Return `Stratified` batches over k cells of equal size, one item of each cell per batch.

    X: The features, shape (n, d), as `diversify` takes them. They are read into memory.

    All items are split in two halves along their principal direction, each half along its own, and
    so on until there are k cells, whose sizes differ by at most one. So b is k/n (up to that
    difference) and similar items are rarely in one batch. O(n d min(n, d) log k); for sparse X, or
    large X of more than 1,024 columns, O(n d log k) per step of an iteration.
    See also `clustered`, `Partition`, `diversify`.

    >>> design = cells([[0.0], [9.0], [1.0], [8.0], [2.0], [7.0]], k=2)
    >>> design.stratum.tolist(), design.inclusion().round(3).tolist()
    ([0, 1, 0, 1, 0, 1], [0.333, 0.333, 0.333, 0.333, 0.333, 0.333])
    """
    F = as_features(X).to_memory()
    k = as_part(k, "k", F.n)
    cell = np.empty(F.n, dtype=np.int64)
    with one_blas_thread:  # more would spin between many small products
        for number, group in enumerate(_cut(F.matrix, np.arange(F.n), k)):
            cell[group] = number
    return Stratified(cell, k)


def _cut(X: Matrix, group: IntArray, count: int) -> list[IntArray]:
    """Return `count` cells of a group of items, the larger ones first."""
    if count == 1:
        return [group]
    order = group[_order(X[group])]
    left = (count + 1) // 2
    size, more = divmod(group.size, count)
    cut = size * left + min(more, left)
    return _cut(X, order[:cut], left) + _cut(X, order[cut:], count - left)


def _order(rows: Matrix) -> IntArray:
    """Return the order of rows, centred in place if dense, along their principal direction."""
    if isinstance(rows, np.ndarray):
        rows -= rows.mean(axis=0)
    along = np.asarray(rows @ _direction(rows))
    along -= along.mean()
    length = float(np.abs(along).max())
    return np.argsort(np.round(along / (LEVEL * length or 1.0)), kind="stable")


def _direction(rows: Matrix) -> FloatArray:
    """Return the unit vector along which rows, of mean 0 if dense, vary most.

    Its largest entry is positive.
    """
    d, dense = rows.shape[1], isinstance(rows, np.ndarray)
    if d == 1:
        return np.ones(1)
    if dense and (rows.size <= LARGE or d <= NARROW):
        found = principal(rows, 1)[:, 0]
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh

        mean = np.asarray(rows.mean(axis=0)).ravel()

        def covariance(v: FloatArray) -> FloatArray:
            along = rows @ v - mean @ v
            return np.asarray(rows.T @ along - mean * along.sum())

        starts = np.ones(d), np.random.default_rng(0).normal(size=d)
        start = next((each for each in starts if covariance(each).any()), None)
        if start is None:  # all rows are the same
            return np.ones(d)
        operator = LinearOperator((d, d), matvec=covariance, dtype=np.float64)
        found = eigsh(operator, k=1, v0=start, tol=1e-3)[1][:, 0]
    return np.asarray(found * np.sign(found[np.argmax(np.abs(found))]))
