"""Find the tilt θ whose inclusion probabilities are the target b*.

The laws P_θ(Y) ∝ exp(Σ_{i∈Y} θ_i) det(S_Y) are an exponential family in θ, so the θ we look for is
the maximum of the concave function

    φ(θ) = Σ_i b*_i θ_i - log Z(θ),     ∂φ/∂θ_i = b*_i - b_i(θ).

Z is also a polynomial in x_i = exp(θ_i) with positive coefficients whose logarithm is concave in x
(determinantal polynomials are real stable). The tangent at x bounds it from above:

    log Z(x') <= log Z(x) + Σ_i b_i (x'_i / x_i - 1).

The θ' that is best under this bound is the fixed-point step

    θ'_i = θ_i + log(b*_i / b_i(θ)),

hence every step raises φ by at least Σ_i b*_i log(b*_i / b_i), the divergence of b from b*, and the
divergences of all steps together are at most what φ has to climb: the iteration converges.

Anderson's acceleration extrapolates from the last few steps, about halving their number. An
extrapolation that lowers φ is undone by the step that is guaranteed to raise it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import final

import numpy as np

from dmsgd.errors import RankError
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.progress import Progress
from dmsgd.polynomials.anderson import extrapolated
from dmsgd.prescription.marginals import Marginals

#: How many earlier steps an extrapolation looks at.
MEMORY = 6


@final
@dataclass(frozen=True, eq=False)
class Solution:
    """Where the iteration ended.

    theta:    the tilt.
    b:        its inclusion probabilities.
    error:    max_i |b_i / b*_i - 1|.
    steps:    how often b(θ) was evaluated.
    """

    theta: FloatArray
    b: FloatArray
    error: float
    steps: int


def solve(
    marginals: Marginals, target: FloatArray, theta: FloatArray, tol: float, max_steps: int
) -> Solution:
    """Return the tilt with inclusion probabilities within `tol` of the target, or the last one.

    Starts at `theta`. Whether it was reached shows in `Solution.error`.
    """
    past: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=MEMORY + 1)
    reached, guaranteed = -np.inf, theta
    solution = Solution(theta, target, np.inf, 0)
    tell, most = Progress(f"prescribed inclusion of {theta.size:,} items"), 0.0
    for step in range(1, max_steps + 1):
        try:
            b, log_z = marginals(theta)
        except RankError:
            if solution.steps == 0:
                raise
            break  # the tilt has grown beyond what numbers hold: the target is out of reach
        if not b.all():
            break  # so it has
        phi = float(target @ theta) - log_z
        if phi < reached - 1e-10 * (1 + abs(phi)):
            past.clear()
            theta = guaranteed
            continue
        gap = np.log(target / b)
        with np.errstate(over="ignore"):
            error = float(np.abs(np.expm1(-gap)).max())
        solution = Solution(theta, b, error, step)
        if solution.error <= tol:
            break
        most = max(most, solution.error)  # errors fall by about the same factor in every step
        tell(max(0.01, float(np.log(most / solution.error) / np.log(most / tol))))
        reached, guaranteed = phi, _centred(theta + gap)
        past.append((theta, gap))
        theta = _centred(extrapolated(past, target))
    return solution


def _centred(theta: FloatArray) -> FloatArray:
    """Return θ with mean 0: a constant changes nothing but the scale of the kernel."""
    return np.asarray(theta - theta.mean())
