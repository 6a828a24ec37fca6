"""How many batches there are."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray


def log_binomial(n: int | IntArray, k: int | IntArray) -> FloatArray:
    """Return log of the number of k-subsets of n items."""
    from scipy.special import gammaln  # a fifth of what the first batch imports, and rarely needed

    return np.asarray(
        gammaln(np.add(n, 1)) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1)
    )
