"""Draws of a k-DPP whose eigenvectors are on a card: which way, and in what portions."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any, final

import torch
from torch import Tensor

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials import log_polynomials
from dmsgd.samplers.device.few import fits, make_few
from dmsgd.samplers.device.many import make_many
from dmsgd.samplers.device.program import program
from dmsgd.samplers.device.tables import DeviceTables, tables_of
from dmsgd.samplers.protocol import Draw
from dmsgd.samplers.rejection import NOT_ORTHONORMAL

#: Item numbers of draws that are made at a time.
PORTION = 2**28
#: Draws that are best asked for in one call, fewer leave parts of the card idle; but no more than
#: take about k³ = so many operations, a third of a second, and have so many items.
CHUNK, OPERATIONS, ITEMS = 2048, 2**41, 2**20


def of_device(V: Tensor, values: FloatArray, k: int) -> Draw:
    """Return what draws from the k-DPP with these eigenpairs: CUDA tensors, int64, (size, k)."""
    sampler = DeviceSampler(V, values, k)
    chunk = max(1, min(CHUNK, OPERATIONS // k**3, ITEMS // k))
    return Draw("rejection", sampler.draw, chunk)


@final
class DeviceSampler:
    """The default sampler, on a card."""

    def __init__(self, V: Tensor, values: FloatArray, k: int) -> None:
        self.V, self.values, self.k = V, values, k
        self.make = make_few if fits(k, V.device) else make_many

    @cached_property
    def tables(self) -> DeviceTables:
        """The tables of V."""
        return tables_of(self.V)

    @cached_property
    def log_e(self) -> Tensor:
        """log e_l of the first m eigenvalues, shape (k + 1, rank + 1)."""
        return torch.from_numpy(log_polynomials(self.values, self.k)).to(self.V.device)

    def draw(self, key: int, start: int, size: int, workers: int) -> Any:
        """Return draws start..start+size of the random stream `key`."""
        with torch.cuda.device(self.V.device):
            out = torch.empty((size, self.k), dtype=torch.int64, device=self.V.device)
            step = max(1, PORTION // self.k)
            for first in range(0, size, step):
                part = out[first : first + step]
                J = self.eigenvectors(key, start + first, len(part))
                failed = self.make(self.tables, J, key, start + first, part)
                if failed is not None:
                    at = start + first + failed
                    raise SamplingError(f"draw {at} was not completed: {NOT_ORTHONORMAL}")
        return out

    def eigenvectors(self, key: int, start: int, size: int) -> Tensor:
        """Return which eigenvectors draws take, shape (size, k), int32."""
        J = torch.empty((size, self.k), dtype=torch.int32, device=self.V.device)
        choose = program(("random.cuh", "choose.cu"), int(self.V.device.index))
        number = ctypes.c_ulonglong(key), ctypes.c_ulonglong(start)
        sizes = self.values.size, self.k
        choose("choose", (-(-size // 128), 1), 128, self.log_e, *sizes, *number, size, J)
        return J
