"""Large batches: many draws in lockstep, with batched matrix products (`large_batches.cu`).

A round proposes items until about `block` of them may be accepted, projects them onto the subspace
that the accepted items leave, decides in order by their Gram matrix, and reflects the subspace so
that the accepted directions are its last axes, which are dropped. While more than FORMED_AT of R^k
is left, proposals go through the reflections of one round after the other; then W, whose rows are a
basis of the subspace, is formed from all, as in `dmsgd.compiled.projection`. About 2.8k³ operations
per batch, in k / block rounds.
"""

from __future__ import annotations

import ctypes
from typing import Any, final

import torch
from torch import Tensor

from dmsgd.samplers.cuda.program import program

FILES, REAL = ("philox.cuh", "tables.cuh", "large_batches.cu"), torch.float64

#: Proposals that a round decides on, at most, by the largest k.
BLOCKS = {256: 32, 2048: 96, 2**31: 128}
#: The expected share of them; proposals beyond `block` are left to the next round.
FILLED = 0.9
#: The most proposals of a round, as a multiple of k.
MOST = 2
#: The share of R^k that is left when W is formed.
FORMED_AT = 0.4
#: Threads of the blocks that decide and reflect.
THREADS = 1024
#: Products of matrices whose sides are multiples of this are faster.
TILE = 8
#: The share of free memory that the draws of a call may take, and their number.
SHARE, DRAWS = 0.4, 8192


def whole_tiles(count: int) -> int:
    """Return `count`, rounded up to a multiple of TILE."""
    return -(-count // TILE) * TILE


def draw_large(tables: tuple[Any, ...], J: Tensor, key: int, start: int, out: Tensor) -> int | None:
    """Fill `out` with the draws whose eigenvectors are the rows of J; return the first failure."""
    size, k = out.shape
    free, _ = torch.cuda.mem_get_info(out.device)
    free += torch.cuda.memory_reserved(out.device) - torch.cuda.memory_allocated(out.device)
    together = max(1, min(DRAWS, int(SHARE * free) // (8 * k * k * (2 + MOST))))
    for first in range(0, size, together):
        part = slice(first, first + together)
        failed = LargeBatches(tables, J[part], key, start + first, out[part]).run()
        if failed is not None:
            return first + failed
    return None


@final
class LargeBatches:
    """Draws in lockstep.

    ids:        which rows of `out` are not complete yet.
    at:         the next proposal of each.
    items_left: how many items it lacks.
    groups:     Y, T, rest: reflections I - Yᵀ T Y of each round, and how many axes they leave at
                most, until W is formed.
    W:          (draws, rows, k), where rows beyond items_left are zero, or None.
    """

    def __init__(
        self, tables: tuple[Any, ...], J: Tensor, key: int, start: int, out: Tensor
    ) -> None:
        self.tables, self.J, self.out = tables, J, out
        self.number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
        self.k = int(out.shape[1])
        self.block = next(block for most, block in BLOCKS.items() if self.k <= most)
        self.kernels = program(FILES, int(out.device.index), MOST=self.block)
        self.ids = torch.arange(len(out), dtype=torch.int32, device=out.device)
        self.at = torch.zeros_like(self.ids)
        self.items_left = torch.full_like(self.ids, self.k)
        self.groups: list[tuple[Tensor, Tensor, int]] = []
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
        """Decide on the next proposals; return how many items the draws lack afterwards, at most.

        rows: how many they lack before.
        """
        k, B, draws = self.k, self.block, len(self.ids)
        P = whole_tiles(min(max(B, int(FILLED * B * k / rows)), max(B, MOST * k)))
        rows = min(whole_tiles(rows), k)  # the rows that this adds are zero
        room = self.out.new_empty
        X, items = room((draws, P, k), dtype=REAL), room((draws, P), dtype=torch.int32)
        goals, opened = room((draws, P), dtype=REAL), room((draws, P), dtype=torch.uint8)
        self.kernels(
            "propose", (P // 8, draws), 256, *self.tables, self.J, k, *self.number,
            self.ids, self.at, P, X, items, goals,
        )  # fmt: skip
        Z = self.project(X, rows)
        length, left = Z.shape[2], self.items_left
        self.kernels("measure", (P // 8, draws), 256, Z, P, length, left, goals, opened)
        where, counts = room((draws, B), dtype=torch.int32), room(draws, dtype=torch.int32)
        self.kernels("first_open", (draws, 1), 256, opened, P, B, where, self.at)
        F, C = room((draws, B, rows), dtype=REAL), room((draws, B, B), dtype=REAL)
        self.kernels("pick", (B, draws), 128, Z, P, length, B, where, left, rows, F)
        G = torch.bmm(F, F.mT)
        self.kernels(
            "decide", (draws, 1), THREADS, G, B, where, items, goals, P, k, self.ids, left,
            counts, C, self.out, shared=8 * B * B,
        )  # fmt: skip
        del X, Z
        after = left - counts
        most, rest, active = torch.stack(
            (counts.max(), after.max(), (after > 0).sum().to(torch.int32))
        ).tolist()
        if rest > 0 and most > 0:
            self.reflect(torch.bmm(C[:, : whole_tiles(most)], F), counts, rows, int(rest))
        self.items_left = after
        if 0 < rest <= FORMED_AT * k or 0 < active <= draws // 2:
            self.form(int(rest))
        if 0 < active <= draws // 2:  # go on with these alone
            kept = torch.nonzero(after > 0)[:, 0]
            self.ids, self.at, self.items_left = self.ids[kept], self.at[kept], after[kept]
            if self.W is not None:
                self.W = self.W.index_select(0, kept)
        return int(rest)

    def reflect(self, Y: Tensor, counts: Tensor, rows: int, rest: int) -> None:
        """Reflect the subspaces so that the rows of Y, orthonormal up to rounding, are last axes.

        At most `rest` axes are left then.
        """
        draws, M, k = len(self.ids), Y.shape[1], self.k
        # One Newton step to the nearest orthonormal rows squares the rounding error.
        Y = torch.baddbmm(Y, torch.bmm(Y, Y.mT), Y, beta=1.5, alpha=-0.5)
        T = Y.new_empty((draws, M, M))
        self.kernels(
            "reflect", (draws, 1), THREADS, Y, M, rows, self.items_left, counts, T, shared=8 * M * M
        )
        if self.W is None:
            self.groups.append((Y, T, rest))
            return
        part = self.W[:, :rows]
        part.baddbmm_(Y.mT, torch.bmm(T, torch.bmm(Y, part)), alpha=-1.0)
        self.kernels("drop", (M, draws), 128, self.W, self.W.shape[1], k, self.items_left, counts)

    def project(self, X: Tensor, rows: int) -> Tensor:
        """Return coordinates of proposals in the subspaces; those beyond items_left do not count.

        They may be written where X is.
        """
        if self.W is not None:
            return torch.bmm(X, self.W[:, :rows].mT)
        for Y, T, rest in self.groups:
            U = torch.bmm(torch.bmm(X[:, :, : Y.shape[2]], Y.mT), T.mT)
            X[:, :, :rest].baddbmm_(U, Y[:, :, :rest], alpha=-1.0)
        return X

    def form(self, rows: int) -> None:
        """Form W from all groups, with this many rows, if there is none yet."""
        if self.W is not None or not self.groups:
            return
        rows, device = min(whole_tiles(rows), self.k), self.out.device
        used = torch.arange(rows, device=device) < self.items_left[:, None]
        self.W = torch.zeros((len(used), rows, self.k), dtype=REAL, device=device)
        self.W.diagonal(dim1=1, dim2=2).copy_(used)
        while self.groups:
            Y, T, _ = self.groups.pop()
            part = self.W[:, :, : Y.shape[2]]
            part.baddbmm_(torch.bmm(torch.bmm(part, Y.mT), T), Y, alpha=-1.0)
