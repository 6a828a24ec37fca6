"""The tables by which proposals are found and sifted, as arrays that `compiled/tables.py` reads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.samplers.protocol import Functions

#: Rows this long or longer are kept as bytes, too; shorter ones are read as fast without.
COARSE = 128


@final
@dataclass(frozen=True)
class TablesInMemory:
    """What finds the item at which a column's squares reach a sum; up to 3/8 of V in memory.

    The arrays are those of `dmsgd.samplers.compiled.tables.Tables`.
    """

    V: FloatArray
    sums: FloatArray
    totals: FloatArray
    guides: Any
    coarse: Any

    def functions(self) -> Functions:
        """Return the addresses of what knows V."""
        from dmsgd.compiled.jit import address_of
        from dmsgd.samplers.compiled.sieve import sift
        from dmsgd.samplers.compiled.tables import gather, locate

        sieve = 0 if self.coarse is None else address_of(sift)
        return Functions(address_of(locate), address_of(gather), sift=sieve)

    def plan(self, k: int) -> tuple[IntArray, None]:
        """Return sizes and addresses, good for as long as these tables are kept."""
        from dmsgd.compiled.jit import address

        (groups, width), last = self.sums.shape[:2], self.guides.shape[1] - 1
        arrays = (self.totals, self.V, self.sums, self.guides, self.coarse)
        totals, *where = (0 if array is None else address(array, array.dtype) for array in arrays)
        numbers = [totals, *self.V.shape, groups, width, last, *where]
        return np.array(numbers, dtype=np.int64), None


def tables_of(V: FloatArray) -> TablesInMemory:
    """Return the tables of V, which is contiguous."""
    from dmsgd.compiled.jit import address
    from dmsgd.compiled.vectors import LANES
    from dmsgd.samplers.compiled.tables import (
        ENTRY,
        GROUP,
        LINE,
        fill_coarse,
        fill_guides,
        fill_sums,
    )

    n, r = V.shape
    F = V if r >= LANES else np.pad(V, ((0, 0), (0, LANES - r)))
    width, whole, groups = F.shape[1], n // GROUP, -(-n // GROUP)
    rest = np.zeros((GROUP, width))
    rest[: n - whole * GROUP] = F[whole * GROUP :]
    sums = _aligned((groups, width, ENTRY), float, LINE)
    guides = np.empty((width, 2 * groups + 1), np.uint32)
    ends, filled = np.zeros((groups + 1, width)), np.zeros(width, np.int64)
    fill_sums(address(F, float), whole, width, address(ends, float), address(sums, float))
    if whole < groups:
        behind = address(ends[whole:], float), address(sums[whole:], float)
        fill_sums(address(rest, float), 1, width, *behind)
    counted = address(ends, float), address(filled, np.int64), address(guides, np.uint32)
    fill_guides(groups, width, 2 * groups, *counted)
    coarse = None
    if r >= COARSE:
        coarse = _aligned((n * r + 3,), np.int8, LINE)  # 4 bytes are read at a time
        fill_coarse(address(V, float), n, r, address(coarse, np.int8))
    return TablesInMemory(V, sums, ends[-1].copy(), guides, coarse)


def _aligned(shape: tuple[int, ...], kind: Any, line: int) -> Any:
    """Return an array that begins where a line of memory does: look-ups then touch no line more."""
    size = prod(shape) * np.dtype(kind).itemsize
    room = np.empty(size + line, np.int8)
    start = -room.__array_interface__["data"][0] % line
    return room[start : start + size].view(kind).reshape(shape)
