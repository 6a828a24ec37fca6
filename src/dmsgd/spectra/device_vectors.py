"""Eigenvectors and columns of factors that stay on a graphics card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import reserve
from dmsgd.kernels import Kernel
from dmsgd.samplers.cuda.sampler import cuda_sampler
from dmsgd.samplers.protocol import PreparedSampler
from dmsgd.samplers.rejection import dense_tables, dpp_sampler
from dmsgd.spectra.vectors import Vectors

#: Numbers of V that are worked on at a time.
SLICE = 2**27


@final
class DeviceVectors(Vectors):
    """A float64 tensor on a card."""

    ndim = 2

    def __init__(self, V: Tensor) -> None:
        self.V = V
        self.shape = (int(V.shape[0]), int(V.shape[1]))

    def _there(self, array: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.V.device)

    def rows(self, items: IntArray) -> FloatArray:
        return np.asarray(self.V[self._there(items)].cpu().numpy())

    def columns(self, J: Any) -> FloatArray:
        return np.asarray(self.V[:, self._there(J)].cpu().numpy())

    def chosen(self, order: IntArray) -> DeviceVectors:
        if np.array_equal(order, np.arange(self.shape[1])):
            return self
        return DeviceVectors(self.V[:, self._there(order)].contiguous())

    def times(self, x: FloatArray) -> FloatArray:
        return np.asarray((self.V @ self._there(x)).cpu().numpy())

    def turned(self, U: FloatArray, zero: IntArray) -> DeviceVectors:
        V = self.V @ self._there(U)
        V[self._there(zero)] = 0.0  # but for rounding it is
        return DeviceVectors(V)

    def weighted_squares(self, pi: FloatArray) -> FloatArray:
        weights, step = self._there(pi), max(1, SLICE // self.shape[1])
        parts = [
            self.V[first : first + step].square() @ weights
            for first in range(0, self.shape[0], step)
        ]
        return np.asarray(torch.cat(parts).cpu().numpy())

    def rejection(self, values: FloatArray, k: int) -> PreparedSampler:
        return cuda_sampler(self.V, values, k)

    def rejection_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        return dpp_sampler(dense_tables(np.asarray(self)), probabilities)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        reserve(self.V.numel(), f"all eigenvectors of {self!r}", "sample and inclusion need none")
        return np.asarray(self.V.cpu().numpy()).astype(dtype or np.float64, copy=False)

    def __repr__(self) -> str:
        return f"DeviceVectors({self.shape[0]:,} items, rank {self.shape[1]}, {self.V.device})"


@final
class ColumnsThere:
    """The columns of a factor on a card; see `dmsgd.spectra.cholesky.Columns`."""

    def __init__(self, kernel: Kernel, rank: int) -> None:
        first: Tensor = kernel.on_device(np.zeros(1, dtype=np.int64))
        self.kernel, self.F, self.done = kernel, first.new_empty((kernel.n, rank)), 0

    def rows(self, items: IntArray) -> FloatArray:
        return np.asarray(self._rows(items).cpu().numpy())

    def _rows(self, items: IntArray) -> Tensor:
        return self.F[torch.from_numpy(items).to(self.F.device), : self.done]

    def add(self, pivots: IntArray, triangle: FloatArray) -> FloatArray:
        columns: Tensor = self.kernel.on_device(pivots)
        columns -= self.F[:, : self.done] @ self._rows(pivots).T
        lower = torch.from_numpy(triangle).to(columns.device)
        new = torch.linalg.solve_triangular(lower, columns.T, upper=False).T
        self.F[:, self.done : self.done + pivots.size] = new
        self.done += pivots.size
        return np.asarray(new.square().sum(dim=1).cpu().numpy())

    def whole(self) -> Tensor:
        return self.F[:, : self.done]
