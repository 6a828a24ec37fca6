"""Determinants of kernel blocks from the spectrum: log det(L_Y), and the greedy set."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.progress import Progress, announce
from dmsgd.spectra.conditional import DEPENDENT, conditional
from dmsgd.spectra.spectrum import Spectrum

#: Where other items leave less than this share of one, a plain QR loses more than nine digits.
PLAIN = 1e-7
#: Relative differences up to this are ties, which go to the first item.
TIED = 1e-9
#: Remaining lengths are known to TIED only above this share of the initial ones.
PRECISE = 1e-4


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
        logs[~precise] = [_pivoted_log_determinant(rows, rounded) for rows in A[~precise]]
        out[first : first + step] = logs
    return out


def _pivoted_log_determinant(A: FloatArray, rounded: bool) -> float:
    """Return log det(A Aᵀ) for columns of any sizes, -inf where rows are dependent.

    With columns of A sorted and rows pivoted, the error in each column is relative to that column,
    and not to the largest (Cox and Higham 1998). Rows are dependent where one has no more than
    1e-14 left of its length or, if A itself is not `rounded`, of the remaining columns.
    """
    sizes = np.abs(A).max(axis=0)
    order = np.argsort(-sizes, kind="stable")
    R, rows = linalg.qr(A[:, order].T, mode="r", pivoting=True, check_finite=False)
    left = np.abs(R.diagonal())
    whole = np.linalg.norm(A[rows], axis=1) if rounded else sizes[order[: left.size]]
    return -np.inf if (left <= DEPENDENT * whole).any() else 2 * float(np.log(left).sum())


def greedy_set(spectrum: Spectrum, k: int, without: IntArray | None = None) -> IntArray:
    """Return k items, each with the largest det(L_Y) that one more item can give, in that order.

    Fast greedy MAP inference (Chen, Zhang, Zhou 2018): with a_i row i of V Λ^(1/2) and q an
    orthonormal basis of the items taken, item i adds the factor d_i = |a_i|² - Σ_q (a_i q)².
    O(n r) per item, or a pass over features that are read in blocks.
    """
    chosen = np.empty(k, dtype=np.int64)
    what = f"a greedy set of {k:,} of {spectrum.n:,} items"
    advice = "design.sample(1) draws a set instead, at once"
    announce(float(spectrum.n) * spectrum.rank * k, spectrum.n, what, advice)
    progress = Progress(what)
    done = 0
    while done < k:  # start again from the conditional kernel when little is left of every item
        here = conditional(spectrum, chosen[:done]).spectrum if done else spectrum
        taken = np.concatenate([chosen[:done], [] if without is None else without]).astype(np.int64)
        roots = np.sqrt(here.values)
        left = here.held.weighted_squares(here.values).copy()
        left[taken] = 0.0
        enough, directions = PRECISE * left.max(), np.empty((0, here.rank))
        while done < k and left.max() > enough:
            best = int(np.argmax(left >= (1 - TIED) * left.max()))
            row = here.held.rows(np.array([best]))[0] * roots
            for _ in range(2):  # orthogonalising once leaves rounding errors
                row -= directions.T @ (directions @ row)
            row /= np.linalg.norm(row)
            directions = np.vstack([directions, row])
            chosen[done] = best
            done += 1
            left -= here.held.times(roots * row) ** 2
            left[best] = 0.0
            progress(done / k)
    return chosen
