"""The exact eigendecomposition on a graphics card.

The routes and what is to be believed of them are those of `dmsgd.spectra.exact`; the eigenproblem
is cuSOLVER's.
"""

from __future__ import annotations

import logging
from typing import final

import numpy as np
import torch
from torch import Tensor

from dmsgd.errors import DeviceError
from dmsgd.features.device import OnDevice
from dmsgd.inputs.messages import format_bytes
from dmsgd.inputs.progress import LONG, format_seconds
from dmsgd.kernels import Kernel
from dmsgd.spectra.device_vectors import SLICE, DeviceVectors
from dmsgd.spectra.eigen import noise
from dmsgd.spectra.rounds import SQUARED_LIMIT, in_rounds
from dmsgd.spectra.spectrum import Rounding, Spectrum, truncated
from dmsgd.spectra.ties import ALIKE, equal_groups

log = logging.getLogger("dmsgd")

#: Seconds that an eigendecomposition takes on an H200, times n³.
SECONDS = 6e-13


def of_features_there(F: OnDevice, tol: float) -> Spectrum:
    """Return the spectrum of F Fᵀ, whose eigenvectors are on the card of F."""
    size = min(F.n, F.d)
    if F.d >= F.n:
        _reserve(
            F.tensor.device, 3 * F.n**2, f"the {F.n} x {F.n} matrix F Fᵀ with its eigenvectors"
        )
        transposed = OnDevice(F.tensor.T.contiguous())
        values, U = right_vectors(transposed)
        U[~F.tensor.any(dim=1)] = 0.0  # but for rounding they are
        route, V = "primal", U
    else:
        _reserve(F.tensor.device, F.n * F.d + 4 * F.d**2, f"the eigenvectors of {F.n:,} items")
        values, U = right_vectors(F)
        route = "dual"
        values, V = _left_vectors(F, values, U)
    kept = values.cpu().numpy()
    if kept.min() < SQUARED_LIMIT * kept.max():
        route += "+rounds"
    rounding = Rounding(0.5, size - kept.size, noise(size) ** 2)
    return truncated(kept, DeviceVectors(V.contiguous()), route, rounding, tol)


def of_entries_there(kernel: Kernel, tol: float) -> Spectrum:
    """Return the spectrum of a kernel whose matrix is formed on the card of its features."""
    n, first = kernel.n, kernel.on_device(np.zeros(1, dtype=np.int64))
    # The matrix, its eigenvectors, what the eigendecomposition takes besides, and their order.
    what = f"the full matrix of {kernel!r} with its eigenvectors"
    _reserve(first.device, 6 * n**2, what)
    if (seconds := SECONDS * n**3) > LONG:
        log.warning("%s takes about %s on a fast card", what, format_seconds(seconds))
    return of_matrix_there(kernel.on_device(), tol)


def of_matrix_there(L: Tensor, tol: float) -> Spectrum:
    """Return the spectrum of a full kernel matrix on a card, which is overwritten."""
    n, empty = len(L), L.diagonal() == 0
    values, V = _eigh(L)
    del L
    V[empty] = 0.0  # but for rounding they are
    least = noise(n)
    rank = int((values > least * values[0]).sum())
    values, V = values[:rank], V[:, :rank]
    _settle_ties(values, V, least * float(values[0]))
    rounding = Rounding(1.0, n - rank, least)
    return truncated(values.cpu().numpy(), DeviceVectors(V.contiguous()), "primal", rounding, tol)


def right_vectors(F: OnDevice) -> tuple[Tensor, Tensor]:
    """Return the squared singular values of F that are above rounding, and their right vectors."""
    return in_rounds(_There(F), _eigh, _settle_ties)


@final
class _There:
    """Products of features that stay on their card."""

    def __init__(self, F: OnDevice) -> None:
        self.gram, self.gram_of, self.normal = F.gram_there, F.gram_of_there, F.normal_there


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
        turned = torch.linalg.qr(rest)[0]
        turned[~rest.any(dim=1)] = 0.0  # but for rounding they are
        V[:, small] = turned
    return values, V


def _eigh(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues, largest first, and eigenvectors."""
    values, vectors = torch.linalg.eigh(symmetric)
    return values.flip(0), vectors.flip(1)


def _settle_ties(values: Tensor, vectors: Tensor, spread: float) -> None:
    """Choose one basis where eigenvalues are equal, as `dmsgd.spectra.ties` does."""
    for tie in equal_groups(values.cpu().numpy(), spread):
        vectors[:, tie] = _settled(vectors[:, tie].clone())


def _settled(rest: Tensor) -> Tensor:
    """Return the basis whose first vector is longest at a row, the second at another, and so on."""
    out = torch.empty_like(rest)
    for c in range(out.shape[1]):
        squares = rest.square().sum(dim=1)
        row = (squares >= (1 - ALIKE) * squares.max()).to(torch.int8).argmax()
        x = rest[row].clone()
        x[0] += torch.copysign(x.norm(), x[0])  # the reflection of x onto the first axis
        rest.addr_(rest @ x, x * (-2 / (x @ x)))
        out[:, c] = rest[:, 0] * rest[row, 0].sign()
        rest = rest[:, 1:]
    return out


def _reserve(device: torch.device, numbers: int, what: str) -> None:
    """Raise DeviceError if the card has no room for so many numbers of float64."""
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if 8 * numbers > free:
        raise DeviceError(
            f"{what} take {format_bytes(8 * numbers)}, and {device} has {format_bytes(free)} "
            f"free; free some, use a part of the items or features, or pass X.cpu()"
        )
