"""Draws without eigenvectors in memory: rows of V = F B are computed when a draw needs them.

V would be far larger than sparse F. What is kept is F, B, and the sums of V² over blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.runtime.pieces import slices
from dmsgd.runtime.progress import Progress
from dmsgd.runtime.threads import SHARES, parallel_map, thread_count
from dmsgd.samplers.contract import RowArguments


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
        from dmsgd.compiled.computed_rows import ROW_BLOCK, sparse_block_sums
        from dmsgd.compiled.llvm import BLOCK

        (count, d), blocks = columns.shape, -(-self.n // ROW_BLOCK)
        sums, tile, factors = np.zeros((count, blocks + 1)), np.zeros((d, BLOCK)), np.zeros(BLOCK)
        tile[:, :count], factors[:count] = columns.T, weights

        def work(part: tuple[int, int]) -> None:
            scratch = np.empty(2 * BLOCK)
            sparse_block_sums(*self, self.n, tile, count, factors, *part, sums, weighted, scratch)

        parts = 1 if workers == 1 else min(SHARES * workers, max(blocks, 1))
        bounds = np.linspace(0, blocks, parts + 1).astype(int).tolist()
        parallel_map(work, list(pairwise(bounds)), workers)
        return np.cumsum(sums, axis=1, out=sums)


def tiles(r: int) -> list[slice]:
    """Return slices of range(r) that `SparseRows.tile_sums` takes."""
    from dmsgd.compiled.llvm import BLOCK

    return slices(r, BLOCK)


@final
@dataclass(frozen=True, eq=False)
class ComputedRows:
    """V = F B.

    rows:    F.
    columns: the columns of B, one after the other, (r, d).
    sums:    of V² before each row block and at the end, (r, row blocks + 1); see `block_sums`.
    """

    rows: SparseRows
    columns: FloatArray
    sums: FloatArray | None = None

    def block_sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `sums` and V² @ weights, (n,), a few columns at a time."""
        from dmsgd.compiled.computed_rows import ROW_BLOCK

        n, r, cores = self.rows.n, len(self.columns), thread_count(-1)
        sums, weighted = np.empty((r, -(-n // ROW_BLOCK) + 1)), np.zeros(n)
        tell = Progress(f"the tables of {n:,} items x {r:,} eigenvectors")
        for tile in tiles(r):
            some = self.columns[tile], weights[tile]
            sums[tile] = self.rows.tile_sums(*some, weighted, cores)
            tell(tile.stop / r)
        return sums, weighted

    def arguments(self, k: int) -> RowArguments:
        """Return what `compiled.kdpp.draw` needs; see compiled/computed_rows.py."""
        from dmsgd.compiled.computed_rows import ROWS, begin_draw, gather, locate
        from dmsgd.compiled.llvm import BLOCK

        assert self.sums is not None
        width, totals = self.columns.shape[1], self.sums[:, -1].copy()
        chosen = np.zeros((width + 1, -(-k // BLOCK) * BLOCK))
        record = ROWS.new(
            n=self.rows.n, **self.rows._asdict(), width=width, columns=self.columns,
            blocks=self.sums.shape[1] - 1, sums=self.sums, chosen=chosen,
        )  # fmt: skip
        callbacks = {"locate": locate, "gather": gather, "begin_draw": begin_draw}
        return RowArguments(callbacks, record, totals, (self, chosen))


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
        source = ComputedRows(rows, columns[mine], sums).arguments(0)
        locate(source.record, which, targets[first:last], found[first:last], last - first)
    items[order] = found
    X = np.empty((items.size, k))
    source = ComputedRows(rows, columns, np.empty((r, 1))).arguments(k)
    sparse_rows(source.record, J, k, draw, items, np.full(d, -1), X, items.size)
    return items, X, None if pi is None else weighted
