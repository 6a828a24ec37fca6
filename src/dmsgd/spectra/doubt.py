"""How far rounding may move the inclusion probabilities of a design, and a word where it does.

Rounding changes λ_n by a relative δ_n = eps (λ_1 / λ_n)^power, and turns its eigenvector by about
as much towards directions that are not in the kernel. Either way b changes by at most about
π_n δ_n, π_n being the probability that eigenvector n is used: large batches use small eigenvalues.
An eigenvalue that it hides, at most λ, would be used with probability λ e_{k-1} / e_k or less.
Measured in 70 digits, the estimate is 10 to 100 times the error where it matters
(docs/guarantees.md), so that what it calls 1e-8 is 1e-9.
"""

from __future__ import annotations

import numpy as np

from dmsgd.errors import warn_kernel
from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials import eigenvector_inclusion, ratios
from dmsgd.spectra.eigen import EPS
from dmsgd.spectra.spectrum import Spectrum

#: No larger estimate goes without a word.
SILENT = 1e-8


def doubt(spectrum: Spectrum, k: int) -> float:
    """Return an estimate, from above, of the error of the k-DPP's inclusion probabilities.

    O(1) where the kernel is well conditioned, O(rk) where it is not.
    """
    values, rounding = spectrum.values, spectrum.rounding
    hidden = rounding.hidden * rounding.least * values[0]
    at_most = _moved(spectrum, np.ones(1), values[-1:]) + hidden * k / values[k - 1]
    if at_most < SILENT:
        return float(at_most)
    lost = hidden / ratios(values, k)[-1, k]
    return _moved(spectrum, eigenvector_inclusion(values, k), values) + float(lost)


def doubt_any_size(spectrum: Spectrum) -> float:
    """Return the same for the DPP, whose batches have any size."""
    values, rounding = spectrum.values, spectrum.rounding
    hidden = rounding.hidden * rounding.least * values[0]
    return _moved(spectrum, values / (1 + values), values) + float(hidden)


def distance(spectrum: Spectrum, k: int) -> float:
    """Return a bound on the total variation between the k-DPPs of L and of a factor L̂ <= L.

    With ε = trace(L - L̂), e_k(L) <= Σ_j e_{k-j}(L̂) ε^j / j!, and det(L̂_Y) <= det(L_Y) for every Y,
    so it is at most 1 - e_k(L̂) / e_k(L), about ε e_{k-1}(L̂) / e_k(L̂). O(rk).
    """
    if spectrum.trace_error == 0:
        return 0.0
    R = ratios(spectrum.values, k)[-1]
    left_out = spectrum.values.sum() * spectrum.trace_error / (1 - spectrum.trace_error)
    terms = np.cumsum(np.log(left_out / (R[:0:-1] * np.arange(1, k + 1))))
    return float(-np.expm1(-np.logaddexp.reduce(np.append(0.0, terms))))


def _moved(spectrum: Spectrum, used: FloatArray, values: FloatArray) -> float:
    rounding = spectrum.rounding
    with np.errstate(over="ignore"):
        relative = (rounding.beside * spectrum.values[0] / values) ** rounding.power
    return EPS * float(np.max(used * relative))


def say_doubt(error: float, spectrum: Spectrum, batch: str) -> None:
    """Warn if rounding may move inclusion probabilities by more than `SILENT`."""
    if error <= SILENT:
        return
    span = spectrum.values[0] / spectrum.values[-1]
    warn_kernel(
        f"rounding may move the inclusion probabilities by up to {min(error, 1.0):.1g}: the "
        f"kernel's eigenvalues span a factor of {span:.0e} and {batch} uses the small ones; use a "
        f"smaller k, an RBF kernel of smaller scale, or features without near copies and of "
        f"similar size (normalize)"
    )
