"""Draws without eigenvectors in memory: rows of V = F B are computed when a draw needs them.

V would be as large as dense features and far larger than sparse ones. What is kept is F as given,
B, and the sums of V² over blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.runtime.progress import Progress
from dmsgd.runtime.threads import thread_count
from dmsgd.samplers.contract import RowArguments
from dmsgd.samplers.parallel import SHARES, parallel_map


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
class SparseRows(NamedTuple):
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

    def tile_sums(
        self, columns: FloatArray, weights: FloatArray, weighted: FloatArray, workers: int = 1
    ) -> FloatArray:
        """Return the sums of V² before each row block, V = F columns.T for at most BLOCK columns.

        Shape (columns, row blocks + 1). V² @ weights is added to `weighted`, (n,).
        """
        from dmsgd.compiled.computed_rows import SPARSE_ROW_BLOCK, sparse_block_sums
        from dmsgd.compiled.llvm import BLOCK

        (count, d), blocks = columns.shape, -(-self.n // SPARSE_ROW_BLOCK)
        sums, tile, factors = np.zeros((count, blocks + 1)), np.zeros((d, BLOCK)), np.zeros(BLOCK)
        tile[:, :count], factors[:count] = columns.T, weights

        def work(part: tuple[int, int]) -> None:
            scratch = np.empty(2 * BLOCK)
            sparse_block_sums(*self, self.n, tile, count, factors, *part, sums, weighted, scratch)

        parts = 1 if workers == 1 else min(SHARES * workers, max(blocks, 1))
        bounds = np.linspace(0, blocks, parts + 1).astype(int).tolist()
        parallel_map(work, list(pairwise(bounds)), workers)
        return np.cumsum(sums, axis=1, out=sums)

    def block_sums(self, columns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `ComputedRows.block_sums`, a few columns at a time."""
        from dmsgd.compiled.computed_rows import SPARSE_ROW_BLOCK

        n, r, cores = self.n, len(columns), thread_count(-1)
        sums, weighted = np.empty((r, -(-n // SPARSE_ROW_BLOCK) + 1)), np.zeros(n)
        tell = Progress(f"the tables of {n:,} items x {r:,} eigenvectors")
        for tile in tiles(r):
            sums[tile] = self.tile_sums(columns[tile], weights[tile], weighted, cores)
            tell(min(1.0, tile.stop / r))
        return sums, weighted


def tiles(r: int) -> list[slice]:
    """Return slices of range(r) that `SparseRows.tile_sums` takes."""
    from dmsgd.compiled.llvm import BLOCK

    return [slice(first, min(first + BLOCK, r)) for first in range(0, r, BLOCK)]


@final
@dataclass(frozen=True, eq=False)
class ComputedRows:
    """V = F B.

    features: F, of which dense blocks begin at multiples of DENSE_ROW_BLOCK rows.
    rows:     F, for single rows.
    columns:  the columns of B, one after the other, (r, D).
    sums:     of V² before each row block and at the end, (r, row blocks + 1); see `block_sums`.
    """

    features: Any
    rows: DenseRows | SparseRows
    columns: FloatArray
    sums: FloatArray | None = None

    def block_sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `sums` and V² @ weights, (n,): one product F B."""
        if isinstance(self.rows, SparseRows):
            return self.rows.block_sums(self.columns, weights)
        return _dense_block_sums(self.features, self.columns.T, weights)

    def arguments(self, k: int) -> RowArguments:
        """Return what `compiled.kdpp.draw` needs; see compiled/computed_rows.py."""
        from dmsgd.compiled import computed_rows as loops
        from dmsgd.compiled.jit import address
        from dmsgd.compiled.linear_algebra import PANEL, product
        from dmsgd.compiled.llvm import BLOCK

        assert self.sums is not None
        rows, width, totals = self.rows, self.columns.shape[1], self.sums[:, -1].copy()
        if isinstance(rows, SparseRows):
            callbacks = loops.locate, loops.gather_sparse, loops.begin_sparse, None
            n, row_block, scratch = rows.n, loops.SPARSE_ROW_BLOCK, None
            chosen = np.zeros((width + 1, -(-k // BLOCK) * BLOCK))
            own = [address(array, array.dtype) for array in rows]
        else:
            callbacks = loops.locate, loops.gather_dense, loops.begin_dense, None
            (n, d), row_block = rows.X.shape, loops.DENSE_ROW_BLOCK
            chosen, scratch = np.zeros((k + PANEL, width)), np.zeros((d, BLOCK))
            arrays = rows.X, rows.scale, rows.extra, rows.codes
            where = (0 if each is None else address(each, each.dtype) for each in arrays)
            single = int(rows.X.dtype == np.float32)
            own = [0, 0, 0, d, single, *where, address(scratch, float), product.address]
        buffers = totals, self.columns, self.sums, chosen
        first, *others = (address(each, float) for each in buffers)
        numbers = [first, n, width, row_block, self.sums.shape[1] - 1, *others, *own]
        return RowArguments(callbacks, np.array(numbers, np.int64), (self, scratch, *buffers))


def _dense_block_sums(
    features: Any, B: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return `ComputedRows.block_sums`, block by block of F."""
    from dmsgd.compiled.computed_rows import DENSE_ROW_BLOCK

    step, weighted = DENSE_ROW_BLOCK, np.empty(features.n)
    sums = np.zeros((B.shape[1], -(-features.n // step) + 1))

    def squares(block: FloatArray) -> tuple[FloatArray, FloatArray]:
        V2 = block @ B
        V2 *= V2
        return np.add.reduceat(V2, np.arange(0, len(block), step), axis=0), V2 @ weights

    blocks = features.map_blocks(squares, "block_sums")
    for start, (part, b) in zip(features.bounds.tolist(), blocks, strict=False):
        first = start // step + 1
        sums[:, first : first + part.shape[0]] = part.T
        weighted[start : start + b.size] = b
    return np.cumsum(sums, axis=1, out=sums), weighted


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
        sums = rows.tile_sums(columns[mine], weights[mine], weighted)
        first, last = np.searchsorted(ordered, (mine[0], mine[-1] + 1)).tolist()
        which = np.searchsorted(mine, ordered[first:last])
        source = ComputedRows(F, rows, columns[mine], sums).arguments(0)
        locate(source.numbers, which, targets[first:last], found[first:last], last - first)
    items[order] = found
    X = np.empty((items.size, k))
    source = ComputedRows(F, rows, columns, np.empty((r, 1))).arguments(k)
    sparse_rows(source.numbers, J, k, draw, items, np.full(d, -1), X, items.size)
    return items, X, None if pi is None else weighted
