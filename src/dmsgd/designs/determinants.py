"""Log-determinants of kernel blocks, from the spectrum."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.spectra.conditional import DEPENDENT
from dmsgd.spectra.spectrum import Spectrum

#: Where items leave less than this share of another, a plain QR loses more than nine digits.
PLAIN = 1e-7


def log_determinants(spectrum: Spectrum, batches: IntArray) -> FloatArray:
    """Return log det(L_Y) for each row Y of `batches`; -inf where the items are dependent.

    L_Y = A Aᵀ with A = V_Y Λ^(1/2), so det(L_Y) is the squared product of the diagonal of R in
    Aᵀ = QR; A Aᵀ is not formed, which would lose half of the digits.
    """
    size, k = batches.shape
    out = np.empty(size)
    scale = np.sqrt(spectrum.values)
    step = max(1, 2**22 // (k * spectrum.rank))
    for first in range(0, size, step):
        A = spectrum.held.rows(batches[first : first + step]) * scale
        R = np.linalg.qr(A.transpose(0, 2, 1), mode="r")
        left = np.abs(np.einsum("sii->si", R))
        precise = (left > PLAIN * np.abs(A).max(axis=2)).all(axis=1)
        logs = 2 * np.log(np.where(precise[:, None], left, 1.0)).sum(axis=1)
        rounded = spectrum.rounding.power > 0
        logs[~precise] = [_of_far_apart(rows, rounded) for rows in A[~precise]]
        out[first : first + step] = logs
    return out


def _of_far_apart(A: FloatArray, rounded: bool) -> float:
    """Return log det(A Aᵀ) for columns of any sizes, -inf where rows are dependent.

    With columns of A sorted and rows pivoted, the error in each column is relative to that column,
    and not to the largest (Cox and Higham 1998). Rows are dependent where one has no more than
    1e-14 left of its length or, if A itself is not `rounded`, of the columns that are left.
    """
    sizes = np.abs(A).max(axis=0)
    order = np.argsort(-sizes, kind="stable")
    R, rows = linalg.qr(A[:, order].T, mode="r", pivoting=True, check_finite=False)
    left = np.abs(R.diagonal())
    whole = np.linalg.norm(A[rows], axis=1) if rounded else sizes[order[: left.size]]
    return -np.inf if (left <= DEPENDENT * whole).any() else 2 * float(np.log(left).sum())
