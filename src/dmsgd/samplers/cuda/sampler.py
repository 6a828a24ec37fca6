"""The sampler of a k-DPP on a GPU: its tables, and how batches of small and middle size are drawn.

Small ones are drawn one per thread block (`small_batches.cu`); for batches of middle size each
thread block makes one draw after another (`medium_batches.cu`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials import log_polynomials
from dmsgd.samplers.contract import PreparedSampler
from dmsgd.samplers.cuda.large_batches import draw_large
from dmsgd.samplers.cuda.program import most_bytes, program
from dmsgd.samplers.plain import NOT_ORTHONORMAL

#: Item numbers in the output of one call of the kernels.
MAX_INDICES = 2**28
#: Fewer draws per call than this leave parts of the GPU idle. Larger batches are called for fewer
#: at a time: about k³ = OPERATIONS, three quarters of a second, and ITEMS item numbers.
CHUNK, OPERATIONS, ITEMS = 2048, 2**43, 2**20

#: Rows of V in a group, entries of a line of the tables, and columns that a thread block fills.
GROUP, LINE, THREADS = 64, 16, 128
#: Warps per thread block by the largest k; above the last, batches are not small.
WARPS = {32: 1, 56: 2}

SETUP = ("philox.cuh", "setup.cu")
SMALL_BATCHES = ("philox.cuh", "tables.cuh", "matrix_units.cuh", "small_batches.cu")
MEDIUM_BATCHES = (*SMALL_BATCHES[:3], "screen.cuh", "medium_batches.cu")

#: Of middle size: the largest k, that for which a multiprocessor has registers for two thread
#: blocks, proposals of a round, and threads of a block.
MOST, TWO, ROUND, MEDIUM_THREADS = 256, 144, 64, 256


def cuda_sampler(V: Tensor, values: FloatArray, k: int) -> PreparedSampler:
    """Return the sampler with these eigenpairs; it returns CUDA tensors, int64, (size, k)."""
    device, chunk = V.device, max(1, min(CHUNK, OPERATIONS // k**3, ITEMS // k))
    with torch.cuda.device(device):
        torch.cuda.synchronize()  # V may come from another stream
        tables = cuda_tables(V)
        draw: Callable[..., int | None] = draw_small
        if not is_small(k, device):
            larger = draw_medium if is_medium(k, device) else draw_large
            draw = partial(larger, rows_to_screen(V))
        # This copy waits for the tables, too: threads read both on streams of their own.
        log_e = torch.from_numpy(log_polynomials(values, k)).to(device)

    def sample(key: int, start: int, size: int, workers: int) -> Any:
        # Training may ask for rougher products than those whose rounding is bounded.
        with torch.cuda.device(device), torch.autocast("cuda", enabled=False):
            out = torch.empty((size, k), dtype=torch.int64, device=device)
            step = max(1, MAX_INDICES // k)
            for first in range(0, size, step):
                part, number = out[first : first + step], start + first
                failed = draw(tables, _choose(log_e, key, number, len(part)), key, number, part)
                if failed is not None:
                    at = number + failed
                    raise SamplingError(f"draw {at} was not completed: {NOT_ORTHONORMAL}")
        return out

    return PreparedSampler("rejection", sample, chunk)


def _choose(log_e: Tensor, key: int, start: int, size: int) -> Tensor:
    """Return the eigenvectors of draws, shape (size, k), int32.

    log_e: log e_l of the first m eigenvalues, shape (k + 1, rank + 1).
    """
    k, rank = log_e.shape[0] - 1, log_e.shape[1] - 1
    J = torch.empty((size, k), dtype=torch.int32, device=log_e.device)
    setup = program(SETUP, int(log_e.device.index))
    number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
    setup("choose", (-(-size // 128), 1), 128, log_e, rank, k, *number, size, J)
    return J


def cuda_tables(V: Tensor) -> tuple[Any, ...]:
    """Return V, which is contiguous, its search tables and their sizes; see `tables.cuh`.

    The tables take a bit over a quarter of V.
    """
    n, r = V.shape
    groups = -(-n // GROUP)
    last, setup = 2 * groups, program(SETUP, int(V.device.index))
    n_, r_, groups_, last_ = map(ctypes.c_longlong, (n, r, groups, last))
    grid = groups, -(-r // THREADS)
    ends = torch.empty((groups, r), dtype=torch.float64, device=V.device)
    setup("group_sums", grid, THREADS, V, n_, r_, ends)
    ends = torch.cumsum(ends, dim=0)
    lines = torch.empty((groups, r, LINE), dtype=torch.float64, device=V.device)
    setup("fill_lines", grid, THREADS, V, n_, r_, ends, lines)
    hints = torch.empty((r, last + 1), dtype=torch.int32, device=V.device)
    blocks = -(-r * (last + 1) // 256)
    setup("fill_hints", (blocks, 1), 256, ends, groups_, r_, last_, hints)
    return V, ends[-1].clone(), lines, hints, n_, r_, groups_, last_


def is_small(k: int, device: torch.device) -> bool:
    """Return whether the basis of a batch of k fits into the shared memory of a thread block.

    The kernel also needs float64 tensor cores, from compute capability 8.0 on.
    """
    about = torch.cuda.get_device_properties(device)
    small = k <= max(WARPS) and about.major >= 8
    return small and small_bytes(k, warps_for(k)) <= most_bytes(about)


def is_medium(k: int, device: torch.device) -> bool:
    """Return whether `draw_medium` serves k: float16 and float64 matrix units, and memory."""
    about = torch.cuda.get_device_properties(device)
    return k <= MOST and about.major >= 8 and medium_bytes(k) <= most_bytes(about)


def warps_for(k: int) -> int:
    """Return the warps of a thread block."""
    return next(warps for most, warps in WARPS.items() if k <= most)


def small_bytes(k: int, warps: int) -> int:
    """Return the bytes of `Shared` in small_batches.cu."""
    steps, tiles = -(-k // 4), 2 * -(-k // 16)
    doubles = 32 * tiles * steps + 4 * steps + 8 * tiles + warps + 1 + 32 * warps
    return 8 * doubles + 4 * (32 * warps + warps + 4 * steps) + 16


def draw_small(tables: tuple[Any, ...], J: Tensor, key: int, start: int, out: Tensor) -> int | None:
    """Fill `out` with the draws whose eigenvectors are the rows of J; return the first failure."""
    size, k = out.shape
    warps = warps_for(k)
    kernels = program(SMALL_BATCHES, int(out.device.index), K=k, WARPS=warps)
    failed = torch.zeros(1, dtype=torch.int32, device=out.device)
    limit = (100 * k + 3200) // (8 * warps) + 1
    number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
    arguments = (*tables, J, *number, limit, out, failed)
    shared = small_bytes(k, warps)
    kernels("draw_small", (size, 1), 32 * warps, *arguments, shared=shared)
    found = int(failed.item())
    return found - 1 if found else None


def medium_bytes(k: int) -> int:
    """Return the bytes of `Shared` in screen.cuh."""
    padded = -(-k // 16) * 16
    return 2 * padded**2 + 196 * padded + 26_608


def blocks_at_once(k: int, about: Any) -> int:
    """Return how many thread blocks of `draw_medium` a multiprocessor is to hold."""
    room = getattr(about, "shared_memory_per_multiprocessor", 0)
    return 2 if k <= TWO and 2 * (medium_bytes(k) + 1024) <= room else 1


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
    each, halves = blocks_at_once(k, about), int(rows.dtype == torch.float16)
    kernels = program(MEDIUM_BATCHES, int(device.index), K=k, BLOCKS=each, HALVES=halves)
    blocks = min(size, each * about.multi_processor_count)
    room = torch.zeros((blocks, (-(-k // 16) * 16) ** 2), dtype=torch.float64, device=device)
    draws, failed = torch.zeros((2, 1), dtype=torch.int32, device=device)
    number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
    limit = (100 * k + 3200) // ROUND + 1
    arguments = (rows, *tables, J, *number, size, limit, room, draws, out, failed)
    kernels("draw_medium", (blocks, 1), MEDIUM_THREADS, *arguments, shared=medium_bytes(k))
    found = int(failed.item())
    return found - 1 if found else None
