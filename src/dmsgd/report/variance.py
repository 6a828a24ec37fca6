"""The report's section on gradients: exact where that is quick, estimated where it is not."""

from __future__ import annotations

from typing import Any

from dmsgd.designs import KDPP, unbiased_weights
from dmsgd.diagnostics import estimate_variance, gradient_variance
from dmsgd.diagnostics.variance import same_variance, uniform_variance
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.seeding import Seed

#: Operations that an exact variance may take; beyond, it is estimated from draws.
OPERATIONS = 1e11
DRAWS = 2000


def variance_section(design: KDPP, gradients: FloatArray, seed: Seed) -> dict[str, Any]:
    """Return the variances of biased and unbiased training with this design."""
    n, p = gradients.shape
    exact = n * design.spectrum.rank**2 * min(n, p) <= OPERATIONS
    coefficients: dict[str, Any] = {"biased": None}
    if (design.inclusion() > 0).all():
        coefficients["unbiased"] = unbiased_weights(design)
    rows = []
    for name, a in coefficients.items():
        if exact:
            found = gradient_variance(design, gradients, a)
            row = {
                "variance": found.variance,
                "independent": found.independent,
                "correlation": found.correlation,
                "uniform": found.uniform,
                "reweighted": found.reweighted,
                "worth": found.worth,
            }
        else:
            estimate = estimate_variance(design, gradients, a, DRAWS, seed)
            uniform = uniform_variance(gradients, design.k)
            worth = same_variance(n, design.k, uniform, estimate.value)
            row = {"variance": estimate.value, "uniform": uniform, "worth": worth}
            row["error"] = estimate.error
        rows.append({"name": name, **row})
    return {"rows": rows, "exact": exact, "draws": DRAWS, "k": design.k, "parameters": int(p)}
