"""The spectrum of the other items, given that some are in the batch.

P(Y | G ⊂ Y) ∝ det(L_Y) = det(L_G) det(L'_{Y∖G}), L' being the Schur complement of L_G in L, so the
other items are a k-DPP again. Let A = V Λ^(1/2), L = A Aᵀ; P a basis of the complement of the rows
of A at G, and N one of the complement of the rows of V at G. Then L' = (A P)(A P)ᵀ = V N C Cᵀ Nᵀ Vᵀ
for C = Nᵀ Λ^(1/2) P = W S Tᵀ: the eigenvalues are S² and the eigenvectors V (N W). No matrix over
pairs of items is formed; N keeps the rows of G at zero, however small an eigenvalue.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.runtime.progress import EIGH, plan_work
from dmsgd.spectra.decompose import settle
from dmsgd.spectra.eigenpairs import Spectrum
from dmsgd.spectra.rounding import DEPENDENT, Rounding


def conditional(spectrum: Spectrum, items: IntArray) -> Spectrum:
    """Return the spectrum of L' for distinct `items`; rank(L') = rank(L) - items. O(r³ + n r²)."""
    rank, given = spectrum.rank, items.size
    if not given:
        return spectrum
    if given > rank:
        raise ValueError(
            f"no batch contains {counted(given, 'given item')}: the kernel has rank {rank}, and no "
            f"batch has more items; shorten items"
        )
    advice = "a kernel of lower rank (nystrom, pivoted_cholesky) takes less"
    size = 5 * rank**2 + spectrum.eigenvectors.stored * spectrum.n * (rank - given)
    what = f"the eigenvectors of {spectrum.n:,} items given {given:,} of them"
    plan_work(2 * EIGH * rank**3 + spectrum.n * float(rank) ** 2, size, what, advice)
    V, roots = spectrum.eigenvectors.rows(items), np.sqrt(spectrum.values)
    A = V * roots
    Q, R = linalg.qr(A.T, check_finite=False)  # a basis whose first vectors span the rows of A
    basis, R_of_V = linalg.qr(V.T, check_finite=False)
    left, lengths = np.abs(R.diagonal()), np.linalg.norm(A, axis=1)
    # Eigenvalues that are exact may differ by any factor: then rows of V tell what is dependent.
    seen, whole = left, lengths
    if not spectrum.rounding.power:
        seen, whole = np.abs(R_of_V.diagonal()), np.linalg.norm(V, axis=1)
    for j in np.flatnonzero(seen <= DEPENDENT * whole)[:1]:
        why = "is never drawn (all its features are zero)"
        if lengths[j] > 0:
            why = "is a duplicate or a combination of the others, so that the determinant is zero"
        raise ValueError(f"no batch contains all given items: item {items[j]} {why}; leave it out")
    if given == rank:
        return spectrum.replaced(values=np.empty(0), vectors=np.empty((spectrum.n, 0)))
    P, N = Q[:, given:], basis[:, given:]
    W, S, _ = linalg.svd(N.T @ (roots[:, None] * P), check_finite=False)
    values, turn = S**2, N @ W
    settle(values, turn, Rounding(0.5, 4 * rank))  # a square has twice the relative error
    return spectrum.replaced(
        values=values,
        vectors=spectrum.eigenvectors.rotate(turn, items),
        route=f"{spectrum.route}, given {given}",
        rounding=_rounding(spectrum, values, lengths, left, Q[:, :given]),
        kernel=f"{spectrum.kernel} given {counted(given, 'item')}" if spectrum.kernel else "",
        method=f"{spectrum.method} given {digest(np.sort(items))}" if spectrum.data else "",
    )


def _rounding(
    spectrum: Spectrum, values: FloatArray, lengths: FloatArray, left: FloatArray, spanned: Any
) -> Rounding:
    """Return the rounding of the eigenvalues `values` of L'.

    Where earlier items leave little of an item, rounding of its direction counts that much more;
    that of rounded entries has the size of other items' entries, however small its own are.

    lengths, left: of the rows of A at G, and of what the rows before leave of each.
    spanned:       the orthonormal basis of these rows, in their order.
    """
    old = spectrum.rounding
    rounded = np.maximum(lengths**2, (old.power == 1) * spectrum.values.sum() / spectrum.n)
    with np.errstate(over="ignore"):  # beyond all numbers: nothing is known of L'
        before = values[0] + np.cumsum((spectrum.values @ spanned**2)[::-1])[::-1]
        largest = max(spectrum.values[0], float(np.max(rounded / left**2 * before)))
        grown, shrunk = float(largest / values[0]), float(spectrum.values[0] / values[0])
    hidden = old.hidden * shrunk if old.hidden else 0.0
    return Rounding(max(old.power, 0.5), old.size, old.scale * grown, hidden)
