"""Small batches: a thread block makes a draw, with its basis in shared memory."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from dmsgd.samplers.device.program import program
from dmsgd.samplers.device.tables import DeviceTables

FILES = ("random.cuh", "tables.cuh", "few.cu")

#: Warps of a block for batches up to so many, and the most that are made this way.
WARPS = {32: 1, 56: 2, 112: 4, 160: 8}


def fits(k: int, device: torch.device) -> bool:
    """Return whether batches of k are made this way: their basis has room beside the processor.

    The matrix units take float64 from compute capability 8.0 on.
    """
    about = torch.cuda.get_device_properties(device)
    if k > max(WARPS) or about.major < 8:
        return False
    return room(k, warps_for(k)) <= int(getattr(about, "shared_memory_per_block_optin", 48 * 1024))


def warps_for(k: int) -> int:
    """Return the warps of a block."""
    return next(warps for most, warps in WARPS.items() if k <= most)


def room(k: int, warps: int) -> int:
    """Return the bytes of `Shared` in few.cu."""
    steps, tiles = -(-k // 4), 2 * -(-k // 16)
    doubles = 32 * tiles * steps + 4 * steps + 8 * tiles + warps + 1 + 32 * warps
    return 8 * doubles + 4 * (32 * warps + warps + 4 * steps) + 16


def make_few(
    tables: DeviceTables, J: Tensor, key: int, start: int, out: Tensor, warps: int | None = None
) -> int | None:
    """Fill `out` with the draws whose eigenvectors are the rows of J; return the first failure."""
    size, k = out.shape
    warps = warps or warps_for(k)
    few = program(FILES, tables.card, K=k, WARPS=warps)
    failed = torch.zeros(1, dtype=torch.int32, device=out.device)
    limit = (100 * k + 3200) // (8 * warps) + 1
    number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
    arguments = (*tables.arguments(), J, *number, limit, out, failed)
    few("few", (size, 1), 32 * warps, *arguments, shared=room(k, warps))
    found = int(failed.item())
    return found - 1 if found else None
