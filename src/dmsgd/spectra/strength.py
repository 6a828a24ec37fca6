"""How much a kernel repels: two numbers that say whether its scale is sensible."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials import log_binomial, log_polynomial
from dmsgd.spectra.spectrum import Spectrum


def effective_rank(spectrum: Spectrum) -> float:
    """Return exp(entropy of λ / Σλ): how many groups of items the kernel tells apart."""
    return float(np.exp(entropy(spectrum.values)))


def entropy(values: FloatArray) -> float:
    """Return the entropy of λ / Σλ in nats, for numbers of which none is below zero."""
    share = np.ldexp(values, -np.frexp(values.max())[1])  # sums stay within range
    share /= share.sum()
    share = share[share > 0]
    return float(-np.sum(share * np.log(share)))


def repulsion(spectrum: Spectrum, k: int) -> float:
    """Return δ = log [binomial(n, k) (trace/n)^k / e_k(λ)] >= 0, in nats; 0 for plain SGD.

    Where all L_ii are equal, no batch is more than e^δ times as likely as under uniform sampling,
    so the total variation between the k-DPP and uniform batches is at most 1 - e^-δ.
    """
    mean = spectrum.values.sum() / spectrum.n
    most = log_binomial(spectrum.n, k) + k * np.log(mean)
    return max(float(most) - log_polynomial(spectrum.values, k), 0.0)
