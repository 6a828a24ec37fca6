"""`Spectrum`: the non-zero eigenvalues of a kernel and their eigenvectors."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.errors import RankError, warn_kernel
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
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_count, as_flag, as_share
from dmsgd.polynomials import log_binomial, log_polynomial, ratios
from dmsgd.spectra.decompose import eigh, log_det_of_rows, settle
from dmsgd.spectra.eigenvectors import Eigenvectors, as_eigenvectors
from dmsgd.spectra.rounding import WARN_ABOVE, Rounding

#: How far VᵀV of a spectrum that the user made may be from the identity.
ORTHONORMAL = 1e-8
#: Where items leave less than this share of another, a plain QR loses more than nine digits.
PLAIN = 1e-7
#: A spectrum that leaves out a smaller share of the trace has all that rounding shows.
WHOLE = 1e-6


@final
@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
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
    def n(self) -> int:
        """Number of items."""
        return int(self.vectors.shape[0])

    def replaced(self, **parts: Any) -> Spectrum:
        """Return this spectrum with other parts, which are not checked."""
        return replace(self, **parts, check=False)

    @property
    def rank(self) -> int:
        """Number of eigenvalues above the tolerance: the largest possible batch size."""
        return int(self.values.size)

    def require_rank(self, k: int) -> None:
        """Raise RankError if no batch of k items has a positive determinant."""
        if as_count(k, "k") <= self.rank:
            return
        linear = self.kernel.startswith("Linear")
        whose, directions = "features have" if linear else "kernel has", "independent direction"
        found = f"the {whose} {counted(self.rank, directions)}"
        if self.tol > max(self.rounding.cutoff, TINY / float(self.values[0])):
            found += f" above tol={self.tol:.1g} (a lower tol leaves more)"
        elif "RBF(" in self.kernel and self.trace_error < WHOLE:  # in theory it has them all
            found += " in double precision (a smaller scale may leave more)"
        raise RankError(k, self.rank, found, rbf=linear)

    def inclusion_error(self, k: int | None = None) -> float:
        """Return an upper estimate of the error of b of the k-DPP (None: the DPP) by rounding."""
        return self.rounding.inclusion_error(self.values, k)

    def warn_rounding(self, k: int | None = None) -> None:
        """Warn if rounding may move inclusion probabilities of the k-DPP (None: the DPP)."""
        error = self.inclusion_error(k)
        if error > WARN_ABOVE:
            span, batch = self.values[0] / self.values[-1], "a batch" + f" of {k}" * (k is not None)
            warn_kernel(
                f"rounding may move the inclusion probabilities by up to {min(error, 1.0):.1g}: "
                f"the kernel's eigenvalues span a factor of {span:.0e} and {batch} uses the small "
                f"ones; use a smaller k, an RBF kernel of smaller scale, or features without near "
                f"duplicates and of similar size (normalize)"
            )

    def batch_error(self, k: int) -> float:
        """Return a bound on the share of a batch's items that would differ under L itself.

        It holds for a k-DPP of this L̂ <= L (`nystrom`, `pivoted_cholesky`): batches of the two
        can be drawn together so that on average at most k batch_error(k) items differ. So the
        inclusion probabilities are off by Σ |b_i - b̂_i| <= 2k batch_error(k). O(rk).

        With R = trace(L - L̂) e_{k-1}(L̂) / e_k(L̂) it is R / (k + R) (docs/project/proofs.md), and
        an estimate of rounding more: all there is if the spectrum is exact.

        >>> values, V = np.linalg.eigh(np.diag([4.0, 3.0, 2.0, 1.0]))
        >>> round(Spectrum(values[:0:-1], V[:, :0:-1], trace_error=0.1).batch_error(2), 3)
        0.148
        """
        self.require_rank(k)
        share = self.trace_error / (1 - self.trace_error)  # of the trace of L̂
        left_out = float(self.values.sum() * share + self.rounding.hidden * self.values[0])
        odds = left_out / float(ratios(self.values, k)[-1, k])
        return min(odds / (k + odds) + self.rounding.items_moved(self.values, k) / k, 1.0)

    def effective_rank(self) -> float:
        """Return exp(entropy of λ / Σλ): how many groups of items the kernel tells apart."""
        return float(np.exp(entropy(self.values)))

    def repulsion(self, k: int) -> float:
        """Return δ = log [binomial(n, k) (trace/n)^k / e_k(λ)] >= 0, in nats; 0 for plain SGD.

        Where all L_ii are equal, no batch is more than e^δ times as likely as under uniform
        sampling, so the total variation between the k-DPP and uniform batches is at most 1 - e^-δ.
        """
        self.require_rank(k)
        most = log_binomial(self.n, k) + k * np.log(self.values.sum() / self.n)
        return max(float(most - log_polynomial(self.values, k)), 0.0)

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


def entropy(values: FloatArray) -> float:
    """Return the entropy of λ / Σλ in nats, for numbers that are at least 0."""
    share = np.ldexp(values, -np.frexp(values.max())[1])  # sums stay within range
    share /= share.sum()
    share = share[share > 0]
    return float(-np.sum(share * np.log(share)))
