"""Shares of a batch in proportion to weights, where no item can have more than all of itself."""

from __future__ import annotations

from dmsgd.inputs.arrays import FloatArray


def capped_shares(weights: FloatArray, k: int, ceiling: float = 1.0) -> FloatArray:
    """Return b_i = min(ceiling, c weights_i) with Σ b_i = k; the others take what is cut off.

    >>> import numpy as np
    >>> capped_shares(np.array([8.0, 1.0, 1.0, 2.0]), 2)
    array([1.  , 0.25, 0.25, 0.5 ])
    """
    b: FloatArray = weights * (k / weights.sum())
    while (b > ceiling).any():
        full = b >= ceiling
        others, left = weights[~full], k - ceiling * full.sum()
        b[~full] = others / (others.sum() or 1.0) * left  # none is left for weights of 0
        b[full] = ceiling
    return b
