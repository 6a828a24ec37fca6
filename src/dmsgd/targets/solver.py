"""Find the log scale θ whose k-DPP has the target inclusion probabilities b*.

The kernel S scaled by θ is S_ij exp((θ_i + θ_j) / 2). Its k-DPPs, P_θ(Y) ∝ exp(Σ_{i∈Y} θ_i)
det(S_Y), are an exponential family in θ, so the θ wanted is the maximum of the concave function

    φ(θ) = Σ_i b*_i θ_i - log Z(θ),     ∂φ/∂θ_i = b*_i - b_i(θ).

Z is also a polynomial in x_i = exp(θ_i) with positive coefficients whose logarithm is concave in x
(determinantal polynomials are real stable). The tangent at x bounds it from above:

    log Z(x') <= log Z(x) + Σ_i b_i (x'_i / x_i - 1).

The θ' that is best under this bound is the fixed-point step

    θ'_i = θ_i + log(b*_i / b_i(θ)),

hence every step raises φ by at least Σ_i b*_i log(b*_i / b_i), the divergence of b from b*: the
iteration converges. Anderson acceleration extrapolates from the last few steps, about halving their
number. An extrapolation that lowers φ is undone by the step that is guaranteed to raise it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from dmsgd.errors import RankError
from dmsgd.features import Features
from dmsgd.features.map_types import ScaleRows
from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials import (
    eigenvector_inclusion,
    log_polynomial,
    log_polynomial_gradient,
    ratios,
)
from dmsgd.runtime.progress import Progress
from dmsgd.samplers.conditional_poisson import extrapolate
from dmsgd.spectra.decompose import eigh, like, right_singular_vectors
from dmsgd.spectra.eigenpairs import Spectrum
from dmsgd.spectra.rounding import GRAM_LIMIT, Rounding

#: Earlier steps that an extrapolation uses.
MEMORY = 6
#: A step that lowers the objective by more than this relative amount is taken back.
FALLS = 1e-10
#: θ -> b(θ) and log Z(θ).
InclusionOf = Callable[[FloatArray], tuple[FloatArray, float]]


class Solution(NamedTuple):
    """Where the iteration ended: θ, its b, max_i |b_i / b*_i - 1|, and how often b was computed."""

    log_scale: FloatArray
    b: FloatArray
    error: float
    steps: int


def solve(
    inclusion: InclusionOf, target: FloatArray, start: FloatArray, tol: float, max_steps: int
) -> Solution:
    """Return the first solution within `tol` of the target, or the last one that was accepted."""
    past: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=MEMORY + 1)
    reached, theta, guaranteed = -np.inf, start, start
    solution = Solution(theta, target, np.inf, 0)
    report, most = Progress(f"prescribed inclusion of {theta.size:,} items"), 0.0
    for step in range(1, max_steps + 1):
        try:
            b, log_z = inclusion(theta)
        except RankError:
            if solution.steps == 0:
                raise
            break  # the scale has left the floating point range: the target is infeasible
        if not b.all():
            break  # some b underflowed: the target is infeasible, too
        phi = float(target @ theta) - log_z
        if phi < reached - FALLS * (1 + abs(phi)):
            past.clear()
            theta = guaranteed
            continue
        gap = np.log(target / b)
        with np.errstate(over="ignore"):
            error = float(np.abs(np.expm1(-gap)).max())
        solution = Solution(theta, b, error, step)
        if error <= tol:
            break
        most = max(most, error)  # errors fall by about the same factor in every step
        report(max(0.01, float(np.log(most / error) / np.log(most / tol))))
        reached, guaranteed = phi, _centred(theta + gap)
        past.append((theta, gap))
        theta = _centred(extrapolate(past, target))
    return solution


def _centred(theta: FloatArray) -> FloatArray:
    """Return θ with mean 0: a constant only changes the scale of the whole kernel."""
    return np.asarray(theta - theta.mean())


def spectrum_inclusion(spectrum: Spectrum, k: int) -> tuple[FloatArray, float]:
    """Return b and log Z of the k-DPP of `spectrum`."""
    spectrum.require_rank(k)
    pi = eigenvector_inclusion(spectrum.values, k)
    return spectrum.eigenvectors.weighted_squares(pi), log_polynomial(spectrum.values, k)


@final
class ScaledInclusion:
    """θ -> b(θ) for L = F Fᵀ with no more features than items. O(n d² + d³) per call, O(d²) memory.

    A call takes two passes over features in blocks: one for the Gram matrix, one for b. Where
    rounding in the Gram matrix moves b by more than `error`, a call computes the full spectrum.
    """

    def __init__(self, F: Features, k: int, error: float = 0.0) -> None:
        self.F, self.k, self.error = F, k, error

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return b(θ) and log Z(θ)."""
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.exp(theta)
            gram = self.F.gram(x)
            finite = np.isfinite(float(gram.sum()))
        if not (finite and bool(gram.any())):
            beyond = "the scale is beyond the range of floating point numbers"
            raise RankError(self.k, 0, f"{beyond}, which leaves no direction")
        values, U = eigh(gram)
        rank = self._resolved_rank(values)
        if rank == 0:
            scaled = self.F.mapped(ScaleRows(np.sqrt(x)))
            return spectrum_inclusion(scaled.spectrum(overwrite=True), self.k)
        values, U = values[:rank], U[:, :rank]
        # b_i = x_i Σ_n (f_i · u_n)² ∂ log e_k / ∂λ_n, which is π_n / λ_n
        weights = np.sqrt(log_polynomial_gradient(values, self.k))
        b = self.F.projected_norms2(U * like(U, weights))
        return b * x, log_polynomial(values, self.k)

    def _resolved_rank(self, values: FloatArray) -> int:
        """Return how many eigenvalues of a Gram matrix determine b, 0 if they do not.

        Rounding moves λ_n by at most `moved`, and π_n by that over e_k / e_{k-1}.
        """
        moved = Rounding(1.0, values.size).noise * values[0]
        above = int(np.count_nonzero(values > moved))
        if above >= self.k and moved <= self.error * ratios(values[:above], self.k)[-1, self.k]:
            return above
        rank = int(np.count_nonzero(values > GRAM_LIMIT * values[0]))
        return rank if rank >= self.k and (rank == values.size or rank == self._rank) else 0

    @cached_property
    def _rank(self) -> int:
        """Rank of F, which no scale changes."""
        return int(right_singular_vectors(self.F)[0].size)
