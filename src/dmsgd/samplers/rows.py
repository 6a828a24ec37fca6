"""Draws from a large dense array without its eigenvectors: rows of V = F B are made when needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from dmsgd.features.direct import Direct
from dmsgd.features.interface import InPasses
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.samplers.protocol import Functions


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Features F that are read in blocks or, by `direct`, row by row, and B by its columns, (r, D).

    Blocks begin at multiples of `dmsgd.samplers.compiled.rows.STRETCH` rows.
    """

    features: InPasses
    direct: Direct
    columns: FloatArray

    def survey(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of V² before each stretch, (r, stretches + 1), and V² @ weights, (n,).

        One product F B, block by block.
        """
        from dmsgd.samplers.compiled.rows import STRETCH

        n, r = self.features.n, self.columns.shape[0]
        sums, weighed = np.zeros((r, -(-n // STRETCH) + 1)), np.empty(n)
        work = partial(add_up, B=self.columns.T, weights=weights, stretch=STRETCH)
        for start, (part, b) in zip(
            self.features.bounds.tolist(), self.features.run(work, "survey"), strict=False
        ):
            first = start // STRETCH + 1
            sums[:, first : first + part.shape[0]] = part.T
            weighed[start : start + b.size] = b
        return np.cumsum(sums, axis=1, out=sums), weighed

    def tables(self, sums: FloatArray) -> TablesOfRows:
        """Return what draws are made by."""
        return TablesOfRows(self, sums, np.ascontiguousarray(sums[:, -1]))


def add_up(
    block: FloatArray, argument: Any, B: FloatArray, weights: FloatArray, stretch: int
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of (F B)² over stretches of a block's rows, and along the rows with weights.

    The last stretch may be shorter than the others.
    """
    squares = block @ B
    squares *= squares
    return np.add.reduceat(squares, np.arange(0, len(block), stretch), axis=0), squares @ weights


@final
@dataclass(frozen=True)
class TablesOfRows:
    """What finds the item at which a column's squares reach a sum, and makes its row."""

    rows: Rows
    sums: FloatArray
    totals: FloatArray

    def functions(self) -> Functions:
        """Return the addresses of what knows V."""
        from dmsgd.compiled.jit import address_of
        from dmsgd.samplers.compiled.rows import gather_rows, locate_rows, ready_rows

        return Functions(address_of(locate_rows), address_of(gather_rows), address_of(ready_rows))

    def plan(self, k: int) -> tuple[IntArray, tuple[FloatArray, FloatArray]]:
        """Return sizes and addresses, and scratch that must be kept as long as they are used."""
        from dmsgd.compiled.jit import address
        from dmsgd.compiled.vectors import BLOCK
        from dmsgd.samplers.compiled.linear_algebra import PANEL

        direct, columns = self.rows.direct, self.rows.columns
        (n, d), D = direct.X.shape, columns.shape[1]
        chosen, turned = np.zeros((k + PANEL, D)), np.zeros((d, BLOCK))
        labels = (0, 0, 0)
        if direct.extra is not None and direct.codes is not None:
            labels = 1, address(direct.extra, float), address(direct.codes, np.int64)
        numbers = [
            address(self.totals, float), n, d, D, self.sums.shape[1] - 1,
            direct.X.dtype == np.float32, address(direct.X, direct.X.dtype),
            address(direct.scale, float), *labels,
            *(address(array, float) for array in (columns, self.sums, chosen, turned)),
        ]  # fmt: skip
        return np.array(numbers, dtype=np.int64), (chosen, turned)
