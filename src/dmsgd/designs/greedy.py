"""The most likely batch, found greedily."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.progress import Progress, announce
from dmsgd.spectra.conditional import conditional
from dmsgd.spectra.spectrum import Spectrum

#: Items as good as the best but for this share of it are as good: the first of them is taken.
TIED = 1e-9
#: What is left of items is known to TIED only above this share of what they were.
PRECISE = 1e-4


def greedy(spectrum: Spectrum, k: int, without: IntArray | None = None) -> IntArray:
    """Return k items, each with the largest det(L_Y) that one more item can give, in that order.

    The part of item i that those before it leave is d_i = |a_i|² - Σ_q (a_i q)², a_i being row i of
    V Λ^(1/2) and q orthonormal directions of the items taken (fast greedy MAP inference; Chen,
    Zhang, Zhou 2018). O(n r) an item, or a pass over features that are read in blocks.
    """
    chosen = np.empty(k, dtype=np.int64)
    what = f"a most likely set of {k:,} of {spectrum.n:,} items"
    advice = "design.sample(1) draws a set instead, at once"
    announce(float(spectrum.n) * spectrum.rank * k, spectrum.n, what, advice)
    tell = Progress(what)
    done = 0
    while done < k:  # where little is left of all items, what is left is made anew
        here = conditional(spectrum, chosen[:done]).spectrum if done else spectrum
        taken = np.concatenate([chosen[:done], [] if without is None else without]).astype(np.int64)
        roots = np.sqrt(here.values)
        left = here.held.weighted_squares(here.values).copy()
        left[taken] = 0.0
        enough, directions = PRECISE * left.max(), np.empty((0, here.rank))
        while done < k and left.max() > enough:
            best = int(np.argmax(left >= (1 - TIED) * left.max()))
            row = here.held.rows(np.array([best]))[0] * roots
            for _ in range(2):  # once leaves rounding of what is taken away
                row -= directions.T @ (directions @ row)
            row /= np.linalg.norm(row)
            directions = np.vstack([directions, row])
            chosen[done] = best
            done += 1
            left -= here.held.times(roots * row) ** 2
            left[best] = 0.0
            tell(done / k)
    return chosen
