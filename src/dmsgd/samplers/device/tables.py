"""The tables by which proposals are found, on a card; `tables.cu` says what is in them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from dmsgd.samplers.device.program import Program, program

#: Rows of V in a group, entries of a line, and columns that a block of threads fills.
GROUP, LINE, THREADS = 64, 16, 128


@final
@dataclass(frozen=True)
class DeviceTables:
    """What finds the item at which a column's squares reach a sum; a bit over a quarter of V."""

    V: Tensor
    totals: Tensor
    lines: Tensor
    guides: Tensor

    def arguments(self) -> tuple[Any, ...]:
        """Return what kernels are given: addresses and sizes."""
        (n, r), last = self.V.shape, self.guides.shape[1] - 1
        sizes = (n, r, self.lines.shape[0], last)
        return self.V, self.totals, self.lines, self.guides, *map(ctypes.c_longlong, sizes)

    @property
    def card(self) -> int:
        """The number of the card."""
        return int(self.V.device.index)


def tables_of(V: Tensor) -> DeviceTables:
    """Return the tables of V, which is contiguous."""
    (n, r), card = V.shape, V.device.index
    groups = -(-n // GROUP)
    fill: Program = program(("random.cuh", "tables.cu"), card)
    size, grid = (ctypes.c_longlong(n), ctypes.c_longlong(r)), (groups, -(-r // THREADS))
    ends = torch.empty((groups, r), dtype=torch.float64, device=V.device)
    fill("group_sums", grid, THREADS, V, *size, ends)
    ends = torch.cumsum(ends, dim=0)
    lines = torch.empty((groups, r, LINE), dtype=torch.float64, device=V.device)
    fill("fill_lines", grid, THREADS, V, *size, ends, lines)
    last = 2 * groups
    guides = torch.empty((r, last + 1), dtype=torch.int32, device=V.device)
    counts = (ctypes.c_longlong(groups), ctypes.c_longlong(r), ctypes.c_longlong(last))
    fill("fill_guides", (-(-r * (last + 1) // 256), 1), 256, ends, *counts, guides)
    return DeviceTables(V, ends[-1].clone(), lines, guides)
