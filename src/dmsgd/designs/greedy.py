"""The greedy set: items with a large determinant, one after the other."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.progress import Progress, announce
from dmsgd.spectra.conditional import conditional
from dmsgd.spectra.spectrum import Spectrum

#: Relative differences up to this are ties, which go to the first item.
TIED = 1e-9
#: Remaining lengths are known to TIED only above this share of the initial ones.
PRECISE = 1e-4


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
        here = conditional(spectrum, chosen[:done]) if done else spectrum
        taken = np.concatenate([chosen[:done], [] if without is None else without]).astype(np.int64)
        roots = np.sqrt(here.values)
        left = here.eigenvectors.weighted_squares(here.values).copy()
        left[taken] = 0.0
        enough, directions = PRECISE * left.max(), np.empty((0, here.rank))
        while done < k and left.max() > enough:
            best = int(np.argmax(left >= (1 - TIED) * left.max()))
            row = here.eigenvectors.rows(np.array([best]))[0] * roots
            for _ in range(2):  # orthogonalising once leaves rounding errors
                row -= directions.T @ (directions @ row)
            row /= np.linalg.norm(row)
            directions = np.vstack([directions, row])
            chosen[done] = best
            done += 1
            left -= here.eigenvectors.times(roots * row) ** 2
            left[best] = 0.0
            progress(done / k)
    return chosen
