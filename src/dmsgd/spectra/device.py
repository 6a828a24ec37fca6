"""The exact eigendecomposition on a graphics card, and eigenvectors that stay there.

The routes and what is to be believed of them are those of `dmsgd.spectra.exact`; the eigenproblem
is cuSOLVER's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dmsgd.errors import DeviceError
from dmsgd.features.device import OnDevice
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import human, reserve
from dmsgd.kernels import Kernel
from dmsgd.samplers.device.draws import of_device
from dmsgd.samplers.protocol import Draw
from dmsgd.samplers.rejection import of_any_size
from dmsgd.samplers.tables import tables_of
from dmsgd.spectra.eigen import ALIKE, noise
from dmsgd.spectra.rounds import SQUARED_LIMIT
from dmsgd.spectra.spectrum import Rounding, Spectrum, truncated
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

    def weighed_squares(self, pi: FloatArray) -> FloatArray:
        weights, step = self._there(pi), max(1, SLICE // self.shape[1])
        parts = [
            self.V[first : first + step].square() @ weights
            for first in range(0, self.shape[0], step)
        ]
        return np.asarray(torch.cat(parts).cpu().numpy())

    def rejection(self, values: FloatArray, k: int) -> Draw:
        return of_device(self.V, values, k)

    def rejection_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        return of_any_size(tables_of(np.asarray(self)), probabilities)

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


def of_features_there(F: OnDevice, tol: float) -> Spectrum:
    """Return the spectrum of F Fᵀ, whose eigenvectors are on the card of F."""
    size = min(F.n, F.d)
    rounding = Rounding(0.5, 0, noise(size) ** 2)
    if F.d >= F.n:
        _reserve(F, 3 * F.n**2, f"the {F.n} x {F.n} matrix F Fᵀ with its eigenvectors")
        transposed = OnDevice(F.tensor.T.contiguous())
        values, U = right_vectors(transposed)
        route, V = "primal", U
    else:
        _reserve(F, F.n * F.d + 4 * F.d**2, f"the eigenvectors of {F.n:,} items")
        values, U = right_vectors(F)
        route = "dual"
        values, V = _left_vectors(F, values, U)
    kept = values.cpu().numpy()
    if kept.min() < SQUARED_LIMIT * kept.max():
        route += "+rounds"
    hidden = Rounding(0.5, size - kept.size, rounding.least)
    return truncated(kept, DeviceVectors(V.contiguous()), route, hidden, tol)


def of_matrix_there(L: Tensor, tol: float) -> Spectrum:
    """Return the spectrum of a full kernel matrix on a card, which is overwritten."""
    n = len(L)
    values, V = _eigh(L)
    del L
    least = noise(n)
    rank = int((values > least * values[0]).sum())
    values, V = values[:rank], V[:, :rank]
    _settle_ties(values, V, least * float(values[0]))
    rounding = Rounding(1.0, n - rank, least)
    return truncated(values.cpu().numpy(), DeviceVectors(V.contiguous()), "primal", rounding, tol)


def right_vectors(F: OnDevice) -> tuple[Tensor, Tensor]:
    """Return the squared singular values of F that are above rounding, and their right vectors.

    In rounds, as `dmsgd.spectra.rounds.right_vectors` does and explains.
    """
    values, U = _eigh(F.gram_there())
    size = U.shape[1]
    least = noise(size) ** 2 * float(values[0])
    done = 0
    while True:
        top = float(values[done])
        well = done + int((values[done:] > max(SQUARED_LIMIT * top, least)).sum())
        _settle_ties(values[done:well], U[:, done:well], noise(size) * top)
        if well in (done, size):
            return values[:well], U[:, :well]
        done = well
        W, S = U[:, :done], U[:, done:]
        squared, length = F.normal_there(S)
        if length <= least:
            return values[:done], W
        hidden = W.T @ squared / values[:done, None]
        turned = S - W @ hidden
        gram = F.gram_of_there(turned)
        if float(gram.trace()) <= least:
            return values[:done], W
        W += (hidden @ S.T).T
        values[done:], R = _eigh(gram)
        U[:, done:] = turned @ R


def _left_vectors(F: OnDevice, values: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and V = F U Λ^(-1/2)."""
    basis = U / values.sqrt()
    V = torch.empty((F.n, len(values)), dtype=torch.float64, device=U.device)
    for start, rows in F.slices():
        torch.matmul(rows, basis, out=V[start : start + len(rows)])
    squares = torch.zeros_like(values)
    for start in range(0, F.n, step := max(1, SLICE // V.shape[1])):
        squares += V[start : start + step].square().sum(dim=0)
    small = values < SQUARED_LIMIT * values.max()
    values = torch.where(small, values, values * squares)  # |F u|² knows it better than the Gram
    V /= squares.sqrt()
    if bool(small.any()):  # rounding in F U is small beside large eigenvalues only: take those out
        well, rest = V[:, ~small], V[:, small]
        rest -= well @ (well.T @ rest)
        V[:, small] = torch.linalg.qr(rest)[0]
    return values, V


def _eigh(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues, largest first, and eigenvectors."""
    values, vectors = torch.linalg.eigh(symmetric)
    return values.flip(0), vectors.flip(1)


def _settle_ties(values: Tensor, vectors: Tensor, spread: float) -> None:
    """Choose one basis where eigenvalues are equal, as `dmsgd.spectra.eigen.settle_ties` does."""
    bounds = (torch.nonzero(-values.diff() > spread)[:, 0] + 1).tolist()
    for start, stop in pairwise([0, *bounds, len(values)]):
        if stop - start > 1:
            vectors[:, start:stop] = _settled(vectors[:, start:stop].clone())


def _settled(rest: Tensor) -> Tensor:
    """Return the basis whose first vector is longest at a row, the second at another, and so on."""
    out = torch.empty_like(rest)
    for c in range(out.shape[1]):
        squares = rest.square().sum(dim=1)
        row = (squares >= (1 - ALIKE) * squares.max()).to(torch.int8).argmax()
        x = rest[row].clone()
        x[0] += torch.copysign(x.norm(), x[0])  # the reflection of x onto the first axis
        rest.addr_(rest @ x, x * (-2 / (x @ x)))
        out[:, c] = rest[:, 0]
        rest = rest[:, 1:]
    return out


def _reserve(F: OnDevice, numbers: int, what: str) -> None:
    """Raise DeviceError if the card has no room for so many numbers of float64."""
    free, _ = torch.cuda.mem_get_info(F.tensor.device)
    free += torch.cuda.memory_reserved(F.tensor.device)
    free -= torch.cuda.memory_allocated(F.tensor.device)
    if 8 * numbers > free:
        raise DeviceError(
            f"{what} take {human(8 * numbers)}, and {F.tensor.device} has {human(free)} free; free "
            f"some, use a part of the items or features, or pass X.cpu()"
        )
