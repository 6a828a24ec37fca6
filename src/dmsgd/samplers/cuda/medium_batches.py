"""Batches of middle size: thread blocks that make one draw after another (`medium_batches.cu`)."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from dmsgd.samplers.cuda.program import program

FILES = ("philox.cuh", "tables.cuh", "matrix_units.cuh", "screen.cuh", "medium_batches.cu")
#: The largest k, proposals of a round, and threads of a block.
MOST, ROUND, THREADS = 256, 64, 256
#: Tiles of Q in shared memory: five where they fit, else four; more leave less to the L1 cache.
STAGES = 5, 4


def is_medium(k: int, device: torch.device) -> bool:
    """Return whether batches of k can be drawn so: float16 and float64 matrix units, and memory."""
    about = torch.cuda.get_device_properties(device)
    return k <= MOST and about.major >= 8 and shared_bytes(k, STAGES[1]) <= most_bytes(about)


def most_bytes(about: Any) -> int:
    """Return the shared memory that a thread block may have."""
    return int(getattr(about, "shared_memory_per_block_optin", 48 * 1024))


def shared_bytes(k: int, stages: int) -> int:
    """Return the bytes of `Shared` in screen.cuh."""
    padded = -(-k // 16) * 16
    return 2 * padded**2 + 68 * padded * stages + 4 * padded + 29_680


def tiles(k: int, about: Any) -> int:
    """Return how many tiles a thread block holds."""
    return STAGES[0] if shared_bytes(k, STAGES[0]) <= most_bytes(about) else STAGES[1]


def rows_to_screen(V: Tensor) -> Tensor:
    """Return 2^15 V in float16, or V itself if that took over half of the memory that is free."""
    free = torch.cuda.mem_get_info(V.device)[0] + torch.cuda.memory_reserved(V.device)
    if 4 * V.numel() > free - torch.cuda.memory_allocated(V.device):
        return V
    return torch.mul(V, 2.0**15, out=torch.empty_like(V, dtype=torch.float16))


def draw_medium(
    rows: Tensor, tables: tuple[Any, ...], J: Tensor, key: int, start: int, out: Tensor
) -> int | None:
    """Fill `out` with the draws whose eigenvectors are the rows of J; return the first failure.

    rows: see `rows_to_screen`.
    """
    (size, k), device = out.shape, out.device
    about = torch.cuda.get_device_properties(device)
    stages, halves = tiles(k, about), int(rows.dtype == torch.float16)
    kernels = program(FILES, int(device.index), K=k, STAGES=stages, HALVES=halves)
    blocks = min(size, about.multi_processor_count)
    room = torch.zeros((blocks, (-(-k // 16) * 16) ** 2), dtype=torch.float64, device=device)
    draws, failed = torch.zeros((2, 1), dtype=torch.int32, device=device)
    number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
    limit = (100 * k + 3200) // ROUND + 1
    arguments = (rows, *tables, J, *number, size, limit, room, draws, out, failed)
    kernels("draw_medium", (blocks, 1), THREADS, *arguments, shared=shared_bytes(k, stages))
    found = int(failed.item())
    return found - 1 if found else None
