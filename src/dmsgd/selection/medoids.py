"""Medoids: a covering set that k-means has moved to where its items have more others near them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dmsgd.features import as_features
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, Matrix, as_array
from dmsgd.selection.cover import cover
from dmsgd.selection.pool import AT_A_TIME, RowPool, distances_to
from dmsgd.selection.rules import Rules

#: Rounds of k-means at most.
ROUNDS = 30
#: The share of the scale at which the best item of a cell is found.
NARROW = 0.25
#: Items of a cell that its candidates are compared with, at most.
MOST = 4096


def medoids(
    pool: RowPool, q: FloatArray, known: IntArray, free: BoolArray, items: IntArray
) -> IntArray:
    """Return as many free items as `items`, best first.

    k-means begins at the known items, which stay where they are, and at `items`. Of each cell the
    candidate is taken with the largest product of its quality and Σ_j q_j exp(-4 d² / m), j being
    in the cell. They are ordered by what each adds to the coverage.
    """
    X = pool.F.to_memory().matrix
    own = cells_of(X, np.concatenate([known, items]), q, known.size)
    return by_gains(pool, q, known, best_of_cells(pool, q, free, items, own - known.size))


def cells_of(X: Matrix, begin: IntArray, q: FloatArray, fixed: int) -> IntArray:
    """Return the place of the nearest k-means centre of each row; the first `fixed` do not move."""
    centres, own, n = as_array(X[begin]), np.full(X.shape[0], -1), X.shape[0]
    for turn in range(ROUNDS + 1):
        last, own = own, np.concatenate([D.argmin(1) for _, D in distances_to(centres, X)])
        if turn == ROUNDS or (own == last).all():
            break
        to_cells = sparse.csr_array((q, own, np.arange(n + 1)), shape=(n, begin.size)).T
        sums = np.asarray(to_cells.sum(1)).ravel()
        moved = np.flatnonzero(sums > 0)
        moved = moved[moved >= fixed]
        centres[moved] = as_array((to_cells @ X)[moved]) / sums[moved, None]
    return own


def best_of_cells(
    pool: RowPool, q: FloatArray, free: BoolArray, items: IntArray, own: IntArray
) -> IntArray:
    """Return the best candidate of each cell; the item it began at where there is none.

    own: the cell of each item, negative for those of known items.
    """
    open_, found, count = free & (q > 0), items.copy(), items.size
    square = NARROW * pool.square
    while True:
        empty = np.bincount(own[open_ & (own >= 0)], minlength=count) == 0
        if not open_[items[empty]].any():
            break
        open_[items[empty]] = False  # so that no other cell takes it
    order = np.argsort(own, kind="stable")
    ends = np.searchsorted(own[order], np.arange(count + 1))
    for cell in np.flatnonzero(~empty).tolist():
        inside = order[ends[cell] : ends[cell + 1]]
        candidates, some = inside[open_[inside]], inside[:: -(-inside.size // MOST)]
        step = max(1, AT_A_TIME // some.size)
        sums = [
            np.exp(pool.squares(candidates[at : at + step], some) / -square) @ q[some]
            for at in range(0, candidates.size, step)
        ]
        found[cell] = candidates[(np.concatenate(sums) * q[candidates]).argmax()]
    return found


def by_gains(pool: RowPool, q: FloatArray, known: IntArray, found: IntArray) -> IntArray:
    """Return items in the order of what each adds to what the known ones and those before cover."""
    both = np.concatenate([known, found])
    some = as_features(pool.F.take(both), allow_tiny=True)
    part = RowPool(some, pool.F, workers=pool.workers, square=pool.square)
    places = np.arange(both.size)
    rules = Rules(places >= known.size, found.size)
    order = cover(part, q[both], q, places[: known.size], rules)
    rest = np.setdiff1d(places[known.size :], order)
    return np.asarray(both[np.concatenate([order, rest])])
