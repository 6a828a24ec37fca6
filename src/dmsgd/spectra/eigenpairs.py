"""`Spectrum`: the non-zero eigenvalues of a kernel and their eigenvectors."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import (
    TINY,
    FloatArray,
    IntArray,
    as_array,
    as_matrix,
    as_numbers,
    check_vanishing,
)
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.fingerprint import fingerprint as fingerprint_of
from dmsgd.inputs.scalars import as_flag, as_share
from dmsgd.spectra.decompose import eigh, settle
from dmsgd.spectra.eigenvalues import Eigenvalues
from dmsgd.spectra.eigenvectors import Eigenvectors, as_eigenvectors
from dmsgd.spectra.rounding import DEPENDENT, Rounding

#: How far VᵀV of a spectrum that the user made may be from the identity.
ORTHONORMAL = 1e-8
#: Where items leave less than this share of another, a plain QR loses more than nine digits.
PLAIN = 1e-7


@final
@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Eigenvalues):
    """Eigenvalues and eigenvectors of a kernel: the non-zero part of L = V diag(λ) Vᵀ.

    values:  λ, shape (rank,), positive, largest first.
    vectors: V, shape (n, rank), row-major, orthonormal columns: an array, or for large features
             `Eigenvectors` that compute rows on request (np.asarray computes all).
    route:   how it was computed (see `dmsgd.kernels.exact`).
    tol:     eigenvalues up to tol times the largest were left out on request.
    trace_error: how far L is from the kernel it stands for, as a share of that kernel's trace; 0
             for `dmsgd.kernels.exact` without a tol.
    rounding: the error of 53-bit numbers; `dmsgd.KDPP` warns where it is visible.
    kernel, data: the kernel it stands for, as text and as a hash ("" if made by hand).
    method:  the function of that kernel and all its arguments ("" if made by hand).
    check:   False leaves out the checks, for values and vectors of an eigendecomposition.

    Spectrum(values, vectors) makes one by hand; it raises ValueError unless values are positive and
    sorted and vectors orthonormal. See also `exact`, `nystrom`, `pivoted_cholesky`.

    >>> Spectrum([2.0, 1.0], np.eye(3)[:, :2])
    Spectrum(3 items, rank 2, route='given')
    """

    values: FloatArray
    vectors: Any
    _: KW_ONLY
    route: str = "given"
    tol: float = 0.0
    trace_error: float = 0.0
    rounding: Rounding = field(default=Rounding())
    kernel: str = ""
    data: str = ""
    method: str = ""
    check: InitVar[bool] = True

    def __post_init__(self, check: bool) -> None:
        if not as_flag(check, "check"):
            return
        for name in ("route", "kernel", "data", "method"):
            if not isinstance(text := getattr(self, name), str):
                raise TypeError(f"{name} must be text, got {text!r}")
        if not isinstance(self.rounding, Rounding):
            raise TypeError(f"rounding must be that of another Spectrum, got {self.rounding!r}")
        values = _checked_values(self.values)
        vars(self).update(
            tol=as_share(self.tol, "tol"),
            trace_error=as_share(self.trace_error, "trace_error"),
            values=values,
            vectors=_checked_vectors(self.vectors, values.size),
        )

    @cached_property
    def eigenvectors(self) -> Eigenvectors:
        """The vectors with the methods that all kinds of them have."""
        return as_eigenvectors(self.vectors)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of items."""
        return int(self.vectors.shape[0])

    def log_det(self, batches: IntArray) -> FloatArray:
        """Return log det(L_Y) for each row Y of `batches`; -inf where the items are dependent.

        L_Y = A Aᵀ with A = V_Y Λ^(1/2), so det(L_Y) is the squared product of the diagonal of R in
        Aᵀ = QR; A Aᵀ is not formed, which would lose half of the digits.
        """
        (size, k), scale = batches.shape, np.sqrt(self.values)
        out, step = np.empty(size), max(1, 2**22 // max(k * self.rank, 1))
        for first in range(0, size, step):
            A = self.eigenvectors.rows(batches[first : first + step]) * scale
            R = np.linalg.qr(A.transpose(0, 2, 1), mode="r")
            left = np.abs(np.einsum("sii->si", R))
            precise = (left > PLAIN * np.abs(A).max(axis=2)).all(axis=1)
            logs = 2 * np.log(np.where(precise[:, None], left, 1.0)).sum(axis=1)
            logs[~precise] = [
                log_det_of_rows(each, self.rounding.power > 0) for each in A[~precise]
            ]
            out[first : first + step] = logs
        return out

    def fingerprint(self) -> str:
        """Return a hash of what draws depend on; another spectrum has another.

        That is the kernel and what was done to it, the same on every machine; of a spectrum made
        by hand, its numbers.
        """
        if self.data:
            return digest(self.data, self.method)
        return digest(self.values, fingerprint_of(self.vectors))

    def __repr__(self) -> str:
        tol = f", tol={self.tol:.0e}" if self.tol else ""
        error = f", trace error {self.trace_error:.2%}" if self.trace_error else ""
        of = self.kernel or f"{self.n} items"
        return f"Spectrum({of}, rank {self.rank}, route={self.route!r}{tol}{error})"


def log_det_of_rows(A: FloatArray, rounded: bool, whole: Any = None) -> float:
    """Return log det(A Aᵀ) for columns of any sizes, -inf where rows are dependent.

    With columns of A sorted and rows pivoted, the error in each column is relative to that column,
    and not to the largest (Cox and Higham 1998). Rows are dependent where one has no more than
    1e-14 left of its length or, if A itself is not `rounded`, of the columns that are left; or of
    `whole`, if that is given.
    """
    from scipy import linalg

    sizes = np.abs(A).max(axis=0)
    order = np.argsort(-sizes, kind="stable")
    R, rows = linalg.qr(A[:, order].T, mode="r", pivoting=True, check_finite=False)
    left = np.abs(R.diagonal())
    if whole is None:
        whole = np.linalg.norm(A[rows], axis=1) if rounded else sizes[order[: left.size]]
    return -np.inf if (left <= DEPENDENT * whole).any() else 2 * float(np.log(left).sum())


def spectrum_of_matrix(L: Any, tol: float = 0.0) -> Spectrum:
    """Return the spectrum of a full kernel matrix, which is overwritten."""
    nothing = L.diagonal() == 0
    values, V = eigh(L)
    V[nothing] = 0.0  # exact zeros; eigh leaves rounding noise here
    rounding = Rounding(1.0, len(values))
    rank = int(np.count_nonzero(values > rounding.cutoff * values[0]))
    settle(values[:rank], V[:, :rank], rounding)
    return truncate(values[:rank], V[:, :rank], "primal", rounding, tol)


def truncate(
    values: FloatArray, vectors: Any, route: str, rounding: Rounding, tol: float = 0.0
) -> Spectrum:
    """Return the spectrum of the eigenpairs above `tol` and the cutoff of `rounding`.

    `trace_error` is the share that tol leaves out; what rounding hides goes into
    `rounding.hidden`. Values and vectors are not checked: they are an eigendecomposition.
    """
    order = np.argsort(-values, kind="stable")
    values = values[order]
    largest = float(values[0])
    if largest < TINY:
        check_vanishing(largest, "the kernel")
    least = max(rounding.cutoff * largest, TINY)
    seen = values > least
    kept = seen & (values > tol * largest)
    size = max(rounding.size, values.size) if rounding.power else values.size
    hidden = rounding.hidden + (size - int(np.count_nonzero(seen))) * (least / largest)
    return Spectrum(
        np.ascontiguousarray(values[kept]),
        as_eigenvectors(vectors).select(order[kept]),
        route=route,
        tol=tol,
        trace_error=float(values[seen & ~kept].sum() / values[seen].sum()),
        rounding=replace(rounding, hidden=hidden),
        check=False,
    )


def _checked_values(given: Any) -> FloatArray:
    values = as_numbers(given, "values", of="eigenvector")
    if values.min() < TINY:
        raise ValueError(
            f"values must be positive, and at least {TINY:g}, below which numbers lose digits, got "
            f"{values.min():g}; leave out the small ones, with their vectors, or multiply all by a "
            f"constant (a k-DPP stays the same)"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(values.sum()):
            raise ValueError("values are so large that their sum overflows; rescale them")
    if (np.diff(values) > 0).any():
        raise ValueError("values must be sorted, largest first, and the vectors with them")
    return values


def _checked_vectors(given: Any, rank: int) -> FloatArray:
    V = np.array(as_array(as_matrix(given, "vectors", allow_tiny=True)), order="C")  # a copy
    if V.shape[1] != rank or V.shape[0] < rank:
        raise ValueError(
            f"vectors must have one column for each of the {rank} values and at least "
            f"{rank} rows, got shape {V.shape}"
        )
    gap = float(np.abs(V.T @ V - np.eye(rank)).max())
    if not gap <= ORTHONORMAL:  # also if it is NaN
        raise ValueError(
            f"the columns of vectors must be orthonormal, but VᵀV is off by {gap:.2g}; take them "
            f"from dmsgd.kernels.exact, np.linalg.eigh or np.linalg.qr"
        )
    return V
