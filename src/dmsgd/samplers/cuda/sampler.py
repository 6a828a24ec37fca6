"""The sampler of a k-DPP whose eigenvectors are on a GPU: its tables, and small batches."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from torch import Tensor

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials import log_polynomials
from dmsgd.samplers.cuda.large_batches import draw_large
from dmsgd.samplers.cuda.program import program
from dmsgd.samplers.protocol import PreparedSampler
from dmsgd.samplers.rejection import NOT_ORTHONORMAL

#: Item numbers in the output of one call of the kernels.
MAX_INDICES = 2**28
#: Fewer draws per call than this leave parts of the GPU idle. Larger batches are called for fewer
#: at a time: about k³ = OPERATIONS, a third of a second, and ITEMS item numbers.
CHUNK, OPERATIONS, ITEMS = 2048, 2**41, 2**20

#: Rows of V in a group, entries of a line of the tables, and columns that a thread block fills.
GROUP, LINE, THREADS = 64, 16, 128
#: Warps per thread block by the largest k; above the last, batches are large.
WARPS = {32: 1, 56: 2, 112: 4, 160: 8}

SETUP = ("philox.cuh", "setup.cu")
SMALL_BATCHES = ("philox.cuh", "tables.cuh", "small_batches.cu")


def cuda_sampler(V: Tensor, values: FloatArray, k: int) -> PreparedSampler:
    """Return the sampler with these eigenpairs; it returns CUDA tensors, int64, (size, k)."""
    chunk = max(1, min(CHUNK, OPERATIONS // k**3, ITEMS // k))
    return PreparedSampler("rejection", CudaSampler(V, values, k).sample, chunk)


@final
class CudaSampler:
    """The default sampler on a GPU."""

    def __init__(self, V: Tensor, values: FloatArray, k: int) -> None:
        self.V, self.values, self.k = V, values, k
        self.draw = draw_small if is_small(k, V.device) else draw_large

    @cached_property
    def tables(self) -> CudaTables:
        """The tables of V."""
        return cuda_tables(self.V)

    @cached_property
    def log_e(self) -> Tensor:
        """log e_l of the first m eigenvalues, shape (k + 1, rank + 1)."""
        return torch.from_numpy(log_polynomials(self.values, self.k)).to(self.V.device)

    def sample(self, key: int, start: int, size: int, workers: int) -> Any:
        """Return draws start to start + size of the random stream `key`."""
        with torch.cuda.device(self.V.device):
            out = torch.empty((size, self.k), dtype=torch.int64, device=self.V.device)
            step = max(1, MAX_INDICES // self.k)
            for first in range(0, size, step):
                part = out[first : first + step]
                J = self.choose_eigenvectors(key, start + first, len(part))
                failed = self.draw(self.tables.arguments(), J, key, start + first, part)
                if failed is not None:
                    at = start + first + failed
                    raise SamplingError(f"draw {at} was not completed: {NOT_ORTHONORMAL}")
        return out

    def choose_eigenvectors(self, key: int, start: int, size: int) -> Tensor:
        """Return the eigenvectors of draws, shape (size, k), int32."""
        J = torch.empty((size, self.k), dtype=torch.int32, device=self.V.device)
        setup = program(SETUP, int(self.V.device.index))
        number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
        sizes = self.values.size, self.k
        setup("choose", (-(-size // 128), 1), 128, self.log_e, *sizes, *number, size, J)
        return J


@final
@dataclass(frozen=True)
class CudaTables:
    """V with its search tables, which take a bit over a quarter of V; see `tables.cuh`."""

    V: Tensor
    totals: Tensor
    lines: Tensor
    hints: Tensor

    def arguments(self) -> tuple[Any, ...]:
        """Return what kernels take: tensors and sizes."""
        (n, r), last = self.V.shape, self.hints.shape[1] - 1
        sizes = (n, r, self.lines.shape[0], last)
        return self.V, self.totals, self.lines, self.hints, *map(ctypes.c_longlong, sizes)


def cuda_tables(V: Tensor) -> CudaTables:
    """Return the tables of V, which is contiguous."""
    n, r = V.shape
    groups = -(-n // GROUP)
    setup = program(SETUP, int(V.device.index))
    size, grid = (ctypes.c_longlong(n), ctypes.c_longlong(r)), (groups, -(-r // THREADS))
    ends = torch.empty((groups, r), dtype=torch.float64, device=V.device)
    setup("group_sums", grid, THREADS, V, *size, ends)
    ends = torch.cumsum(ends, dim=0)
    lines = torch.empty((groups, r, LINE), dtype=torch.float64, device=V.device)
    setup("fill_lines", grid, THREADS, V, *size, ends, lines)
    last = 2 * groups
    hints = torch.empty((r, last + 1), dtype=torch.int32, device=V.device)
    counts = (ctypes.c_longlong(groups), ctypes.c_longlong(r), ctypes.c_longlong(last))
    setup("fill_hints", (-(-r * (last + 1) // 256), 1), 256, ends, *counts, hints)
    return CudaTables(V, ends[-1].clone(), lines, hints)


def is_small(k: int, device: torch.device) -> bool:
    """Return whether the basis of a batch of k fits into the shared memory of a thread block.

    The kernel also needs float64 tensor cores, from compute capability 8.0 on.
    """
    about = torch.cuda.get_device_properties(device)
    if k > max(WARPS) or about.major < 8:
        return False
    available = int(getattr(about, "shared_memory_per_block_optin", 48 * 1024))
    return shared_bytes(k, warps_for(k)) <= available


def warps_for(k: int) -> int:
    """Return the warps of a thread block."""
    return next(warps for most, warps in WARPS.items() if k <= most)


def shared_bytes(k: int, warps: int) -> int:
    """Return the bytes of `Shared` in small_batches.cu."""
    steps, tiles = -(-k // 4), 2 * -(-k // 16)
    doubles = 32 * tiles * steps + 4 * steps + 8 * tiles + warps + 1 + 32 * warps
    return 8 * doubles + 4 * (32 * warps + warps + 4 * steps) + 16


def draw_small(
    tables: tuple[Any, ...],
    J: Tensor,
    key: int,
    start: int,
    out: Tensor,
    warps: int | None = None,
) -> int | None:
    """Fill `out` with the draws whose eigenvectors are the rows of J; return the first failure."""
    size, k = out.shape
    warps = warps or warps_for(k)
    kernels = program(SMALL_BATCHES, int(out.device.index), K=k, WARPS=warps)
    failed = torch.zeros(1, dtype=torch.int32, device=out.device)
    limit = (100 * k + 3200) // (8 * warps) + 1
    number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
    arguments = (*tables, J, *number, limit, out, failed)
    shared = shared_bytes(k, warps)
    kernels("draw_small", (size, 1), 32 * warps, *arguments, shared=shared)
    found = int(failed.item())
    return found - 1 if found else None
