"""How similar candidates are to the items that are to be covered, on the processor.

Rows of `Rows` are computed when they are needed, those of `Kept` are in memory, and a `Graph` has
few that are not zero. Each tells what candidates would add to coverage.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np

from dmsgd.features.products import float32_rows, multiply
from dmsgd.inputs.arrays import FloatArray, IntArray, is_sparse
from dmsgd.runtime.pieces import slices
from dmsgd.runtime.threads import parallel_map

#: Item numbers, None for all.
Some = IntArray | None
#: Rows of a product, and columns of one with many rows; candidates or items that one thread takes
#: at a time. Constants, so that sums are rounded in one way.
TILE, WIDTH, SHARE = 512, 256, 2**11
#: Pairs of items up to which NumPy computes what they add to coverage, and similarities: it is
#: about as fast up to here, and compiled loops take half a second to load.
SMALL, PLAIN = 2**16, 2**20
#: Multiplications in one go, about a second, so that Ctrl-C works.
PRODUCTS = 2.0**34
#: Items of which the similarities to one candidate are computed in one go.
LONG = 2**15
#: Similarities that are smaller than this are zero.
LEAST = np.float32(2.0**-126)


class Similarity(ABC):
    """Similarities of n candidates to N items, 0 to 1.

    same:    whether candidate i is item i.
    of_rows: whether these are similarities of rows: 1 with itself and with copies alone.
    workers: threads that share the work; results do not depend on their number.
    """

    n: int
    N: int
    same: bool
    of_rows: bool = True
    workers: int = 1
    xp: Any = np

    @property
    def symmetric(self) -> bool:
        """Whether these are similarities of rows to themselves."""
        return self.same and self.of_rows

    @abstractmethod
    def gained(self, candidates: Some, items: Some, low: Any, high: Any, weights: Any) -> Any:
        """Return Σ_j w_j max(min(S_ij, high_j) - low_j, 0) for the candidates i; j is in `items`.

        low, high and weights are float32 arrays of the size of `items`; high may be one number.
        """

    @abstractmethod
    def row(self, candidate: int) -> Any:
        """Return the similarities of a candidate to all items in float32, shape (N,)."""

    def vector(self, values: Any, kind: Any) -> Any:
        """Return numbers where the similarities are computed."""
        return np.asarray(values, dtype=kind)

    def largest(self, scores: Any, count: int) -> Any:
        """Return the places of the largest scores, in descending order; ties in ascending order."""
        if count < scores.size:
            least = np.partition(scores, scores.size - count)[scores.size - count]
            places = np.flatnonzero(scores >= least)
        else:
            places = np.arange(scores.size)
        return places[np.argsort(-scores[places], kind="stable")][:count]

    def places(self, mask: Any) -> Any:
        """Return where a mask is true."""
        return np.flatnonzero(mask)

    def total(self, values: Any) -> float:
        """Return a sum in float64."""
        return float(values.sum(dtype=np.float64))

    def host(self, values: Any) -> Any:
        """Return numbers as an array."""
        return values


@final
class Rows(Similarity):
    """exp(-d² / square) between rows, computed in float32 when it is needed."""

    def __init__(self, X: Any, Y: Any, square: float, workers: int = 1) -> None:
        """Store X, the candidates, and Y, what is to be covered, None for X."""
        self.same, self.workers, self.square = Y is None, workers, square
        covered = X if Y is None else Y
        centre = None if is_sparse(X) else covered.mean(0)  # rounding is smaller
        self.X, self.left = self._scaled(X, centre)
        self.Y, self.right = (self.X, self.left) if Y is None else self._scaled(Y, centre)
        self.n, self.N = self.left.size, self.right.size
        self._local = threading.local()

    def _scaled(self, X: Any, centre: Any) -> tuple[Any, Any]:
        """Return x and s in float32 such that S_ij = 2^(x_i·y_j - s_i - s_j)."""
        X, squares = float32_rows(X, centre, np.sqrt(2 / np.log(2) / self.square))
        return X, squares / 2

    def _product(self, A: Any, B: Any) -> Any:
        """Return A Bᵀ; the next call of this thread overwrites it."""
        size = A.shape[0] * B.shape[0]
        G = self._buffer()[:size].reshape(A.shape[0], B.shape[0])
        multiply(A, B, G)
        return G

    def _buffer(self) -> Any:
        """Return a tile's numbers, which this thread may overwrite."""
        if not hasattr(self._local, "buffer"):
            self._local.buffer = np.empty(TILE**2, dtype=np.float32)
        return self._local.buffer

    def gained(self, candidates: Some, items: Some, low: Any, high: Any, weights: Any) -> Any:
        # Tiles of constant width are added in order, so that sums are rounded in one way.
        some, everything = candidates is not None, slice(None)
        A, left = ((part[candidates if some else everything]) for part in (self.X, self.left))
        B, right = ((part[everything if items is None else items]) for part in (self.Y, self.right))
        least = np.log2(np.maximum(low, LEAST)) + right
        high = np.full_like(low, high) if np.ndim(high) == 0 else high
        limits = right, least, low, high, weights
        tile = TILE, TILE if left.size <= TILE else WIDTH

        def add(mine: slice, theirs: slice, out: FloatArray) -> None:
            each = [values[theirs] for values in limits]
            self._add_gains(A[mine], left[mine], B[theirs], each, tile, out)

        if left.size <= TILE:  # threads share the items
            shares = slices(right.size, SHARE)
            parts = np.zeros((len(shares) + 1, left.size))

            def add_to_all(at: int) -> None:
                add(everything, shares[at], parts[at])

            parallel_map(add_to_all, range(len(shares)), self.workers)
            return np.asarray(np.cumsum(parts, axis=0)[-1])
        found = np.zeros(left.size)
        at_a_time = WIDTH * max(1, int(PRODUCTS / (SHARE * WIDTH * A.shape[1])))

        def add_all(mine: slice) -> None:
            for theirs in slices(right.size, at_a_time):
                add(mine, theirs, found[mine])

        parallel_map(add_all, slices(left.size, SHARE), self.workers)
        return found

    def _add_gains(
        self, A: Any, left: Any, B: Any, limits: list[Any], tile: tuple[int, int], out: FloatArray
    ) -> None:
        """Add to `out` what rows A add to rows B; their products are made tile by tile."""
        from dmsgd.compiled.cover import add_gains, add_gains_of_rows

        if not is_sparse(A):
            add_gains_of_rows(A, left, B, *limits, tile, self._buffer(), out)
            return
        for mine in slices(left.size, tile[0]):
            for theirs in slices(B.shape[0], tile[1]):
                G = self._product(A[mine], B[theirs])
                add_gains(G, left[mine], *[values[theirs] for values in limits], out[mine])

    def row(self, candidate: int) -> Any:
        from dmsgd.compiled.cover import similarities

        S, one = np.empty((1, self.N), dtype=np.float32), self.X[[candidate]]

        def compute(first: int) -> None:
            part = slice(first, first + LONG)
            some = np.empty((1, self.right[part].size), dtype=np.float32)
            multiply(one, self.Y[part], some)
            similarities(some, self.left[[candidate]], self.right[part])
            S[:, part] = some

        parallel_map(compute, range(0, self.N, LONG), self.workers)
        if self.same:
            S[0, candidate] = 1
        return S[0]

    def kept(self) -> Kept:
        """Return the same similarities, all of them in memory."""
        T = np.empty((self.N, self.n), dtype=np.float32)
        if self.n * self.N <= PLAIN:
            multiply(self.Y, self.X, T)
            T -= self.left
            T -= self.right[:, None]
            np.exp2(np.minimum(T, 0, out=T), out=T)
            if self.same:
                np.fill_diagonal(T, 1)
            return Kept(T, self.same, self.workers)
        from dmsgd.compiled.cover import similarities

        tall, wide = slices(self.N, TILE), slices(self.n, TILE)

        def compute(at: int) -> None:
            theirs = tall[at]
            for mine in wide[at:] if self.same else wide:
                S = self._product(self.Y[theirs], self.X[mine])
                similarities(S, self.right[theirs], self.left[mine])
                T[theirs, mine] = S
                if self.same:
                    T[mine, theirs] = S.T

        parallel_map(compute, range(len(tall)), self.workers)
        if self.same:
            np.fill_diagonal(T, 1)
        return Kept(T, self.same, self.workers)


@final
class Kept(Similarity):
    """Similarities in memory: T[j, i] is that of candidate i and item j."""

    def __init__(self, T: Any, same: bool, workers: int = 1, of_rows: bool = True) -> None:
        self.T, self.same, self.workers, self.of_rows = T, same, workers, of_rows
        self.N, self.n = T.shape

    def gained(self, candidates: Some, items: Some, low: Any, high: Any, weights: Any) -> Any:
        if candidates is not None or self.n * self.N <= SMALL:
            if candidates is not None and self.symmetric and items is None:
                S = self.T[candidates].T  # which is contiguous
            else:
                S = self.T if items is None else self.T[items]
                S = S if candidates is None else S[:, candidates]
            parts = np.minimum(S.T, high) - low
            return np.asarray(np.maximum(parts, 0, out=parts) @ weights.astype(float))
        from dmsgd.compiled.cover import add_kept_gains

        items = np.arange(self.N) if items is None else items
        high = np.broadcast_to(np.float32(high), low.shape) if np.ndim(high) == 0 else high
        found = np.zeros(self.n)

        def add(first: int) -> None:
            last = min(first + 4 * TILE, self.n)
            add_kept_gains(self.T, items, low, high, weights, first, last, found)

        parallel_map(add, range(0, self.n, 4 * TILE), self.workers)
        return found

    def row(self, candidate: int) -> Any:
        if self.symmetric:
            return self.T[candidate]
        return np.ascontiguousarray(self.T[:, candidate])


@final
class Graph(Similarity):
    """Similarities of which few are not zero: a sparse (n, N) matrix, such as a k-NN graph."""

    of_rows = False

    def __init__(self, S: Any, same: bool) -> None:
        self.by_candidate, self.by_item, self.same = S, S.tocsc(), same
        self.n, self.N = S.shape

    def gained(self, candidates: Some, items: Some, low: Any, high: Any, weights: Any) -> Any:
        if candidates is None:
            part = self.by_item if items is None else self.by_item[:, items]
            column, place = np.repeat(np.arange(low.size), np.diff(part.indptr)), part.indices
            size = self.n
        else:
            part = self.by_candidate[candidates]
            column, size = part.indices, candidates.size
            place = np.repeat(np.arange(size), np.diff(part.indptr))
        high = high if np.ndim(high) == 0 else high[column]
        parts = weights[column] * np.maximum(np.minimum(part.data, high) - low[column], 0)
        return np.bincount(place, parts, minlength=size).astype(float)

    def row(self, candidate: int) -> Any:
        row = self.by_candidate[[candidate]]
        found = np.zeros(self.N, dtype=np.float32)
        found[row.indices] = row.data
        return found
