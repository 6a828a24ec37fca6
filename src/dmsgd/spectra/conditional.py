"""The spectrum that is left when some items are known to be in the batch.

P(Y | G ⊂ Y) ∝ det(L_Y) = det(L_G) det(L'_{Y∖G}), L' being the Schur complement of L_G in L, so the
other items are a k-DPP again. With L = A Aᵀ, A = V Λ^(1/2), its features are those of A, projected
onto the complement of those of G. With P a basis of that, and N one of the complement of the rows
of V at G, L' = (A P)(A P)ᵀ = V N C Cᵀ Nᵀ Vᵀ for C = Nᵀ Λ^(1/2) P, and where
C = W S Tᵀ, the eigenvalues are S² and the eigenvectors V (N W). No matrix over pairs of items is
formed, wherever V is; N keeps the rows of G at zero, however small an eigenvalue.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import counted
from dmsgd.inputs.progress import EIGH, announce
from dmsgd.spectra.eigen import noise
from dmsgd.spectra.spectrum import Rounding, Spectrum, changed
from dmsgd.spectra.ties import settle_ties

#: An item that others leave less than this share of is dependent on them; rounding leaves 1e-15.
DEPENDENT = 1e-14


class Conditional(NamedTuple):
    """What is left of a kernel: its spectrum, and log det(L_G) of what was given."""

    spectrum: Spectrum
    log_determinant: float


def conditional(spectrum: Spectrum, items: IntArray) -> Conditional:
    """Return the spectrum of L' for distinct `items`, fewer than the rank. O(r³ + n r²)."""
    rank, given = spectrum.rank, items.size
    if not given:
        return Conditional(spectrum, 0.0)
    advice = "a kernel of lower rank (nystrom, pivoted_cholesky) takes less"
    held = spectrum.n * (rank - given) if spectrum.held.resident else 0
    what = f"the eigenvectors of {spectrum.n:,} items given {given:,} of them"
    reserve(held + 5 * rank**2, what, advice)
    announce(2 * EIGH * rank**3 + spectrum.n * float(rank) ** 2, held + 5 * rank**2, what, advice)
    V, roots = spectrum.held.rows(items), np.sqrt(spectrum.values)
    Q, left = _turned(V * roots)
    lengths = np.linalg.norm(V * roots, axis=1)
    _refuse_dependent(left, lengths, items)
    P, N = Q[:, given:], _turned(V)[0][:, given:]
    W, S, _ = linalg.svd(N.T @ (roots[:, None] * P), check_finite=False)
    values, turn = S**2, N @ W
    settle_ties(values, turn, 2 * noise(rank) * S[0] * S)  # of S², where S is off by noise * S[0]
    # Where those before an item leave little of it, its direction is rounding by that much more.
    before = values[0] + np.cumsum((spectrum.values @ Q[:, :given] ** 2)[::-1])[::-1]
    largest = max(spectrum.values[0], float(np.max((lengths / left) ** 2 * before)))
    rounding, shrunk = spectrum.rounding, float(spectrum.values[0] / values[0])
    beside = rounding.beside * float(largest / values[0])
    found = changed(
        spectrum,
        values=values,
        vectors=spectrum.held.turned(turn, items),
        route=f"{spectrum.route}, given {given}",
        rounding=Rounding(
            max(rounding.power, 0.5), rounding.hidden, shrunk * rounding.least, beside
        ),
        kernel=f"{spectrum.kernel} given {counted(given, 'item')}" if spectrum.kernel else "",
        method=f"{spectrum.method} given {digest(np.sort(items))}" if spectrum.data else "",
    )
    return Conditional(found, 2 * float(np.log(left).sum()))


def _turned(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an orthonormal basis, (r, r), of which the first span the rows, and |R_jj|.

    R_jj is what those before it leave of row j.
    """
    Q, R = linalg.qr(rows.T, check_finite=False)
    return Q, np.abs(R.diagonal())


def _refuse_dependent(left: FloatArray, lengths: FloatArray, items: IntArray) -> None:
    for j in np.flatnonzero(left <= DEPENDENT * lengths)[:1]:
        why = "is never drawn (all its features are zero)"
        if lengths[j] > 0:
            why = "is a copy or a combination of the others, so that the determinant is zero"
        raise ValueError(f"no batch contains all given items: item {items[j]} {why}; leave it out")
