"""Log-determinants of kernel blocks, from the spectrum."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.spectra.conditional import DEPENDENT
from dmsgd.spectra.spectrum import Spectrum


def log_determinants(spectrum: Spectrum, batches: IntArray) -> FloatArray:
    """Return log det(L_Y) for each row Y of `batches`; -inf where the items are dependent.

    L_Y = A Aᵀ with A = V_Y Λ^(1/2), so det(L_Y) is the squared product of the diagonal of R in
    Aᵀ = QR; A Aᵀ is not formed, which would lose half of the digits. An item whose part
    orthogonal to those before it is below 1e-14 of its length counts as dependent.
    """
    size, k = batches.shape
    out = np.empty(size)
    scale = np.sqrt(spectrum.values)
    step = max(1, 2**22 // (k * spectrum.rank))
    for first in range(0, size, step):
        A = spectrum.held.rows(batches[first : first + step]) * scale
        R = np.linalg.qr(A.transpose(0, 2, 1), mode="r")
        diagonal = np.abs(np.einsum("sii->si", R))
        lengths = np.linalg.norm(A, axis=2)
        dependent = diagonal <= DEPENDENT * lengths
        logs = np.log(np.where(dependent, 1.0, diagonal))
        out[first : first + step] = np.where(dependent.any(axis=1), -np.inf, 2 * logs.sum(axis=1))
    return out
