"""Draws without eigenvectors in memory: rows of V = F B are computed when a draw needs them.

V would be as large as dense features and far larger than sparse ones. What is kept is F as given,
B, and the sums of V² over blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.inputs.progress import Progress
from dmsgd.inputs.threads import thread_count
from dmsgd.samplers.parallel import SHARES, parallel_map
from dmsgd.samplers.protocol import BlockRows, RowCallbacks, RowSource


@final
@dataclass(frozen=True, eq=False)
class DenseRows:
    """Row i of F is scale_i X_i; with `codes`, extra_i in column d + codes_i of the row, too."""

    X: npt.NDArray[Any]
    scale: FloatArray
    extra: FloatArray | None = None
    codes: IntArray | None = None

    def take(self, items: IntArray, width: int) -> FloatArray:
        """Return F[items], which has `width` columns."""
        out, d = np.zeros((items.size, width)), self.X.shape[1]
        np.multiply(self.X[items], self.scale[items, None], out=out[:, :d])
        if self.extra is not None and self.codes is not None:
            out[np.arange(items.size), d + self.codes[items]] = self.extra[items]
        return out

    def scaled(self, factors: FloatArray) -> DenseRows:
        """Return the same with row i times factors[i]."""
        extra = None if self.extra is None else self.extra * factors
        return replace(self, scale=self.scale * factors, extra=extra)

    def labelled(self, codes: IntArray, w: float) -> DenseRows | None:
        """Return (1 - w) times the same, and w in the column of the code; None if it has codes."""
        if self.codes is not None:
            return None
        n, scale = self.X.shape[0], self.scale * (1 - w)
        return DenseRows(self.X, scale, np.full(n, w), np.ascontiguousarray(codes, dtype=np.int64))


@final
@dataclass(frozen=True)
class SparseRows:
    """The three arrays of a CSR matrix F, (n, d), in the types that compiled loops read."""

    indptr: IntArray
    indices: npt.NDArray[np.uint32]
    data: FloatArray

    @classmethod
    def of(cls, F: Matrix) -> SparseRows:
        """Return those of a matrix; only arrays of another type are copied."""
        F = F.tocsr()
        short = F.indices.dtype == np.int32  # none is negative
        indices = F.indices.view(np.uint32) if short else F.indices.astype(np.uint32)
        return cls(F.indptr.astype(np.int64), indices, F.data)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.indptr.size - 1

    @property
    def arrays(self) -> tuple[IntArray, npt.NDArray[np.uint32], FloatArray]:
        """The three arrays."""
        return self.indptr, self.indices, self.data

    def block_sums(
        self, columns: FloatArray, weights: FloatArray, weighted: FloatArray, workers: int = 1
    ) -> FloatArray:
        """Return the sums of V² before each row block, V = F columns.T for at most BLOCK columns.

        Shape (columns, row blocks + 1). V² @ weights is added to `weighted`, (n,).
        """
        from dmsgd.compiled.computed_rows import SPARSE_ROW_BLOCK, sparse_block_sums
        from dmsgd.compiled.simd import BLOCK

        (count, d), blocks = columns.shape, -(-self.n // SPARSE_ROW_BLOCK)
        sums, tile, factors = np.zeros((count, blocks + 1)), np.zeros((d, BLOCK)), np.zeros(BLOCK)
        tile[:, :count], factors[:count] = columns.T, weights

        def work(part: tuple[int, int]) -> None:
            sparse_block_sums(
                *self.arrays, self.n, tile, count, factors, *part, sums, weighted,
                np.empty(2 * BLOCK),
            )  # fmt: skip

        parts = 1 if workers == 1 else min(SHARES * workers, max(blocks, 1))
        bounds = np.linspace(0, blocks, parts + 1).astype(int).tolist()
        parallel_map(work, list(pairwise(bounds)), workers)
        return np.cumsum(sums, axis=1, out=sums)


def tiles(r: int) -> list[slice]:
    """Return slices of range(r) that `SparseRows.block_sums` takes."""
    from dmsgd.compiled.simd import BLOCK

    return [slice(first, min(first + BLOCK, r)) for first in range(0, r, BLOCK)]


@final
@dataclass(frozen=True, eq=False)
class ComputedRows(RowSource):
    """V = F B for dense F: `rows` gives single rows, `features` all of them in blocks.

    columns: the columns of B, one after the other, (r, D).
    sums:    of V² before each row block and at the end, (r, row blocks + 1); see `block_sums`.

    Blocks of `features` begin at multiples of `compiled.computed_rows.DENSE_ROW_BLOCK` rows.
    """

    features: BlockRows
    rows: DenseRows
    columns: FloatArray
    sums: FloatArray | None = None

    def block_sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `sums` and V² @ weights, (n,): one product F B, block by block."""
        from dmsgd.compiled.computed_rows import DENSE_ROW_BLOCK

        n, r = self.features.n, self.columns.shape[0]
        sums, weighted = np.zeros((r, -(-n // DENSE_ROW_BLOCK) + 1)), np.empty(n)
        work = partial(_dense_block_sums, B=self.columns.T, weights=weights, step=DENSE_ROW_BLOCK)
        for start, (part, b) in zip(
            self.features.bounds.tolist(),
            self.features.map_blocks(work, "block_sums"),
            strict=False,
        ):
            first = start // DENSE_ROW_BLOCK + 1
            sums[:, first : first + part.shape[0]] = part.T
            weighted[start : start + b.size] = b
        return np.cumsum(sums, axis=1, out=sums), weighted

    def with_sums(self, sums: FloatArray) -> ComputedRows:
        """Return the same, ready for draws."""
        return replace(self, sums=sums)

    def callbacks(self) -> RowCallbacks:
        """Return the compiled functions."""
        from dmsgd.compiled.computed_rows import begin_dense, gather_dense, locate

        return RowCallbacks(locate.address, gather_dense.address, begin_dense.address)

    def arguments(self, k: int) -> tuple[IntArray, Any]:
        """Return sizes and addresses, and the scratch that they point into."""
        from dmsgd.compiled.computed_rows import DENSE_ROW_BLOCK
        from dmsgd.compiled.jit import address
        from dmsgd.compiled.linear_algebra import PANEL, product
        from dmsgd.compiled.simd import BLOCK

        rows, (n, d) = self.rows, self.rows.X.shape
        chosen, transposed = np.zeros((k + PANEL, self.columns.shape[1])), np.zeros((d, BLOCK))
        common, totals = _common_arguments(n, self.columns, self.sums, chosen, DENSE_ROW_BLOCK)
        labels = (0, 0)
        if rows.extra is not None and rows.codes is not None:
            labels = address(rows.extra, float), address(rows.codes, np.int64)
        numbers = [
            *common, 0, 0, 0, d, int(rows.X.dtype == np.float32), address(rows.X, rows.X.dtype),
            address(rows.scale, float), *labels, address(transposed, float), product.address,
        ]  # fmt: skip
        return np.array(numbers, dtype=np.int64), (chosen, transposed, totals)


def _common_arguments(
    n: int, columns: FloatArray, sums: FloatArray | None, chosen: FloatArray, row_block: int
) -> tuple[list[int], FloatArray]:
    """Return the first arguments of `compiled/computed_rows.py`, and the totals in them."""
    from dmsgd.compiled.jit import address

    assert sums is not None
    totals = sums[:, -1].copy()
    where = (address(array, float) for array in (columns, sums, chosen))
    sizes = n, columns.shape[1], row_block, sums.shape[1] - 1
    return [address(totals, float), *sizes, *where], totals


def _dense_block_sums(
    block: FloatArray, B: FloatArray, weights: FloatArray, step: int
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of (F B)² over every `step` rows of a block, and (F B)² @ weights.

    The last sum may be over fewer rows.
    """
    squares = block @ B
    squares *= squares
    return np.add.reduceat(squares, np.arange(0, len(block), step), axis=0), squares @ weights


@final
@dataclass(frozen=True, eq=False)
class ComputedSparseRows(RowSource):
    """V = F B for sparse F; `columns` and `sums` are as in `ComputedRows`."""

    rows: SparseRows
    columns: FloatArray
    sums: FloatArray | None = None

    @classmethod
    def of(cls, F: Matrix, columns: FloatArray) -> ComputedSparseRows:
        """Return V = F B; the entries of F are not copied."""
        return cls(SparseRows.of(F), np.ascontiguousarray(columns))

    def block_sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `sums` and V² @ weights, (n,): one product F B, a few columns at a time."""
        from dmsgd.compiled.computed_rows import SPARSE_ROW_BLOCK

        n, r, cores = self.rows.n, len(self.columns), thread_count(-1)
        sums, weighted = np.empty((r, -(-n // SPARSE_ROW_BLOCK) + 1)), np.zeros(n)
        tell = Progress(f"the tables of {n:,} items x {r:,} eigenvectors")
        for tile in tiles(r):
            part = self.columns[tile], weights[tile], weighted
            sums[tile] = self.rows.block_sums(*part, cores)
            tell(min(1.0, tile.stop / r))
        return sums, weighted

    def with_sums(self, sums: FloatArray) -> ComputedSparseRows:
        """Return the same, ready for draws."""
        return replace(self, sums=sums)

    def callbacks(self) -> RowCallbacks:
        """Return the compiled functions."""
        from dmsgd.compiled.computed_rows import begin_sparse, gather_sparse, locate

        return RowCallbacks(locate.address, gather_sparse.address, begin_sparse.address)

    def arguments(self, k: int) -> tuple[IntArray, Any]:
        """Return sizes and addresses, and the scratch that they point into."""
        from dmsgd.compiled.computed_rows import SPARSE_ROW_BLOCK
        from dmsgd.compiled.jit import address
        from dmsgd.compiled.simd import BLOCK

        chosen = np.zeros((self.columns.shape[1] + 1, -(-k // BLOCK) * BLOCK))
        common, totals = _common_arguments(
            self.rows.n, self.columns, self.sums, chosen, SPARSE_ROW_BLOCK
        )
        numbers = [*common, *(address(array, array.dtype) for array in self.rows.arrays)]
        return np.array(numbers, dtype=np.int64), (chosen, totals)


def find_sparse(
    F: Matrix, basis: FloatArray, question: Any, pi: FloatArray | None
) -> tuple[IntArray, FloatArray, FloatArray | None]:
    """Return `dmsgd.samplers.blocks.answer_block` of sparse rows F.

    Only the columns of V = F basis that are needed are computed, a few at a time; with π all.
    """
    from dmsgd.compiled.computed_rows import locate, sparse_rows

    rests, numbers, J, draw = question
    numbers, J, draw = (part.astype(np.int64) for part in (numbers, J, draw))
    rows, columns = SparseRows.of(F), np.ascontiguousarray(basis.T)
    (r, d), k = columns.shape, J.shape[1]
    order = np.argsort(numbers, kind="stable")
    ordered, targets = numbers[order], rests[order]
    needed = np.unique(ordered) if pi is None else np.arange(r)
    weights, weighted = np.zeros(r) if pi is None else pi, np.zeros(rows.n)
    found, items = np.empty(numbers.size, dtype=np.int64), np.empty(numbers.size, dtype=np.int64)
    for tile in tiles(needed.size):
        mine = needed[tile]
        sums = rows.block_sums(columns[mine], weights[mine], weighted)
        first, last = np.searchsorted(ordered, (mine[0], mine[-1] + 1)).tolist()
        which = np.searchsorted(mine, ordered[first:last])
        source = ComputedSparseRows(rows, columns[mine], sums)
        arguments, _buffers = source.arguments(0)
        locate(arguments, which, targets[first:last], found[first:last], last - first)
    items[order] = found
    X, source = np.empty((items.size, k)), ComputedSparseRows(rows, columns, np.empty((r, 1)))
    arguments, _buffers = source.arguments(k)
    sparse_rows(arguments, J, k, draw, items, np.full(d, -1), X, items.size)
    return items, X, None if pi is None else weighted
