"""All pairs of rows that are near each other, found without comparing every pair.

Rows are projected on a few principal directions of a sample, and the length of what is left
becomes one more coordinate. No distance between these short rows is longer than between the rows
themselves: |u - v|² >= |Pu - Pv|² + (|u - Pu| - |v - Pv|)². So pairs that are far apart here need
no comparison. Short rows are compared by products in float32, with a margin for all rounding errors
on the way, and blocks of them that lie far apart are skipped. What is left is compared in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from dmsgd.features.products import FARTHEST, row_norms2, scale_rows
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, as_array, is_sparse, random_rows
from dmsgd.runtime.pieces import in_pieces, slices
from dmsgd.runtime.progress import Progress
from dmsgd.spectra.rounding import EPS

#: Rows that principal directions are taken from, fewer where they are long, and directions.
SAMPLE, LEAST, NUMBERS, DIRECTIONS = 512, 64, 2**25, 32
#: Rows in a block at least, blocks at most, and products that are computed at a time.
BLOCK, BLOCKS, PRODUCTS = 256, 4096, 2**20
#: After this many pairs, only those that join two groups are listed.
LISTED = 2**20
#: Numbers that are compared, and that are projected, at a time.
ENTRIES, PROJECTED = 2**18, 2**22
#: Share of the limit that is added for rounding errors of short rows.
MARGIN = 1e-3
#: The largest relative rounding error in float32.
SINGLE = 2.0**-24


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows u_i = factors_i X_i, where X is an array or a CSR array."""

    X: Matrix
    factors: FloatArray

    def take(self, items: IntArray) -> Matrix:
        """Return these rows."""
        return scale_rows(self.X[items], self.factors[items])

    def at_a_time(self, numbers: int) -> int:
        """Return how many rows have about so many entries."""
        n, d = self.X.shape
        return 1 + int(numbers / max(1.0, self.X.nnz / n if is_sparse(self.X) else d))

    def squares(self, one: IntArray, other: IntArray) -> FloatArray:
        """Return |u - v|² of these pairs of rows."""
        found = np.empty(one.size)
        for part in slices(one.size, self.at_a_time(ENTRIES)):
            with np.errstate(over="ignore"):  # of rows that are very far apart
                found[part] = row_norms2(self.take(one[part]) - self.take(other[part]))
        return found


def short_rows(rows: Rows, items: IntArray) -> tuple[npt.NDArray[np.float32], FloatArray]:
    """Return rows Y of a few numbers, whose distances are no longer than between the rows.

    Also returned is a slack for rounding errors: |u - v|² <= limit implies that
    |y - y'|² <= (1 + MARGIN) limit + 2 (slack + slack'), also as float32 computes it. With errors e
    and e' of y and y', |y - y'|² <= (1 + MARGIN) |u - v|² + (1 + 1 / MARGIN) (e + e')², and
    (e + e')² <= 2 (e² + e'²). The error of the rest is that of its square, at most
    32 d EPS |u - c|², before the root is taken.
    """
    d = rows.X.shape[1]
    size = int(np.clip(NUMBERS // d, LEAST, SAMPLE))
    sample = items[random_rows(items.size, size, np.random.default_rng(0))]

    def cut(some: IntArray) -> Matrix:
        U = rows.take(some)
        values = U.data if is_sparse(U) else U
        np.clip(values, -FARTHEST, FARTHEST, out=values)
        return U

    def centred(some: IntArray) -> Matrix:
        return cut(some) if is_sparse(rows.X) else cut(some) - centre  # sparse rows stay sparse

    centre = np.zeros(d) if is_sparse(rows.X) else cut(sample).mean(0)
    Z = centred(sample)
    V = np.linalg.eigh(as_array(Z @ Z.T))[1][:, ::-1][:, : min(max(1, size - 1), d, DIRECTIONS)]
    basis, far = np.linalg.qr(as_array(Z.T @ V))[0], float(np.linalg.norm(centre))
    parts, what = [], f"projections of {items.size:,} items"
    for some in in_pieces(items.size, rows.at_a_time(PROJECTED), what):
        U = centred(items[some])
        squares, Y = row_norms2(U), as_array(U @ basis)
        rest = np.sqrt(np.maximum(squares - row_norms2(Y), 0.0))
        short = np.column_stack([Y, rest]).astype(np.float32)
        errors = 32 * max(64, d) * EPS * (np.sqrt(squares) + np.sqrt(EPS) * far) ** 2
        products = 2 * (short.shape[1] + 8) * SINGLE * row_norms2(short.astype(np.float64))
        parts.append((short, (1.01 / MARGIN) * errors + products))
    short, slack = (np.concatenate(each) for each in zip(*parts, strict=True))
    return short, slack


def factors_of(
    Y: npt.NDArray[np.float32], slack: FloatArray, limit: float
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return A and B such that A_i · B_j >= 0 in float32 for all rows with |u_i - u_j|² <= limit.

    Without rounding, A_i · B_j = (limit - |y_i - y_j|²) / 2.
    """
    limit = (1 + 2 * MARGIN) * limit + float(np.finfo(np.float32).tiny)
    size = (limit / 4 + slack - row_norms2(Y.astype(np.float64)) / 2).astype(np.float32)
    one = np.ones_like(size)
    return np.column_stack([Y, size, one]), np.column_stack([Y, one, size])


@final
class Search:
    """Finds the pairs of `items` with |u - v|² <= limit.

    pairs:   pairs that were found, the smaller number first, and `squares` their squared distances,
             in parts. After LISTED pairs, only those that join two groups are added.
    closest: where none was found, the closest pair that was compared, and its squared distance.
    """

    def __init__(self, rows: Rows, items: IntArray, limit: float) -> None:
        self.rows, self.limit = rows, limit
        Y, slack = short_rows(rows, items)
        self.block = max(BLOCK, -(-items.size // BLOCKS))
        order = _strips(Y, self.block)
        self.items, Y, slack = items[order], Y[order], slack[order]
        self.A, self.B = factors_of(Y, slack, limit)
        starts = np.arange(0, items.size, self.block)
        self.low, self.high = (f.reduceat(Y, starts) for f in (np.minimum, np.maximum))
        self.slack = np.maximum.reduceat(slack, starts)
        self.closest: tuple[int, int, float] | None = None
        self.group: IntArray | None = None  # (n,), once there are LISTED pairs
        self.pairs, self.squares, self._count = [np.empty((0, 2), np.int64)], [np.empty(0)], 0

    def run(self) -> None:
        """Compare all pairs."""
        what = f"the search for near-duplicates among {self.items.size:,} items"
        blocks = np.random.default_rng(0).permutation(self.slack.size).tolist()
        total, done = sum(self.near_blocks(block).size for block in blocks), 0
        tell = Progress(what, "pass fewer items, such as X[::4]")
        for block, others in self._pieces(blocks):
            self._compare(block, others)
            done += others.size
            tell(done / total)

    def _pieces(self, blocks: list[int]) -> Iterator[tuple[int, IntArray]]:
        """Yield blocks, each with a few that are to be compared with it."""
        step = max(1, PRODUCTS // self.block**2)
        for block in blocks:
            others = self.near_blocks(block)
            for some in slices(others.size, step):
                yield block, others[some]

    def near_blocks(self, block: int) -> IntArray:
        """Return this block and later ones that are not far from it."""
        here, later = slice(block, block + 1), slice(block, None)
        gaps = np.maximum(self.low[later] - self.high[here], self.low[here] - self.high[later])
        near = (1 + 3 * MARGIN) * self.limit + 2 * (self.slack[here] + self.slack[later])
        return block + np.flatnonzero(row_norms2(np.maximum(gaps, 0.0)) <= near)

    def _compare(self, block: int, others: IntArray) -> None:
        """Compare the rows of a block with those of others, of which it may be the first itself."""
        own = slice(block * self.block, (block + 1) * self.block)
        columns = (others[:, None] * self.block + np.arange(self.block)).ravel()
        columns = columns[columns < self.items.size]
        G = self.A[own] @ self.B[columns].T
        if others[0] == block:
            G[np.tril_indices(len(G))] = -np.inf
        top = int(G.argmax())
        near = np.flatnonzero(G >= 0) if G.flat[top] >= 0 else np.array([top])
        if near.size > G.size // 16:
            near = self._nearer(own, columns, near)
        if near.size > 1 or G.flat[top] > -np.inf:
            row, column = np.divmod(near, columns.size)
            pairs = self.items[np.column_stack([own.start + row, columns[column]])]
            self._add(np.sort(pairs, axis=1))

    def _nearer(self, own: slice, columns: IntArray, near: IntArray) -> IntArray:
        """Return those of many candidates that are near by products of whole rows, or nearest."""
        U, parts = self.rows.take(self.items[own]), []
        with np.errstate(over="ignore", invalid="ignore"):  # NaN, of rows far apart, stays
            for some in slices(columns.size, self.rows.at_a_time(PROJECTED)):
                other = self.rows.take(self.items[columns[some]])
                lengths = row_norms2(U)[:, None] + row_norms2(other)
                rounding = 32 * max(64, U.shape[1]) * EPS * lengths
                parts.append(lengths - rounding - 2 * as_array(U @ other.T))
            least = np.hstack(parts).flat[near]
        return near[~(least > max(self.limit, float(np.fmin.reduce(least))))]

    def _add(self, pairs: IntArray) -> None:
        """Add those of these pairs that are near."""
        step = self.rows.at_a_time(ENTRIES)
        while len(pairs):
            if self.group is not None:
                one, other = self.group[pairs].T
                pairs = pairs[one != other]
            some, pairs = pairs[:step], pairs[step:]
            squares = self.rows.squares(*some.T)
            if len(some) and not self._count:
                best = int(squares.argmin())
                if self.closest is None or squares[best] < self.closest[2]:
                    self.closest = *some[best].tolist(), float(squares[best])
            near = np.flatnonzero(squares <= self.limit)
            if near.size and self.group is not None:
                near = near[joining(self.group[some[near]], self.group.size)]
            self.pairs.append(some[near])
            self.squares.append(squares[near])
            self._count += near.size
            if near.size and self._count >= LISTED:
                new = np.concatenate(self.pairs) if self.group is None else some[near]
                group = np.arange(self.rows.X.shape[0]) if self.group is None else self.group
                self.group = first_of_groups(group[new], group)


def first_of_groups(pairs: IntArray, group: IntArray) -> IntArray:
    """Return for each item the smallest number of its group, after pairs of groups were joined."""
    n = group.size
    graph = sparse.coo_array((np.ones(len(pairs), dtype=bool), tuple(pairs.T)), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    first = np.unique(labels, return_index=True)[1]
    return np.asarray(first[labels][group])


def joining(pairs: IntArray, n: int) -> IntArray:
    """Return the places of pairs that join n groups as all of these pairs do: a spanning forest."""
    first = np.unique(pairs, axis=0, return_index=True)[1]
    ends = pairs[first].T.astype(np.int32)  # SciPy 1.12 takes no others
    graph = sparse.coo_array((first + 1.0, tuple(ends)), shape=(n, n))
    return np.asarray(minimum_spanning_tree(graph.tocsr()).data, dtype=np.int64) - 1


def _strips(Y: npt.NDArray[np.float32], block: int) -> IntArray:
    """Return an order in which blocks are compact: strips by one coordinate, sorted by another."""
    strip, size = np.empty(len(Y), dtype=np.int64), block * max(1, round((len(Y) / block) ** 0.5))
    strip[np.argsort(Y[:, 0], kind="stable")] = np.arange(len(Y)) // size
    return np.lexsort((Y[:, min(1, Y.shape[1] - 1)], strip))
