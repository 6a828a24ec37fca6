"""The spectrum of the other items, given that some items are in the batch.

P(Y | G ⊂ Y) ∝ det(L_Y) = det(L_G) det(L'_{Y∖G}), L' being the Schur complement of L_G in L, so the
other items are a k-DPP again. Let A = V Λ^(1/2), L = A Aᵀ; P a basis of the complement of the rows
of A at G, and N one of the complement of the rows of V at G. Then L' = (A P)(A P)ᵀ = V N C Cᵀ Nᵀ Vᵀ
for C = Nᵀ Λ^(1/2) P = W S Tᵀ: the eigenvalues are S² and the eigenvectors V (N W). No matrix over
pairs of items is formed; N keeps the rows of G at zero, however small an eigenvalue.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.messages import counted
from dmsgd.runtime.progress import EIGH, plan_work
from dmsgd.spectra.decompose import settle
from dmsgd.spectra.eigenpairs import Spectrum, changed
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
    Q, R = linalg.qr((V * roots).T, check_finite=False)  # a basis whose first vectors span the rows
    left = np.abs(R.diagonal())  # of each row, by the rows before it
    lengths = np.linalg.norm(V * roots, axis=1)
    for j in np.flatnonzero(left <= DEPENDENT * lengths)[:1]:
        why = "is never drawn (all its features are zero, or it is excluded)"
        if lengths[j] > 0:
            why = "is a duplicate or a combination of the others, so that the determinant is zero"
        raise ValueError(f"no batch contains all given items: item {items[j]} {why}; leave it out")
    if given == rank:
        return changed(spectrum, values=np.empty(0), vectors=np.empty((spectrum.n, 0)))
    P, N = Q[:, given:], linalg.qr(V.T, check_finite=False)[0][:, given:]
    W, S, _ = linalg.svd(N.T @ (roots[:, None] * P), check_finite=False)
    values, turn = S**2, N @ W
    settle(values, turn, Rounding(0.5, 4 * rank))  # a square has twice the relative error
    # Where earlier items leave little of an item, rounding of its direction counts that much more;
    # that of rounded entries has the size of other items' entries, however small its own are.
    before = values[0] + np.cumsum((spectrum.values @ Q[:, :given] ** 2)[::-1])[::-1]
    rounding, shrunk = spectrum.rounding, float(spectrum.values[0] / values[0])
    rounded = np.maximum(lengths**2, (rounding.power == 1) * spectrum.values.sum() / spectrum.n)
    largest = max(spectrum.values[0], float(np.max(rounded / left**2 * before)))
    return changed(
        spectrum,
        values=values,
        vectors=spectrum.eigenvectors.rotate(turn, items),
        route=f"{spectrum.route}, given {given}",
        rounding=Rounding(
            max(rounding.power, 0.5),
            rounding.size,
            rounding.scale * float(largest / values[0]),
            rounding.hidden * shrunk,
        ),
        kernel=f"{spectrum.kernel} given {counted(given, 'item')}" if spectrum.kernel else "",
        method=f"{spectrum.method} given {digest(np.sort(items))}" if spectrum.data else "",
    )
