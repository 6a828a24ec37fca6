"""Large batches: many draws in lockstep, with batched matrix products (`large_batches.cu`).

A round proposes items until about `block` of them may be accepted, projects them onto the subspace
that the accepted items leave, decides in order by their Gram matrix, and reflects the subspace so
that the accepted directions are its last axes, which are dropped. While more than FORMED_AT of R^k
is left, proposals go through the reflections of one round after the other; then W, whose rows are a
basis of the subspace, is formed from all, as in `dmsgd.compiled.projection`. From then on, most
proposals are rejected by products in float16, and float64 decides on the others. About 2.5k³
operations in float64 per batch, in k / 100 rounds.
"""

from __future__ import annotations

import ctypes
from typing import Any, final

import torch
from torch import Tensor

from dmsgd.samplers.cuda.program import most_bytes, program

FILES = ("philox.cuh", "tables.cuh", "matrix_units.cuh", "large_batches.cu")
REAL = torch.float64

#: By the largest k: how many candidates a round decides on, how many it accepts, at most, and what
#: the number of its proposals is a multiple of.
BLOCKS = {384: (56, 48, 8), 768: (80, 64, 8), 2048: (112, 96, 8), 2**31: (160, 128, 32)}
#: The expected share of the candidates; proposals beyond them are left to the next round.
FILLED = 0.9
#: The most proposals of a round, as a multiple of k.
MOST = 2
#: The share of R^k that is left when W is formed.
FORMED_AT = 0.4
#: Threads of the blocks that decide and reflect.
THREADS = 1024
#: Products of matrices whose sides are multiples of this are faster.
TILE = 8
#: The share of free memory that the draws of a call may take, bytes / k² of each, and their number.
SHARE, BYTES, DRAWS = 0.4, 24, 8192


def whole_tiles(count: int) -> int:
    """Return `count`, rounded up to a multiple of TILE."""
    return -(-count // TILE) * TILE


def products(A: Tensor, B: Tensor) -> Tensor:
    """Return A Bᵀ of matrices in float16, added up in float32 whatever torch is allowed to do."""
    rough = getattr(torch.backends.cuda.matmul, "allow_fp16_accumulation", True)  # since torch 2.7
    if rough or not hasattr(torch.ops.aten.bmm, "dtype"):
        return torch.bmm(A.float(), B.float().mT)
    return torch.bmm(A, B.mT, out_dtype=torch.float32)


def draw_large(
    rows: Tensor, tables: tuple[Any, ...], J: Tensor, key: int, start: int, out: Tensor
) -> int | None:
    """Fill `out` with the draws whose eigenvectors are the rows of J; return the first failure.

    rows: see `rows_to_screen`.
    """
    size, k = out.shape
    free, _ = torch.cuda.mem_get_info(out.device)
    free += torch.cuda.memory_reserved(out.device) - torch.cuda.memory_allocated(out.device)
    together = max(1, min(DRAWS, int(SHARE * free) // (BYTES * k * k)))
    for first in range(0, size, together):
        part = slice(first, first + together)
        draws = LargeBatches(rows, tables, J[part], key, start + first, out[part])
        failed = draws.run()
        if failed is not None:
            return first + failed
    return None


@final
class LargeBatches:
    """Draws in lockstep.

    ids:        which rows of `out` are not complete yet.
    at:         the next proposal of each.
    items_left: how many items it lacks.
    groups:     Y, T Y, rest: reflections I - Yᵀ T Y of a round or two, and how many axes they leave
                at most, until W is formed.
    W:          (draws, rows, k), where rows beyond items_left are zero, or None.
    """

    def __init__(
        self,
        rows: Tensor,
        tables: tuple[Any, ...],
        J: Tensor,
        key: int,
        start: int,
        out: Tensor,
    ) -> None:
        self.rows, self.tables, self.J, self.out = rows, tables, J, out
        self.number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
        self.k, device = int(out.shape[1]), out.device
        sizes = next(sizes for most, sizes in BLOCKS.items() if self.k <= most)
        self.block, self.most, self.step = sizes
        room = most_bytes(torch.cuda.get_device_properties(device)) - 16 * self.most
        while 8 * self.block**2 > room:
            self.block -= TILE
        constants = {"MOST": self.most, "HALVES": int(rows.dtype == torch.float16)}
        self.kernels = program(FILES, int(device.index), **constants)
        self.ids = torch.arange(len(out), dtype=torch.int32, device=device)
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
        P = min(max(B, int(FILLED * B * k / rows)), max(B, MOST * k))
        P = (P + self.step // 2) // self.step * self.step
        rows = min(whole_tiles(rows), k)  # the rows that this adds are zero
        room = self.out.new_empty
        items, levels = room((draws, P), dtype=torch.int32), room((draws, P), dtype=REAL)
        self.kernels(
            "find", (-(-P // 128), draws), 128, *self.tables, self.J, k, *self.number,
            self.ids, self.at, P, items, levels,
        )  # fmt: skip
        where, chosen, ends = room((3, draws, B), dtype=torch.int32)
        goals, opened = room((draws, B), dtype=REAL), room((draws, P), dtype=torch.uint8)
        first_open = opened, P, B, items, levels, where, chosen, goals, ends
        left, (counts, close) = self.items_left, room((2, draws), dtype=torch.int32)
        if self.W is None:
            Z = self.project(self.gather(items, levels))
            length = Z.shape[2]
            self.kernels("measure", (P // 8, draws), 256, Z, P, length, left, levels, opened)
            self.kernels("first_open", (draws, 1), 256, *first_open)
            F = room((draws, B, rows), dtype=REAL)
            self.kernels("pick", (B, draws), 128, Z, P, length, B, where, left, rows, F)
            del Z
        else:
            self.screen(items, levels, rows, opened)
            self.kernels("first_open", (draws, 1), 256, *first_open)
            F = torch.bmm(self.gather(chosen, goals), self.W[:, :rows].mT)
        G, C = torch.bmm(F, F.mT), room((draws, B, B), dtype=REAL)
        self.kernels(
            "decide", (draws, 1), THREADS, G, B, where, chosen, goals, ends, k, self.ids, left,
            self.at, counts, close, C, self.out, shared=8 * B * B,
        )  # fmt: skip
        after = left - counts
        most, rest, active, any_close = torch.stack(
            (counts.max(), after.max(), (after > 0).sum().to(torch.int32), close.max())
        ).tolist()
        if rest > 0 and most > 0:
            Y = torch.bmm(C[:, : whole_tiles(most)], F)
            if any_close:  # one Newton step to orthonormal rows squares the rounding error
                Y = torch.baddbmm(Y, torch.bmm(Y, Y.mT), Y, beta=1.5, alpha=-0.5)
            self.reflect(Y, counts, rows, int(rest))
        self.items_left = after
        if 0 < rest <= FORMED_AT * k or 0 < active <= draws // 2:
            self.form(int(rest))
        if 0 < active <= draws // 2:  # go on with these alone
            kept = torch.nonzero(after > 0)[:, 0]
            self.ids, self.at, self.items_left = self.ids[kept], self.at[kept], after[kept]
            if self.W is not None:
                self.W = self.W.index_select(0, kept)
        return int(rest)

    def gather(self, items: Tensor, levels: Tensor) -> Tensor:
        """Return the items' rows of V, and multiply the levels by their squares."""
        draws, P = items.shape
        X = self.out.new_empty((draws, P, self.k), dtype=REAL)
        V, r = self.tables[0], self.tables[5]
        self.kernels(
            "gather", (-(-P // 8), draws), 256, V, r, self.J, self.k, self.ids, P, items, X, levels
        )
        return X

    def screen(self, items: Tensor, levels: Tensor, rows: int, opened: Tensor) -> None:
        """Say of which proposals more than their level may be left, by products in float16."""
        (draws, P), k, L = items.shape, self.k, whole_tiles(self.k)
        assert self.W is not None
        room, errors = self.out.new_empty, torch.zeros(draws, dtype=REAL, device=self.out.device)
        X, squares = room((draws, P, L), dtype=torch.float16), room((draws, P), dtype=REAL)
        self.kernels(
            "gather_halves", (-(-P // 32), draws), 256, self.rows, self.tables[5], self.J, k, L,
            self.ids, P, items, X, squares,
        )  # fmt: skip
        H = room((draws, rows, L), dtype=torch.float16)
        self.kernels("halve", (rows, draws), 256, self.W, self.W.shape[1], k, rows, L, H, errors)
        S = products(X, H)
        self.kernels(
            "screen", (P // 8, draws), 256, S, P, rows, k, squares, levels, errors,
            self.items_left, opened,
        )  # fmt: skip

    def reflect(self, Y: Tensor, counts: Tensor, rows: int, rest: int) -> None:
        """Reflect the subspaces so that the rows of Y, orthonormal up to rounding, are last axes.

        At most `rest` axes are left then.
        """
        draws, M, k = len(self.ids), Y.shape[1], self.k
        T = Y.new_empty((draws, M, M))
        self.kernels(
            "reflect", (draws, 1), THREADS, Y, M, rows, self.items_left, counts, T, shared=8 * M * M
        )
        TY = torch.bmm(T, Y)
        if self.W is None:
            self.append(Y, TY, rest)
            return
        kept = min(whole_tiles(rest), rows)
        change = torch.bmm(TY, self.W[:, :rows])
        self.W[:, :kept].baddbmm_(Y[:, :, :kept].mT, change, alpha=-1.0)
        self.kernels("drop", (M, draws), 128, self.W, self.W.shape[1], k, self.items_left, counts)

    def append(self, Y: Tensor, TY: Tensor, rest: int) -> None:
        """Append a reflection to the groups; two rounds share one: larger products are faster."""
        if self.groups and self.groups[-1][0].shape[1] <= self.most:
            before, TB, _ = self.groups.pop()
            length = Y.shape[2]
            both = torch.bmm(torch.bmm(TY, before[:, :, :length].mT), TB).neg_()
            both[:, :, :length] += TY
            Y = torch.nn.functional.pad(Y, (0, before.shape[2] - length))
            Y, TY = torch.cat((before, Y), dim=1), torch.cat((TB, both), dim=1)
        self.groups.append((Y, TY, rest))

    def project(self, X: Tensor) -> Tensor:
        """Return coordinates of proposals in the subspaces; those beyond items_left do not count.

        They are written where X is.
        """
        for Y, TY, rest in self.groups:
            U = torch.bmm(X[:, :, : Y.shape[2]], TY.mT)
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
            Y, TY, _ = self.groups.pop()
            part = self.W[:, :, : Y.shape[2]]
            part.baddbmm_(torch.bmm(part, Y.mT), TY, alpha=-1.0)
