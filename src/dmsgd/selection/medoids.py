"""Medoids: a covering set that k-means moves to where its items have more others near them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dmsgd.features import as_features
from dmsgd.features.products import row_norms2, scale_rows
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, Matrix, as_array, is_sparse
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.pieces import slices
from dmsgd.runtime.progress import Progress, plan_work
from dmsgd.runtime.threads import one_blas_thread, parallel_map
from dmsgd.selection.cover import cover, covering_set
from dmsgd.selection.pool import AT_A_TIME, RowPool, distances_to
from dmsgd.selection.rules import Rules
from dmsgd.spectra.rounding import TIED

#: Rounds of k-means at most.
ROUNDS = 30
#: The share of m at which the best item of a cell is found.
NARROW = 0.25
#: Items of a cell that its candidates are compared with, at most.
MOST = 4096


def medoids(pool: RowPool, q: FloatArray, known: IntArray, free: BoolArray, k: int) -> IntArray:
    """Return k free items, best first; fewer if no others are distinct and of quality above 0.

    On shortened rows, k-means begins at the known items, whose centres do not move, and at a
    covering set. Each item is the best of its cell, and if there are too few cells, others cover
    what these leave. They are ordered by what they add to the coverage.
    """
    found = np.empty(0, dtype=np.int64)
    count, own = _cells(pool, q, known, free, k)
    if count:
        with one_blas_thread:
            found = best_of_cells(pool, own - known.size, count, q, free & (q > 0))
    if found.size < k:
        left = free.copy()
        left[found] = False
        rules, both = Rules(left, k - found.size), np.append(known, found)
        found = np.append(found, covering_set(pool, q, q, both, rules)[0])
    return ordered_by_gains(pool, q, known, found)


def _cells(
    pool: RowPool, q: FloatArray, known: IntArray, free: BoolArray, k: int
) -> tuple[int, IntArray]:
    """Return how many cells there are beside those of known items, and the cell of each item.

    Shortened rows, a copy, are gone when it returns.
    """
    X = shortened(pool.F.matrix)
    short = RowPool(as_features(X, allow_tiny=True), workers=pool.workers)
    short.square = short.scale(known)
    begin = covering_set(short, q, q, known, Rules(free, k))[0]
    if not begin.size:
        return 0, begin
    with one_blas_thread:
        return begin.size, cells_of(X, np.append(known, begin), known.size, q, pool.workers)


def shortened(X: Matrix) -> Matrix:
    """Return rows that are at most as long as the median, which is 1; dense ones less their mean.

    Rows that are zero do not count for the median.
    """
    n, sparse_rows = X.shape[0], is_sparse(X)
    size = (2 * X.nnz if sparse_rows else X.size) + 4 * n
    reserve(size, f"the shortened rows of {n:,} items", "choose from fewer items")
    X = X if sparse_rows else X - X.mean(0)
    lengths = np.sqrt(row_norms2(X))
    median = np.median(lengths[lengths > 0]) if lengths.any() else 1.0
    factors = 1 / np.maximum(lengths, median)
    if sparse_rows:
        return scale_rows(X, factors)
    X *= factors[:, None]
    return X


def cells_of(X: Matrix, begin: IntArray, fixed: int, weights: FloatArray, workers: int) -> IntArray:
    """Return the place of the centre that each row is nearest to, by k-means.

    Centres begin at rows; the first `fixed` do not move, and neither do those without any weight.
    """
    (n, d), count = X.shape, begin.size
    what = f"k-means of {n:,} items and {count:,} centres"
    size = 2 * count * d + 4 * n
    plan_work(float(ROUNDS) * n * d * count, size, what, "ask for fewer items")
    centres, own, tell = as_array(X[begin]), np.full(n, -1), Progress(what)
    parts = slices(n, max(1, AT_A_TIME // count))

    def nearest(part: slice) -> IntArray:
        near = as_array(X[part] @ centres.T)
        near -= halves
        return np.asarray(near.argmax(1))

    for turn in range(1, ROUNDS + 1):
        last, halves = own, row_norms2(centres) / 2
        own = np.concatenate(parallel_map(nearest, parts, workers))
        if (own == last).all():
            break
        to_cells = sparse.csc_array((weights, own, np.arange(n + 1)), shape=(count, n))
        sums = np.bincount(own, weights, minlength=count)
        moved = fixed + np.flatnonzero(sums[fixed:])
        centres[moved] = as_array((to_cells @ X)[moved]) / sums[moved, None]
        tell(turn / ROUNDS)
    return own


def best_of_cells(
    pool: RowPool, own: IntArray, count: int, q: FloatArray, free: BoolArray
) -> IntArray:
    """Return the free item of each cell with the largest q_i Σ_j q_j exp(-4 d² / m), j in the cell.

    own: the cell of each item, negative for those of known items; cells without a free item have
         none.
    """
    order, square = np.argsort(own, kind="stable"), NARROW * pool.square
    ends = np.searchsorted(own[order], np.arange(count + 1))

    def best(cell: int) -> IntArray:
        inside = order[ends[cell] : ends[cell + 1]]
        items, some = inside[free[inside]], inside[:: max(1, -(-inside.size // MOST))]
        sums = [np.empty(0)]
        for _, D in distances_to(pool.F.take(some), pool.F.take(items)):
            D /= -square
            sums.append(np.exp(D, out=D) @ q[some])
        values = q[items] * np.concatenate(sums)
        return np.asarray(items[values >= (1 - TIED) * values.max(initial=0.0)][:1])

    return np.concatenate(parallel_map(best, range(count), pool.workers))


def ordered_by_gains(pool: RowPool, q: FloatArray, known: IntArray, found: IntArray) -> IntArray:
    """Return items in the order of what each adds to what the known ones and those before cover."""
    both = np.append(known, found)
    if not found.size:
        return found
    some = as_features(pool.F.take(both), allow_tiny=True)
    part = RowPool(some, pool.F, workers=pool.workers, square=pool.square)
    places = np.arange(both.size)
    rules = Rules(places >= known.size, found.size)
    order = cover(part, q[both], q, places[: known.size], rules)
    rest = np.setdiff1d(places[known.size :], order)  # which add nothing
    return both[np.append(order, rest)]
