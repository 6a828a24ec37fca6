"""All pairs of rows that are near each other, found without comparing every pair.

Rows are centred and projected on a few principal directions of a sample, and the length of what is
left becomes one more coordinate. No distance between these short rows is longer than between the
rows themselves: |u - v|² >= |Pu - Pv|² + (|u - Pu| - |v - Pv|)². So pairs that are far apart here
need no comparison. Short rows are compared by products in float32, with a margin for all rounding
errors on the way, and blocks of them that lie far apart are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.features.products import row_norms2, scale_rows
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, as_array, is_sparse, random_rows
from dmsgd.runtime.progress import SPEED, Progress, announce
from dmsgd.samplers.factored_rows import SparseRows
from dmsgd.spectra.rounding import EPS

#: Rows that principal directions are taken from, fewer where they are long; as many others decide
#: how many directions are used.
SAMPLE, LEAST, NUMBERS = 512, 64, 2**25
#: Numbers of directions that are tried, and numbers in all directions together, at most.
DIRECTIONS, BASIS = (8, 16, 32, 64, 128), 2**22
#: Times in units of a multiplication of short rows: of a pair of short rows beside these, and of
#: comparing two rows, beside and for each entry. Measured on a Neoverse-N1.
SHORT_PAIR, PAIR, PAIR_ENTRY = 8, 1000, 6
#: Rows in a block at least, blocks at most, and products that are computed at a time.
BLOCK, BLOCKS, PRODUCTS = 256, 4096, 2**20
#: After this many pairs, only those that join two groups are listed.
LISTED = 2**20
#: Entries that are compared, and numbers that are projected, at a time: well below a second.
ENTRIES, PROJECTED = 2**28, 2**22
#: The time of a search is estimated after this many seconds, or this share of those it may take.
TRIAL, SHARE = 15.0, 1 / 20
#: Entries of rows are cut to this size for the bound, so that their squares are no float32 inf.
FARTHEST = 1e12
#: Share of the limit that is added for rounding errors of short rows.
MARGIN = 1e-3
#: The largest relative rounding error in float32.
SINGLE = 2.0**-24


@final
class TooLong(Exception):
    """Raised by a search that is going to take longer than it may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows u_i = factors_i X_i, where X is an array or a CSR array."""

    X: Matrix
    factors: FloatArray

    def take(self, items: IntArray) -> Matrix:
        """Return these rows, with entries of at most FARTHEST."""
        U = scale_rows(self.X[items], self.factors[items])
        values = U.data if is_sparse(U) else U
        np.clip(values, -FARTHEST, FARTHEST, out=values)
        return U

    def entries(self) -> float:
        """Return the mean number of entries of a row, at least 1."""
        n, d = self.X.shape
        return float(max(1.0, self.X.nnz / n) if is_sparse(self.X) else d)

    def arguments(self) -> tuple[Any, ...]:
        """Return what compiled loops need of the rows."""
        d = self.X.shape[1]
        if not is_sparse(self.X):
            return np.ascontiguousarray(self.X), 0, 0, self.factors, d, 0
        indptr, indices, data = SparseRows.of(self.X)
        return data, indptr, indices, self.factors, d, 1

    def squares(self, one: IntArray, other: IntArray) -> FloatArray:
        """Return |u - v|² of these pairs of rows."""
        from dmsgd.compiled.duplicates import pair_squares

        out, given, step = np.empty(one.size), self.arguments(), 1 + int(ENTRIES / self.entries())
        for first in range(0, one.size, step):
            part = slice(first, first + step)
            pair_squares(one[part], other[part], out[part].size, *given, out[part])
        return out


@final
class ShortRows:
    """Rows of a few numbers, between which no distance is longer than between the rows.

    Y:     (n, directions + 1) in float32.
    slack: (n,) for rounding errors: |u - v|² <= limit implies that
           |y - y'|² <= (1 + MARGIN) limit + 2 (slack + slack'), also as float32 computes it.
    """

    def __init__(self, rows: Rows, items: IntArray, limit: float) -> None:
        size = int(np.clip(NUMBERS // rows.X.shape[1], LEAST, SAMPLE))
        sample = items[random_rows(items.size, 2 * size, np.random.default_rng(0))]
        some = rows.take(sample[::2])
        self.centre = np.asarray(some.mean(0)).ravel()
        self.basis = _principal_directions(some, self.centre)
        self._choose(rows.take(sample[1::2]), limit, PAIR + PAIR_ENTRY * rows.entries())
        step = 1 + int(PROJECTED / max(rows.entries(), self.basis.shape[1]))
        tell, parts = Progress(f"projections of {items.size:,} items"), []
        for first in range(0, items.size, step):
            parts.append(self._shorten(rows.take(items[first : first + step])))
            tell(min(1.0, (first + step) / items.size))
        self.Y, self.slack = (np.concatenate(each) for each in zip(*parts, strict=True))

    def _choose(self, some: Matrix, limit: float, compared: float) -> None:
        """Keep as many directions as take the least time, by the pairs of some rows."""
        (Y, squares, _), count, most = self._project(some), some.shape[0], self.basis.shape[1]
        costs = {}
        for p in {min(each, most) for each in DIRECTIONS}:
            own = row_norms2(Y[:, :p])
            rest = _rest(squares, own)
            apart = own[:, None] + own - 2 * Y[:, :p] @ Y[:, :p].T + (rest[:, None] - rest) ** 2
            near = np.count_nonzero(np.triu(apart <= limit, 1)) / max(1, count * (count - 1) / 2)
            costs[p] = SHORT_PAIR + p + compared * near
        self.basis = self.basis[:, : min(costs, key=lambda p: (costs[p], p))]

    def _project(self, U: Matrix) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (u - c) Q, |u - c|², and lengths that their rounding errors are relative to."""
        far = float(np.linalg.norm(self.centre))
        if is_sparse(U):
            Y = as_array(U @ self.basis) - self.centre @ self.basis
            squares = np.maximum(row_norms2(U) - 2 * (U @ self.centre) + far**2, 0.0)
            return Y, squares, np.sqrt(squares) + 2 * far
        U -= self.centre
        squares = row_norms2(U)
        return U @ self.basis, squares, np.sqrt(squares) + np.sqrt(EPS) * far

    def _shorten(self, U: Matrix) -> tuple[npt.NDArray[np.float32], FloatArray]:
        """Return Y and slack of these rows.

        With errors e and e' of y and y', |y - y'|² <= (1 + MARGIN) |u - v|² +
        (1 + 1 / MARGIN) (e + e')², and (e + e')² <= 2 (e² + e'²). The error of the rest is that of
        its square, at most 32 d EPS |u - c|², before the root is taken.
        """
        Y, squares, lengths = self._project(U)
        short = np.column_stack([Y, _rest(squares, row_norms2(Y))]).astype(np.float32)
        errors = 32 * max(64, self.centre.size) * EPS * lengths**2
        products = 2 * (short.shape[1] + 8) * SINGLE * row_norms2(short.astype(np.float64))
        return short, (1.01 / MARGIN) * errors + products


def _rest(squares: FloatArray, own: FloatArray) -> FloatArray:
    """Return the length of what directions leave of rows with these squared lengths."""
    return np.asarray(np.sqrt(np.maximum(squares - own, 0.0)))


def _principal_directions(some: Matrix, centre: FloatArray) -> FloatArray:
    """Return an orthonormal basis, in columns, from the largest eigenvectors of (Z Zᵀ), Z = U - c.

    Sparse rows stay sparse.
    """
    count, d = some.shape
    most = min(count - 1, d, DIRECTIONS[-1], max(1, BASIS // d))
    side = as_array(some @ centre)
    G = as_array(some @ some.T) - side[:, None] - side + centre @ centre
    V = np.linalg.eigh(G)[1][:, ::-1][:, :most]
    return np.linalg.qr(as_array(some.T @ V) - np.outer(centre, V.sum(0)))[0]


@final
class Search:
    """Finds the pairs of `items` with |u - v|² <= limit, and puts them into groups.

    parent:  (n,) another item of each item's group with a smaller number; of the first, itself.
    pairs:   (p, 2) pairs that were found, and `squares` their squared distances, (p,).
    closest: where none was found, the closest pair that was seen, and its squared distance.
    """

    def __init__(self, rows: Rows, items: IntArray, parent: IntArray, limit: float) -> None:
        self.rows, self.given, self.parent, self.limit = rows, rows.arguments(), parent, limit
        short, n = ShortRows(rows, items, limit), items.size
        self.block = max(BLOCK, -(-n // BLOCKS))
        order = _strips(short.Y, self.block)
        self.items, self.Y, slack = items[order], short.Y[order], short.slack[order]
        self.apart = (1 + 2 * MARGIN) * limit + float(np.finfo(np.float32).tiny)
        sizes = row_norms2(self.Y.astype(np.float64)) / 2 - slack
        self.right = sizes.astype(np.float32)
        self.left = (sizes - self.apart / 2).astype(np.float32)
        starts = np.arange(0, n, self.block)
        self.low, self.high = (f.reduceat(self.Y, starts) for f in (np.minimum, np.maximum))
        self.slack, self.sizes = np.maximum.reduceat(slack, starts), np.diff(starts, append=n)
        room = n + min(LISTED, n * (n - 1) // 2)
        self.pairs, self.squares = np.empty((room, 2), dtype=np.int64), np.empty(room)
        self.state, self.least = np.zeros(10, dtype=np.int64), np.array([np.inf])
        self.closest: tuple[int, int, float] | None = None

    def run(self, seconds: float) -> None:
        """Compare all pairs; raise `TooLong` after a while if that takes longer than `seconds`."""
        from dmsgd.compiled.duplicates import FIRST, FOUND, SECOND

        total = sum(self.sizes[self._others(block)].sum() for block in range(self.sizes.size))
        what = f"the search for near-duplicates among {self.items.size:,} items"
        tell, began, first, done, tried = Progress(what), 0.0, 0, 0, False
        for block, others in self._pieces():
            self._compare(block, others)
            done += self.sizes[others].sum()
            tell(done / total)
            passed = time.monotonic() - began
            if not first:  # the clock starts here: the first piece may have waited for the compiler
                began, first = time.monotonic(), done
            elif not tried and done < total and passed > min(TRIAL, SHARE * seconds):
                tried, expected = True, passed * total / (done - first)
                if expected > seconds:
                    raise TooLong(expected)
                size = self.Y.size // 2 + 3 * self.squares.size
                advice = "with fewer minutes= a part of the items is searched"
                announce(SPEED * expected, size, what, advice)
        found = int(self.state[FOUND])
        self.pairs, self.squares = self.pairs[:found], self.squares[:found]
        if np.isfinite(self.least[0]):
            self.closest = *self.state[[FIRST, SECOND]].tolist(), float(self.least[0])

    def _pieces(self) -> Iterator[tuple[int, IntArray]]:
        """Yield blocks, in random order, each with a few that are to be compared with it."""
        step = max(1, PRODUCTS // self.block**2)
        for block in np.random.default_rng(0).permutation(self.sizes.size).tolist():
            others = self._others(block)
            for first in range(0, others.size, step):
                yield block, others[first : first + step]

    def _others(self, block: int) -> IntArray:
        """Return this block and later ones that are not far from it."""
        here, later = slice(block, block + 1), slice(block, None)
        gaps = np.maximum(self.low[later] - self.high[here], self.low[here] - self.high[later])
        near = self.apart + 2 * (self.slack[here] + self.slack[later])
        return block + np.flatnonzero(row_norms2(np.maximum(gaps, 0.0)) <= near)

    def _compare(self, block: int, others: IntArray) -> None:
        """Compare the rows of a block with those of others, of which it may be the first itself."""
        from dmsgd.compiled.duplicates import compare_block

        own = slice(block * self.block, (block + 1) * self.block)
        columns = (others[:, None] * self.block + np.arange(self.block)).ravel()
        columns = columns[columns < self.items.size]
        G = self.Y[own] @ self.Y[columns].T
        pause = 1 + int(ENTRIES / self.rows.entries())
        self.state[:7] = len(G), columns.size, others[0] == block, LISTED, pause, 0, 0
        sides = self.left[own], self.right[columns], self.items[own], self.items[columns]
        found = self.parent, self.pairs, self.squares, self.least
        while compare_block(G, *sides, self.state, *self.given, self.limit, self.apart, *found):
            pass


def _strips(Y: npt.NDArray[np.float32], block: int) -> IntArray:
    """Return an order in which blocks are compact: strips by one coordinate, sorted by another."""
    strip, size = np.empty(len(Y), dtype=np.int64), block * max(1, round((len(Y) / block) ** 0.5))
    strip[np.argsort(Y[:, 0], kind="stable")] = np.arange(len(Y)) // size
    return np.lexsort((Y[:, min(1, Y.shape[1] - 1)], strip))
