"""Facility location: items that together are similar to all others, weighted by demand."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.features.rows import (
    DISTANCES,
    centred,
    float32_rows,
    multiply,
    row_norms2,
    squared_distances,
)
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import counted
from dmsgd.inputs.progress import Progress, plan_work

#: Up to this many items their similarities are kept, 1 GiB in float32; of more they are computed
#: again, so many at a time, whenever gains are. TILE is no power of 2: the columns of a tile
#: would share a few lines of the cache, and transposing it would take twice as long.
KEPT, TILE, AT_A_TIME = 2**14, 496, 2**20
#: Items are at most so far from the mean in any column, in units of the RBF scale.
FARTHEST = 1e12
#: Gains below this share of the largest are rounding; relative differences up to it are ties,
#: which go to the item with the largest demand.
NOTHING, TIED = 1e-6, 1e-6
#: Gains that are computed anew at first for the next item, then twice as many.
FIRST = 8


def cover(
    X: Any, worth: FloatArray, demand: FloatArray, k: int, square: float, near: FloatArray
) -> IntArray:
    """Return k items, best first; fewer if all others are duplicates.

    Each has the largest product of its worth and what it adds to Σ_j demand_j max_i S_ij,
    S = exp(-d² / square), where i runs over the chosen and the known items. The scale is reduced
    whenever these cover all.

    X:    (n, d) rows, or a CSR array.
    near: (n,) squared distances to the nearest known item, inf if there is none.
    """
    chosen = np.empty(0, dtype=np.int64)
    X = centred(X)
    while chosen.size < k and near.any():
        own, weights = (np.where(near > 0, each, 0.0) for each in (worth, demand))
        own, weights = own / own.max(), weights / weights.max()
        found = _cover(X, own, weights, k - chosen.size, square, near)
        if chosen.size:  # at a small scale rounding may hide that two of them are duplicates
            found = found[~np.triu(squared_distances(X[found], X[found]) == 0, 1).any(0)]
        chosen = np.concatenate([chosen, found])
        if chosen.size < k:
            near = np.minimum(near, nearest(X[found], X))
            square = min(square if found.size else square / 4, float(near.max()))
    return chosen


def nearest(A: Any, B: Any) -> FloatArray:
    """Return the squared distance of each row of B to the nearest of A, inf if A has none."""
    found, step = np.full(B.shape[0], np.inf), max(1, DISTANCES // max(1, B.shape[0]))
    for first in range(0, A.shape[0], step):
        some = squared_distances(A[first : first + step], B)
        found = np.minimum(found, np.asarray(some).min(0))
    return found


def _cover(
    X: Any, worth: FloatArray, demand: FloatArray, k: int, square: float, near: FloatArray
) -> IntArray:
    """Return up to k items of some worth, fewer if they cover all as far as float32 tells.

    What an item adds can only fall as others are chosen. So it is computed anew for those alone
    that may be next by what they added before: for every item about log k times, O(n² (d + log k))
    in all.
    """
    from dmsgd.compiled.cover import gains_of

    n, what = demand.size, f"a covering set of {counted(k, 'item')} of {demand.size:,}"
    passes = 1.0 if n <= KEPT else 2 + np.log(k)
    plan_work(passes * n * n * X.shape[1], min(n, KEPT) ** 2 // 2, what, "ask for fewer items")
    similarity, progress = Similarity(X, square), Progress(what)
    weights, covered = demand.astype(np.float32), np.exp(-near / square).astype(np.float32)
    gains = np.zeros(n)
    chosen: list[int] = []

    def measure(some: IntArray) -> None:
        for items, S, rows in similarity.blocks(some):
            gains[items] = worth[items] * gains_of(S, rows, weights, covered)
            if not chosen:
                progress((items[-1] + 1) / n / passes)

    measure(np.flatnonzero(worth))
    least, fresh = NOTHING * max(gains.max(), weights @ covered), np.ones(n, dtype=bool)
    while len(chosen) < k:
        top, count = gains[fresh].max(initial=least), FIRST
        while (some := np.flatnonzero(~fresh & (gains >= (1 - TIED) * top))).size:
            if some.size > count:
                some = some[np.argpartition(-gains[some], count)[:count]]
            measure(some)
            fresh[some] = True
            top, count = gains[fresh].max(initial=least), 2 * count
        if top <= least:
            break
        item = int(np.argmax(np.where(fresh & (gains >= (1 - TIED) * top), demand, -1.0)))
        chosen.append(item)
        ((_, S, rows),) = similarity.blocks(np.array([item]))
        covered = np.maximum(covered, S[rows[0]])
        covered[item], gains[item], fresh[:] = 1, 0.0, False
        progress((1 + (passes - 1) * len(chosen) / k) / passes)
    return np.array(chosen, dtype=np.int64)


@final
class Similarity:
    """exp(-d² / square) between items in float32, kept up to KEPT items."""

    def __init__(self, X: Any, square: float) -> None:
        n = X.shape[0]
        self.X = float32_rows(X, np.sqrt(2 / np.log(2) / square), FARTHEST)
        self.sizes = (row_norms2(self.X) / 2).astype(np.float32)  # S_ij = 2^(x_i·x_j - s_i - s_j)
        self.buffer = np.empty(AT_A_TIME if n > KEPT else TILE**2, dtype=np.float32)
        self.kept = None if n > KEPT else np.empty((n, n), dtype=np.float32)
        if self.kept is not None:
            parts = [slice(first, min(first + TILE, n)) for first in range(0, n, TILE)]
            for at, own in enumerate(parts):
                for other in parts[at:]:
                    S = self._computed(own, other)
                    self.kept[own, other] = S
                    self.kept[other, own] = S.T

    def blocks(self, items: IntArray) -> Any:
        """Yield some of the items, a matrix with their similarities to all, and its rows."""
        if self.kept is not None:
            if items.size:
                yield items, self.kept, items
            return
        step = max(1, AT_A_TIME // self.sizes.size)
        for first in range(0, items.size, step):
            some = items[first : first + step]
            yield some, self._computed(some, slice(None)), np.arange(some.size)

    def _computed(self, rows: Any, columns: slice) -> Any:
        """Return similarities, which the next call overwrites."""
        from dmsgd.compiled.cover import similarities

        left, right = self.sizes[rows], self.sizes[columns]
        G = self.buffer[: left.size * right.size].reshape(left.size, right.size)
        multiply(self.X[rows], self.X[columns], G)
        similarities(G, left, right)
        return G
