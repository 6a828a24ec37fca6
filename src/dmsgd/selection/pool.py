"""The pool that a set is chosen from: candidates, and the items that they are to cover."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from dmsgd.errors import InputError
from dmsgd.features import Features
from dmsgd.features.products import median_square, row_norms2, sampled_pairs, squared_distances
from dmsgd.inputs.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_matrix,
    is_sparse,
    is_tensor,
    on_host,
)
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.pieces import slices
from dmsgd.selection.similarity import Graph, Kept, Rows, Similarity

#: Distances that are held at a time.
AT_A_TIME = 2**21
#: Up to this many similarities are kept, 256 MiB.
KEPT = 2**26
#: Of a part, similarities are kept up to so many, or so many for each number of its rows: other
#: parts may be in the same memory.
FEW_KEPT, PART_KEPT = 2**22, 8
#: Squared lengths of rows, which are centred if they are dense, in units of m: above it float32
#: loses more than some percent of what could be covered.
FAR_IN_FLOAT32 = 1e6
#: The least m, of any rows, whose inverse is finite.
LEAST = 1e-290


class Pool(ABC):
    """n candidates, and N items that they are to cover.

    F:       rows of the candidates, and `other`, those of the items, None if these are the same.
    same:    whether these are the candidates.
    square:  m of the similarity exp(-d² / m).
    median:  the median squared distance; `square` is smaller where items are given.
    largest: of the similarities that are given.
    """

    F: Any
    other: Features | None
    n: int
    N: int
    same: bool
    square: float = 1.0
    median: float = 1.0
    largest: float = 1.0

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse, of candidates or of items: then none are centred."""
        return any(each is not None and each.sparse_rows for each in (self.F, self.other))

    def scale(self, known: IntArray) -> float:
        """Return m where these candidates are chosen already: at most the median to the nearest."""
        return self.square

    @abstractmethod
    def each(
        self, chosen: IntArray, work: Callable[..., Any], demand: FloatArray
    ) -> Iterator[tuple[slice, Any]]:
        """Yield some items at a time, and work(squares, demand of these items).

        squares: their squared distances to the chosen candidates, (items, chosen).
        """

    def squares(self, items: IntArray, chosen: IntArray) -> FloatArray:
        """Return the squared distances of items to chosen candidates, (items, chosen)."""
        covered = self.F if self.other is None else self.other
        return np.asarray(squared_distances(covered.take(items), self.F.take(chosen)))

    def compared(self, items: IntArray, free: IntArray, known: IntArray) -> tuple[Any, ...]:
        """Return a pool in memory of which these are all or a part, and the numbers of each there.

        items: that are to be covered; free: candidates for random sets.
        """
        return self, items, free, known


class MemoryPool(Pool):
    """A pool whose similarities can be computed at any time.

    scalable: whether the scale can be reduced.
    is_part:  whether it is a part of a larger pool.
    """

    scalable = True
    is_part = False

    @abstractmethod
    def similarity(self, square: float) -> Similarity:
        """Return the similarities at this scale."""

    def rows(self, chosen: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield items and their squared distances to the chosen candidates, (items, chosen)."""
        step = max(1, AT_A_TIME // max(1, chosen.size))
        for part in slices(self.N, step):
            yield part, self.squares(np.arange(part.start, part.stop), chosen)

    def each(
        self, chosen: IntArray, work: Callable[..., Any], demand: FloatArray
    ) -> Iterator[tuple[slice, Any]]:
        for part, squares in self.rows(chosen):
            yield part, work(squares, demand[part])

    @abstractmethod
    def near(self, item: int, square: float) -> BoolArray:
        """Return which candidates are no further from one of them than this."""

    def nearest(self, chosen: IntArray) -> FloatArray:
        """Return the squared distance of each item to the nearest chosen candidate, or inf."""
        found = np.full(self.N, np.inf)
        for part, squares in self.rows(chosen) if chosen.size else ():
            found[part] = squares.min(1)
        return found


@final
class RowPool(MemoryPool):
    """Rows of features, similar by exp(-d² / square)."""

    def __init__(
        self,
        F: Features,
        other: Features | None = None,
        workers: int = 1,
        square: float | None = None,
    ) -> None:
        """Store rows.

        square: the scale, if it is that of a larger pool; else it is the median.
        """
        self.F, self.other, self.workers = F, other, workers
        self.same, self.n = other is None, F.n
        covered = F if other is None else other
        self.N, self._rows = covered.n, covered.unwrap()
        square = median_square(covered) if square is None else square
        self.square = self.median = square

    def scale(self, known: IntArray) -> float:
        if self.other is not None:
            points = self.other.take(sampled_pairs(self.N)[0])
            near = [squares.min(0) for _, squares in distances_to(points, self.F.unwrap())]
            return scale_within(self.median, np.min(near, axis=0))
        return scale_beside(self, self.nearest(known)) if known.size else self.median

    def similarity(self, square: float) -> Similarity:
        X, Y = self.F.unwrap(), None if self.other is None else self.other.unwrap()
        if is_tensor(X):
            from dmsgd.selection.cuda import CudaRows

            return CudaRows(X, Y, square)
        if Y is not None and (is_sparse(X) or is_sparse(Y)):
            from scipy import sparse

            X, Y = sparse.csr_array(X), sparse.csr_array(Y)
        rows = Rows(X, Y, square, self.workers)
        most = max(FEW_KEPT, PART_KEPT * X.size) if self.is_part and self.same else KEPT
        return rows.kept() if rows.n * rows.N <= min(most, KEPT) else rows

    def rows(self, chosen: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        return distances_to(self.F.take(chosen), self._rows)

    def near(self, item: int, square: float) -> BoolArray:
        one, X = self.F.take(np.array([item])), self.F.unwrap()
        return np.concatenate([found[:, 0] <= square for _, found in distances_to(one, X)])


def scale_beside(pool: Pool, near: FloatArray) -> float:
    """Return m: the median of squared distances to the nearest known item, within bounds."""
    apart = near[near > 0]
    found = max(float(np.median(apart)), least_scale(pool)) if apart.size else np.inf
    return min(pool.median, found)


def least_scale(pool: Pool) -> float:
    """Return the least m of which float32 shows the similarities, by some rows to be covered."""
    covered = pool.F if pool.other is None else pool.other
    rows = covered.take(sampled_pairs(covered.n)[0])
    if is_sparse(rows) and not abs(rows - rows[np.zeros(rows.shape[0], dtype=np.int64)]).max():
        return LEAST  # all are alike
    if not pool.sparse:
        rows = rows - np.median(rows, axis=0)  # about the mean of all, which one of few may move
    return max(LEAST, float(np.median(row_norms2(rows))) / FAR_IN_FLOAT32)


def scale_within(square: float, near: FloatArray) -> float:
    """Return the scale: at least the median of squared distances to the nearest candidate.

    Otherwise what lies far from all candidates would be like none of them.
    """
    return max(square, float(np.median(near)))


def in_memory(F: Features) -> Features:
    """Return features in memory or on a GPU."""
    return F.to_memory() if F.unwrap() is F else F


def distances_to(rows: Any, X: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Yield parts of X and their squared distances to `rows`, (part, rows)."""
    for part in slices(X.shape[0], max(1, AT_A_TIME // max(1, rows.shape[0]))):
        some = X[part]
        if is_tensor(some):
            there = some.new_tensor(as_array(rows), dtype=some.double().dtype)
            yield part, on_host(squared_distances(some.double(), there))
        else:
            yield part, np.asarray(squared_distances(some, rows))


@final
class MatrixPool(MemoryPool):
    """Similarities that are given, (n, N); squared distances are -log of them, the largest 1."""

    scalable = False

    def __init__(self, S: Any, workers: int) -> None:
        self.S = as_matrix(S, "X", allow_tiny=True)
        entries = self.S.data if is_sparse(self.S) else self.S
        if entries.size and entries.min() < 0:
            row, column = np.argwhere(self.S < 0)[0]
            raise InputError(
                f"X[{row}, {column}] is negative, but metric='precomputed' needs similarities, "
                f"not distances; pass np.exp(-D / np.median(D)) for squared distances D"
            )
        if not (largest := float(entries.max(initial=0.0))):
            raise InputError("all similarities are zero, so no item covers another")
        self.n, self.N = self.S.shape
        self.same = self.n == self.N
        if is_sparse(self.S):
            self._similarity: Similarity = Graph(self.S / largest, self.same)
        else:
            reserve(self.n * self.N * 3 // 2, f"{self.n:,} x {self.N:,} similarities", "use fewer")
            T = np.ascontiguousarray((self.S / largest).T, dtype=np.float32)
            self._similarity = Kept(T, self.same, workers, of_rows=False)
        self.largest = largest

    def similarity(self, square: float) -> Similarity:
        return self._similarity

    def squares(self, items: IntArray, chosen: IntArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            found = self.S[chosen][:, items] if is_sparse(self.S) else self.S[np.ix_(chosen, items)]
            return -np.log(as_array(found).T / self.largest)

    def near(self, item: int, square: float) -> BoolArray:
        return np.asarray(as_array(self.S[[item]])[0] / self.largest >= np.exp(-square))
