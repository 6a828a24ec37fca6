"""Eigenvectors on a GPU, and what tensors spell differently from arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dmsgd.errors import DeviceError
from dmsgd.inputs.arrays import FloatArray, IntArray, on_host
from dmsgd.inputs.messages import format_bytes
from dmsgd.runtime.memory import reserve
from dmsgd.samplers.contract import PreparedSampler
from dmsgd.samplers.cuda.sampler import cuda_sampler
from dmsgd.samplers.rejection_sampling import DenseTables, dpp_sampler
from dmsgd.spectra.decompose import eigh, empty, like, qr, solve_triangular
from dmsgd.spectra.eigenvectors import Eigenvectors, as_eigenvectors

#: Numbers of V that are squared at a time.
SLICE = 2**27


@eigh.register
def _(symmetric: Tensor) -> tuple[FloatArray, Tensor]:
    values, vectors = torch.linalg.eigh(symmetric)
    return on_host(values.flip(0)), vectors.flip(1)


@qr.register
def _(A: Tensor) -> tuple[Tensor, Tensor]:
    Q, R = torch.linalg.qr(A)
    return Q, R


@solve_triangular.register
def _(B: Tensor, lower: FloatArray) -> Tensor:
    found: Tensor = torch.linalg.solve_triangular(like(B, lower), B, upper=False)
    return found


@empty.register
def _(where: Tensor, shape: tuple[int, int]) -> Tensor:
    return where.new_empty(shape, dtype=torch.float64)


@like.register
def _(where: Tensor, array: Any) -> Tensor:
    if isinstance(array, Tensor):
        return array.to(where.device)
    return torch.from_numpy(np.ascontiguousarray(array)).to(where.device)


@as_eigenvectors.register
def _(vectors: Tensor) -> Eigenvectors:
    return CudaVectors(vectors.contiguous())


@final
class CudaVectors(Eigenvectors):
    """A float64 tensor on a GPU."""

    stored = False

    def select(self, order: IntArray) -> CudaVectors:
        if np.array_equal(order, np.arange(self.shape[1])):
            return self
        return CudaVectors(self.V[:, like(self.V, order)].contiguous())

    def rotate(self, U: FloatArray, zero: IntArray) -> CudaVectors:
        return CudaVectors(super().rotate(U, zero))

    def weighted_squares(self, pi: FloatArray) -> FloatArray:
        weights, step = like(self.V, pi), max(1, SLICE // self.shape[1])
        starts = range(0, self.shape[0], step)
        return on_host(torch.cat([self.V[a : a + step].square() @ weights for a in starts]))

    def sampler(self, values: FloatArray, k: int) -> PreparedSampler:
        return cuda_sampler(self.V, values, k)

    def sampler_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        return dpp_sampler(DenseTables(np.asarray(self)), probabilities)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        reserve(self.V.numel(), f"all eigenvectors of {self!r}", "sample and inclusion need none")
        return on_host(self.V).astype(dtype or np.float64, copy=False)


def reserve_on(device: torch.device, numbers: int, what: str) -> None:
    """Raise DeviceError if the GPU has no room for this many numbers of float64."""
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if 8 * numbers > free:
        raise DeviceError(
            f"{what} take {format_bytes(8 * numbers)}, and {device} has {format_bytes(free)} "
            f"free; free some, use a part of the items or features, or pass X.cpu()"
        )
