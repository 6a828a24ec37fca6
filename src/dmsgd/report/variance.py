"""The report's section on gradients: exact where that is quick, estimated where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.designs import KDPP, unbiased_weights
from dmsgd.diagnostics import GradientVariance, estimate_variance
from dmsgd.diagnostics.variance import compared
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.scalars import Seed

#: Operations that an exact variance may take; beyond, it is estimated from draws.
OPERATIONS = 1e11
DRAWS = 2000


def variance_section(design: KDPP, gradients: FloatArray, seed: Seed) -> dict[str, Any]:
    """Return the variances of biased and unbiased training with this design, and their halves."""
    coefficients: dict[str, Any] = {"biased": None}
    if (design.inclusion() > 0).all():
        coefficients["unbiased"] = unbiased_weights(design)
    rows = []
    for name, a in coefficients.items():
        found, error = split(design, gradients, seed, a)
        row = {
            "name": name,
            "variance": found.variance,
            "independent": found.independent,
            "correlation": found.correlation,
            "same_b": found.same_b,
            "uniform": found.uniform,
            "reweighted": found.reweighted,
            "by_inclusion": found.by_inclusion,
            "by_repulsion": found.by_repulsion,
            "worth": found.worth,
        }
        rows.append(row | ({} if error is None else {"error": error}))
    exact = "error" not in rows[0]
    parameters = int(gradients.shape[1])
    return {"rows": rows, "exact": exact, "draws": DRAWS, "k": design.k, "parameters": parameters}


def split(
    design: KDPP, gradients: FloatArray, seed: Seed, coefficients: FloatArray | None = None
) -> tuple[GradientVariance, float | None]:
    """Return the variance with its halves, and the standard error where it is estimated.

    All that it is compared with is exact.
    """
    n, p = gradients.shape
    a = np.full(n, 1 / design.k) if coefficients is None else coefficients
    if n * design.spectrum.rank**2 * min(n, p) <= OPERATIONS:
        return compared(design, gradients, a), None
    estimate = estimate_variance(design, gradients, a, DRAWS, seed)
    return compared(design, gradients, a, estimate.value), estimate.error
