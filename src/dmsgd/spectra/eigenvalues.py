"""`Eigenvalues` of a kernel: what they alone say about its k-DPPs."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import numpy as np

from dmsgd.errors import RankError, warn_kernel
from dmsgd.inputs.arrays import TINY, FloatArray
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_count
from dmsgd.polynomials import log_binomial, log_polynomial, ratios
from dmsgd.spectra.rounding import WARN_ABOVE, Rounding

#: A spectrum that leaves out a smaller share of the trace has all that rounding shows.
WHOLE = 1e-6

Own = TypeVar("Own", bound="Eigenvalues")


class Eigenvalues:
    """The eigenvalues of a kernel over n items that rounding can tell from zero.

    The attributes have the meaning that they have in `Spectrum`, which adds the eigenvectors.
    """

    values: FloatArray
    n: int
    tol: float = 0.0
    trace_error: float = 0.0
    rounding: Rounding
    kernel: str

    def __init__(self, values: FloatArray, n: int, rounding: Rounding, kernel: str) -> None:
        self.values, self.n, self.rounding, self.kernel = values, n, rounding, kernel

    def replaced(self: Own, **parts: Any) -> Own:
        """Return these eigenvalues, or this spectrum, with other parts, which are not checked."""
        made = copy(self)
        vars(made).pop("eigenvectors", None)  # those of the old vectors
        vars(made).update(parts)
        return made

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

    def total_variation_bound(self, k: int) -> float:
        """Return a bound on the total variation between the k-DPPs of L and of this L̂ <= L.

        With ε = trace(L - L̂), e_k(L) <= Σ_j e_{k-j}(L̂) ε^j / j!, and det(L̂_Y) <= det(L_Y) for
        every Y, so it is at most 1 - e_k(L̂) / e_k(L), about ε e_{k-1}(L̂) / e_k(L̂). An estimate of
        rounding is added. O(rk).
        """
        self.require_rank(k)
        bound = self.rounding.items_moved(self.values, k)
        if left_out := self._left_out():
            R = ratios(self.values, k)[-1]
            terms = np.cumsum(np.log(left_out / (R[:0:-1] * np.arange(1, k + 1))))
            bound -= float(np.expm1(-np.logaddexp.reduce(np.append(0.0, terms))))
        return min(bound, 1.0)

    def batch_error(self, k: int) -> float:
        """Return a bound on the share of a batch's items that would differ under L itself.

        It holds for a k-DPP of this L̂ <= L (`nystrom`, `pivoted_cholesky`): batches of the two
        can be drawn together so that on average at most k batch_error(k) items differ. So the
        inclusion probabilities are off by Σ |b_i - b̂_i| <= 2k batch_error(k). O(rk).

        With R = trace(L - L̂) e_{k-1}(L̂) / e_k(L̂) it is R / (k + R) (docs/project/proofs.md), and
        an estimate of rounding more: all there is if the spectrum is exact.

        >>> from dmsgd.spectra import Spectrum
        >>> values, V = np.linalg.eigh(np.diag([4.0, 3.0, 2.0, 1.0]))
        >>> round(Spectrum(values[:0:-1], V[:, :0:-1], trace_error=0.1).batch_error(2), 3)
        0.148
        """
        self.require_rank(k)
        odds = self._left_out() / float(ratios(self.values, k)[-1, k])
        return min(odds / (k + odds) + self.rounding.items_moved(self.values, k) / k, 1.0)

    def _left_out(self) -> float:
        """Return the trace of L that L̂ does not have, with what rounding may hide."""
        share = self.trace_error / (1 - self.trace_error)
        return float(self.values.sum() * share + self.rounding.hidden * self.values[0])

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


def entropy(values: FloatArray) -> float:
    """Return the entropy of λ / Σλ in nats, for numbers that are at least 0."""
    share = np.ldexp(values, -np.frexp(values.max())[1])  # sums stay within range
    share /= share.sum()
    share = share[share > 0]
    return float(-np.sum(share * np.log(share)))
