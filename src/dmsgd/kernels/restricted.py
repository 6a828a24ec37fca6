"""The spectrum of a kernel without some of its items: no batch contains them."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dmsgd.features import Features, as_features
from dmsgd.features.map_types import ScaleRows
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.spectra.eigenpairs import Spectrum, truncate
from dmsgd.spectra.rounding import Rounding

#: A probability of avoiding all excluded items that is below the square of this counts as zero.
NEVER = 1e-7


def without(spectrum: Spectrum, items: IntArray) -> Spectrum:
    """Return the spectrum of L with zeros in the rows and columns of `items`. O(n r²).

    L = A Aᵀ with A = V Λ^(1/2), or the features if V is computed from them. Their rows at `items`
    become zero, so that those of the new eigenvectors are exactly zero, too.
    """
    if not items.size:
        return spectrum
    A = spectrum.eigenvectors.factor(spectrum.values, complete=spectrum.tol == 0)
    kept = np.ones(spectrum.n)
    kept[items] = 0.0
    found = spectrum_or_empty(as_features(A, allow_tiny=True).mapped(ScaleRows(kept)))
    method = f"{spectrum.method} without {digest(np.sort(items))}" if spectrum.data else ""
    if not found.rank:
        return spectrum.replaced(values=found.values, vectors=found.vectors, method=method)
    # Errors relative to the largest eigenvalue of L are larger relative to the new one. The values
    # found are the squares of singular values of A, whose own rounding has the power 0.5.
    old, shrunk = spectrum.rounding, float(spectrum.values[0] / found.values[0])
    power, size = max(old.power, 0.5), max(old.size, found.rounding.size)
    rounding = Rounding(power, size, old.scale * shrunk, old.hidden * shrunk)
    cut = truncate(found.values, found.vectors, found.route, rounding)
    # trace_error is the part of trace(L) that the spectrum leaves out: lost / (lost + Σλ).
    lost = spectrum.values.sum() * spectrum.trace_error / (1 - spectrum.trace_error)
    fewer = f"without {counted(items.size, 'item')}"
    return cut.replaced(
        route=f"{spectrum.route}, {fewer}",
        tol=spectrum.tol,
        trace_error=float(lost / (lost + cut.values.sum())),
        kernel=f"{spectrum.kernel} {fewer}" if spectrum.kernel else "",
        data=spectrum.data,
        method=method,
    )


def marginal_without(K: Spectrum, complement: FloatArray, items: IntArray) -> Spectrum:
    """Return the spectrum of the marginal kernel of a DPP, given that `items` are not in its sets.

    complement: 1 - p for the eigenvalues p of K. With V zero at `items` it is that of
    V (VᵀV + (1-p)/p)⁻¹ Vᵀ = Q Qᵀ, where [V; ((1-p)/p)^(1/2)] R⁻¹ = [Q; ...] is orthonormal; p may
    be 1. O(n r²).
    """
    if not items.size or not K.rank:
        return K
    V = K.eigenvectors.columns(np.arange(K.rank)).copy()
    V[items] = 0.0
    stacked = np.vstack([V, np.diag(np.sqrt(complement / K.values))])
    R = linalg.qr(stacked, mode="r", overwrite_a=True)[0][: K.rank]
    if np.abs(R.diagonal()).min() <= NEVER:
        raise ValueError("every set contains some of the excluded items; exclude fewer")
    Q = linalg.solve_triangular(R, V.T, trans="T").T
    found = spectrum_or_empty(as_features(np.ascontiguousarray(Q), allow_tiny=True))
    return found.replaced(route=f"{K.route}, without {items.size}")


def spectrum_or_empty(F: Features) -> Spectrum:
    """Return the spectrum of features, of rank 0 if all are zero."""
    try:
        return F.spectrum(overwrite=True)
    except ValueError:
        if F.row_norms2().any():
            raise
        return Spectrum(np.empty(0), np.empty((F.n, 0)), check=False)
