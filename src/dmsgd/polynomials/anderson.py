"""Anderson's acceleration of a fixed-point iteration: extrapolation from its last few steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmsgd.inputs.arrays import FloatArray


def extrapolated(past: Sequence[tuple[FloatArray, FloatArray]], weights: FloatArray) -> FloatArray:
    """Return the combination of the last steps whose gap would vanish if gaps were linear in θ.

    past:    (θ, gap) of each step, the last one last; a plain step goes from θ to θ + gap.
    weights: of the entries, in the size of a gap.
    """
    theta, gap = past[-1]
    if len(past) == 1:
        return theta + gap
    moves = np.array([theta - earlier for earlier, _ in past][:-1])
    changes = np.array([gap - earlier for _, earlier in past][:-1])
    weighted = changes * weights
    share, *_ = np.linalg.lstsq(weighted @ changes.T, weighted @ gap, rcond=1e-12)
    return np.asarray(theta + gap - share @ (moves + changes))
