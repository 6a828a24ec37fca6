"""Large batches: many draws in lockstep, whose products are matrix products of all of them.

A round proposes items until about `block` of them may be accepted, projects them onto what is left
of R^k (W), decides in order by their Gram matrix, and turns W so that the accepted directions lie
on its last axes, which are dropped. About 4k³ operations a draw, and k / block rounds.
"""

from __future__ import annotations

import ctypes
from typing import final

import torch
from torch import Tensor

from dmsgd.samplers.device.program import program
from dmsgd.samplers.device.tables import DeviceTables

FILES, REAL = ("random.cuh", "tables.cuh", "many.cu"), torch.float64

#: Proposals that a round goes through, at most, for batches up to so many.
BLOCKS = {256: 32, 2048: 96, 2**31: 128}
#: The share of them that is expected; what is beyond is left to the next round.
FILLED = 0.9
#: The most proposals of a round, as a multiple of k.
MOST = 2
#: The share of free memory that draws in flight may take, and their number.
SHARE, DRAWS = 0.4, 8192


def make_many(
    tables: DeviceTables, J: Tensor, key: int, start: int, out: Tensor, at_once: int | None = None
) -> int | None:
    """Fill `out` with the draws whose eigenvectors are the rows of J; return the first failure."""
    size, k = out.shape
    if at_once is None:
        free, _ = torch.cuda.mem_get_info(out.device)
        free += torch.cuda.memory_reserved(out.device) - torch.cuda.memory_allocated(out.device)
        at_once = max(1, min(DRAWS, int(SHARE * free) // (8 * k * k * (2 + MOST))))
    for first in range(0, size, at_once):
        part = slice(first, first + at_once)
        failed = Lockstep(tables, J[part], key, start + first, out[part]).run()
        if failed is not None:
            return first + failed
    return None


@final
class Lockstep:
    """Draws that are made together.

    ids:  which rows of `out` are not complete yet.
    at:   the next proposal of each.
    left: how many items it lacks.
    W:    (draws, k, k), of which the first left rows are in use and the others zero; None as long
          as it is the identity.
    """

    def __init__(self, tables: DeviceTables, J: Tensor, key: int, start: int, out: Tensor) -> None:
        self.tables, self.J, self.out = tables, J, out
        self.number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
        self.k = int(out.shape[1])
        self.block = next(block for most, block in BLOCKS.items() if self.k <= most)
        self.kernels = program(FILES, tables.card)
        self.ids = torch.arange(len(out), dtype=torch.int32, device=out.device)
        self.at = torch.zeros_like(self.ids)
        self.left = torch.full_like(self.ids, self.k)
        self.W: Tensor | None = None

    def run(self) -> int | None:
        """Complete all draws; return the first that could not be, if any."""
        rows = self.k
        for _ in range(100 * self.k // self.block + 100):
            rows = self.round(rows)
            if rows == 0:
                return None
        return int(self.ids.min())

    def round(self, rows: int) -> int:
        """Go through the next proposals, where W has `rows` rows; return how many it has then."""
        k, B, draws = self.k, self.block, len(self.ids)
        P = min(max(B, int(FILLED * B * k / rows)), max(B, MOST * k))
        P = -(-P // 8) * 8
        room = self.out.new_empty
        X, items = room((draws, P, k), dtype=REAL), room((draws, P), dtype=torch.int32)
        goals, opened = room((draws, P), dtype=REAL), room((draws, P), dtype=torch.uint8)
        self.kernels(
            "propose", (P // 8, draws), 256, *self.tables.arguments(), self.J, k, *self.number,
            self.ids, self.at, P, X, items, goals,
        )  # fmt: skip
        Z = X if self.W is None else torch.bmm(X, self.W[:, :rows].mT)
        self.kernels("measure", (P // 8, draws), 256, Z, P, rows, goals, opened)
        where, counts = room((draws, B), dtype=torch.int32), room(draws, dtype=torch.int32)
        self.kernels("sift", (draws, 1), 256, opened, P, B, where, self.at)
        F, C = room((draws, B, rows), dtype=REAL), room((draws, B, B), dtype=REAL)
        self.kernels("pick", (B, draws), 128, Z, P, rows, B, where, F)
        G = torch.bmm(F, F.mT)
        self.kernels(
            "decide", (draws, 1), 256, G, B, where, items, goals, P, k, self.ids, self.left,
            counts, C, self.out, shared=8 * B * B,
        )  # fmt: skip
        del X, Z
        after = self.left - counts
        most, rest, active = torch.stack(
            (counts.max(), after.max(), (after > 0).sum().to(torch.int32))
        ).tolist()
        if rest > 0 and most > 0:
            self.turn(torch.bmm(C[:, :most], F), counts, rows)
        self.left = after
        if 0 < active <= draws // 2:
            self.keep(torch.nonzero(after > 0)[:, 0], rest)
        return int(rest)

    def turn(self, Y: Tensor, counts: Tensor, rows: int) -> None:
        """Turn W so that the rows of Y, orthonormal but for rounding, lie on its last axes."""
        draws, M, k = len(self.ids), Y.shape[1], self.k
        # A step of Newton's iteration to the nearest orthonormal rows squares what rounding left.
        Y = torch.baddbmm(Y, torch.bmm(Y, Y.mT), Y, beta=1.5, alpha=-0.5)
        T = Y.new_empty((draws, M, M))
        self.kernels("reflect", (draws, 1), 256, Y, M, rows, self.left, counts, T, shared=8 * M * M)
        if self.W is None:
            self.W = torch.eye(k, dtype=Y.dtype, device=Y.device).repeat(draws, 1, 1)
            moved = torch.bmm(T, Y)
        else:
            moved = torch.bmm(T, torch.bmm(Y, self.W[:, :rows]))
        self.W[:, :rows].baddbmm_(Y.mT, moved, alpha=-1.0)
        self.kernels("drop", (M, draws), 128, self.W, k, self.left, counts)

    def keep(self, chosen: Tensor, rows: int) -> None:
        """Go on with these draws alone."""
        self.ids, self.at, self.left = self.ids[chosen], self.at[chosen], self.left[chosen]
        if self.W is not None:
            self.W = self.W.index_select(0, chosen)
