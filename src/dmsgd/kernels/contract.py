"""`Kernel`: a similarity matrix L over n items, and its exact spectrum.

Every other kernel of the paper is a feature map (`dmsgd.features`) followed by `Linear` or `RBF`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, final

import numpy as np
from scipy import linalg

from dmsgd.features import Features, as_features
from dmsgd.features.products import row_norms2
from dmsgd.inputs.arrays import FloatArray, IntArray, as_items, check_nonzero
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted, kind_of
from dmsgd.inputs.scalars import as_share
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.progress import EIGH, plan_work, run_interruptible
from dmsgd.spectra import Spectrum
from dmsgd.spectra.decompose import solve_triangular
from dmsgd.spectra.eigenpairs import spectrum_of_matrix, truncate
from dmsgd.spectra.rounding import EPS, Rounding

#: A kernel matrix of fewer items, or one whose diagonal entries differ by more than this share, is
#: diagonalised without a look at its rank.
LOW_RANK_ITEMS, SIMILAR = 500, 1e-3


class Kernel(ABC):
    """A symmetric positive semi-definite matrix L over n items; entries are computed on request.

    features: the features by which items are compared, if there are any.

    >>> import dmsgd
    >>> kernel: dmsgd.kernels.Kernel = dmsgd.kernels.Linear([[1.0, 0.0], [1.0, 1.0]])
    >>> kernel.n, kernel.diag().tolist(), kernel.block([0, 1], [1]).tolist()
    (2, [1.0, 2.0], [[1.0], [2.0]])
    """

    n: int
    features: Features | None = None

    @abstractmethod
    def diag(self) -> FloatArray:
        """Return L_ii for all items, shape (n,)."""

    @abstractmethod
    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741 - index sets, as in the paper
        """Return L[I, J], shape (len(I), len(J)), as a NumPy array."""

    def columns(self, J: Any) -> Any:
        """Return L[:, J], shape (n, len(J)), where the features live: an array or a CUDA tensor."""
        return self.block(np.arange(self.n), J)

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that L depends on; other data give another one."""

    def subset(self, items: Any) -> Kernel:
        """Return the kernel over these items alone, numbered by their places in `items`."""
        items = as_items(items, self.n, "items", 1)
        if not items.size:
            raise ValueError("items is empty, but a kernel is over some items; name at least one")
        return self._part(items)

    def _part(self, items: IntArray) -> Kernel:
        return Subset(self, items)

    def factor(self) -> Features | None:
        """Return features F with L = F Fᵀ, if the kernel is given by some."""
        return None

    def landmark_features(self, items: IntArray, triangle: FloatArray) -> Features:
        """Return the features C T⁻ᵀ, C being the columns of L at `items` and T the `triangle`."""
        reserve(2 * self.n * items.size, "the columns of the landmarks", "use fewer landmarks")
        F = solve_triangular(self.columns(items).T, triangle).T
        return as_features(F, allow_tiny=True)


def exact(kernel: Kernel, tol: float = 0.0) -> Spectrum:
    """Return the spectrum of `kernel`: all eigenvalues that rounding can tell from zero.

    tol: Eigenvalues up to `tol` times the largest are left out, too. The result is then the
         spectrum of another kernel, and its `trace_error` is the share of the trace left out.

    Rounding hides eigenvalues below about 1e-14 of the largest in a kernel given by its entries,
    and below 1e-28 in one given by features. It takes O(n d min(n, d)) for linear kernels, and
    O(n³) with n² memory otherwise. The route is "dual" by the d x d matrix FᵀF of features F
    (d < n), "primal" by an n x n matrix, or "pivoted Cholesky" for entries of low numerical rank:
    O(n r²), from a factor that equals them up to rounding. See also `nystrom` and
    `pivoted_cholesky` for larger kernels.

    >>> from dmsgd.kernels import Linear
    >>> exact(Linear([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])).values
    array([4., 2.])
    """
    tol = as_share(tol, "tol")
    factor = as_kernel(kernel, "exact").factor()
    found = spectrum_of_entries(kernel, tol) if factor is None else factor.spectrum(tol)
    return recorded(found, kernel, f"exact(tol={tol.hex()})")


def spectrum_of_entries(kernel: Kernel, tol: float) -> Spectrum:
    """Return the spectrum of the (n, n) matrix of a kernel, where its columns live."""
    n, everything, column = kernel.n, np.arange(kernel.n), kernel.columns([0])
    what = f"the full matrix of {kernel!r} with its eigenvectors"
    if not isinstance(column, np.ndarray):
        from dmsgd.spectra.cuda import reserve_on

        reserve_on(column.device, 6 * n**2, what)
        return spectrum_of_matrix(kernel.columns(everything), tol)
    advice = "use pivoted_cholesky(kernel, rank) or nystrom(kernel, landmarks) instead of exact"
    # The matrix, its eigenvectors, and what LAPACK needs beside them.
    plan_work(EIGH * n**3, 5 * n**2, what, advice)
    L = kernel.block(everything, everything)
    if (F := low_rank_factor(L)) is None:
        return spectrum_of_matrix(L, tol)
    left_out = float(np.abs(L.diagonal() - row_norms2(F)).sum())
    found = as_features(F, allow_tiny=True).spectrum(overwrite=True)
    rounding = Rounding(1.0, n, hidden=left_out / float(found.values[0]))
    return truncate(found.values, found.vectors, "pivoted Cholesky", rounding, tol)


def low_rank_factor(L: FloatArray) -> FloatArray | None:
    """Return F with F Fᵀ = L up to rounding, if L has LOW_RANK_ITEMS and half as many directions.

    By a Cholesky decomposition that takes the largest diagonal entry of what is left, first of
    every other row and column: if these are independent, F would be no smaller.
    """
    n, diagonal = len(L), L.diagonal()
    if n < LOW_RANK_ITEMS or diagonal.min() < SIMILAR * diagonal.max():
        return None
    largest = float(np.vdot(L, L) / diagonal.sum())  # of the eigenvalues, or less
    least = max(0.1 * Rounding(1.0, n).cutoff * largest, n * EPS * float(diagonal.max()))
    for step in (2, 1):
        order, T = pivoted_factor(L[::step, ::step], least)
        if T.shape[1] > (n - 1) // 2:
            return None
    F = np.empty(T.shape)
    F[order] = T
    return F


def pivoted_factor(L: FloatArray, least: float) -> tuple[IntArray, FloatArray]:
    """Return an order of the items and T, with T Tᵀ = L in this order, up to `least` per item."""
    what = f"the Cholesky factor of {len(L):,} rows and columns"
    solve = partial(linalg.lapack.dpstrf, L.T, tol=least, lower=1)
    triangle, order, rank, _ = run_interruptible(solve, len(L) ** 3 / 3, what)
    return order - 1, np.tril(triangle)[:, :rank]


def recorded(spectrum: Spectrum, kernel: Kernel, method: str, **parts: Any) -> Spectrum:
    """Return the spectrum with these parts, the kernel it stands for and how it was computed."""
    names = {"kernel": repr(kernel), "data": kernel.fingerprint(), "method": method}
    return spectrum.replaced(**names, **parts)


def as_kernel(value: Any, caller: str) -> Kernel:
    """Return `value` if it is a kernel, which `caller` needs."""
    if not isinstance(value, Kernel):
        raise TypeError(
            f"{caller} needs a kernel, got {kind_of(value)}; make one of features first, such as "
            f"{caller}(Linear(X))"
        )
    return value


@final
class Subset(Kernel):
    """Some of the items of a kernel."""

    def __init__(self, whole: Kernel, items: IntArray) -> None:
        self.whole, self.items, self.n = whole, items, int(items.size)
        check_nonzero(bool(self.diag().any()))

    def diag(self) -> FloatArray:
        return self.whole.diag()[self.items]

    def block(self, I: Any, J: Any) -> FloatArray:  # noqa: E741
        rows, columns = as_items(I, self.n, "I", 1), as_items(J, self.n, "J", 1)
        return self.whole.block(self.items[rows], self.items[columns])

    def fingerprint(self) -> str:
        return digest("part", self.whole.fingerprint(), self.items)

    def __repr__(self) -> str:
        return f"{counted(self.n, 'item')} of {self.whole!r}"
