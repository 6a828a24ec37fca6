"""The last step of every approximation: the spectrum of what stands for the kernel, marked so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.kernels import Kernel
from dmsgd.spectra.exact import of_features
from dmsgd.spectra.spectrum import Spectrum


def of_factor(
    kernel: Kernel,
    F: FloatArray,
    route: str,
    method: str,
    trace_error: float,
    rank: int | None = None,
) -> Spectrum:
    """Return the spectrum of the best approximation of F Fᵀ of at most `rank`, marked so.

    F is overwritten. `trace_error` is that of F Fᵀ; what the cut to `rank` leaves out is added.
    """
    whole = of_features(F, overwrite=True)
    kept = whole.values[:rank]
    cut = whole.values[kept.size :].sum() / kernel.diag().sum()
    vectors = np.ascontiguousarray(whole.vectors[:, : kept.size])
    spectrum = replace(whole, values=kept, vectors=vectors, route=route)
    return marked(spectrum, kernel, method, trace_error + float(cut))


def marked(spectrum: Spectrum, kernel: Kernel, method: str, trace_error: float) -> Spectrum:
    """Return `spectrum` with the kernel it approximates, how, and by how much it misses it."""
    return replace(
        spectrum,
        trace_error=trace_error,
        kernel=repr(kernel),
        fingerprint=kernel.fingerprint(),
        method=method,
    )
