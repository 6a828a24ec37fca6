"""The last step of every approximation: the spectrum of what stands for the kernel, marked so."""

from __future__ import annotations

import numpy as np

from dmsgd.features import Features
from dmsgd.kernels import Kernel
from dmsgd.spectra.exact import of_features
from dmsgd.spectra.spectrum import Spectrum, changed


def of_factor(
    kernel: Kernel,
    F: Features,
    route: str,
    method: str,
    rank: int | None = None,
) -> Spectrum:
    """Return the spectrum of the best approximation of F Fᵀ <= L of at most `rank`, marked so.

    An array F is overwritten.
    """
    advice = "a lower rank, or fewer landmarks, take less"
    whole = of_features(F, overwrite=True, advice=advice)
    values = whole.values[:rank]
    spectrum = changed(
        whole, values=values, vectors=whole.held.chosen(np.arange(values.size)), route=route
    )
    trace = kernel.diag().sum()
    return marked(spectrum, kernel, method, float(max(trace - values.sum(), 0.0) / trace))


def marked(spectrum: Spectrum, kernel: Kernel, method: str, trace_error: float) -> Spectrum:
    """Return `spectrum` with the kernel it approximates, how, and by how much it misses it."""
    return changed(
        spectrum,
        trace_error=trace_error,
        kernel=repr(kernel),
        data=kernel.fingerprint(),
        method=method,
    )
