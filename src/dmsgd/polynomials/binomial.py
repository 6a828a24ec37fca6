"""How many batches there are."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray

#: From here on four terms of Stirling's series are right to 1e-17.
LARGE = 30.0


def log_binomial(n: int | IntArray, k: int | IntArray) -> FloatArray:
    """Return log of the number of k-subsets of n items.

    By n! = sqrt(2π n) (n/e)^n exp(rest): differences of log n! cancel all digits for large n.
    """
    fewer = np.minimum(k, np.subtract(n, k))
    few, all_ = np.maximum(fewer, 1.0), np.maximum(n, 2.0)
    many = all_ - few
    logs = few * np.log(all_ / few) - many * np.log1p(-few / all_)
    logs -= (np.log(2 * np.pi * few) + np.log(many / all_)) / 2
    logs += _rest(all_) - _rest(few) - _rest(many)
    return np.where(fewer == 0, 0.0, logs)


def _rest(n: FloatArray) -> FloatArray:
    """Return log n! - log(sqrt(2π n) (n/e)^n) for n >= 1."""
    from scipy.special import gammaln  # a fifth of what the first batch imports, and rarely needed

    m = np.minimum(n, LARGE)
    small = gammaln(m + 1) - (m + 0.5) * np.log(m) + m - np.log(2 * np.pi) / 2
    x = 1 / np.maximum(n, LARGE)
    large = x / 12 - x**3 / 360 + x**5 / 1260 - x**7 / 1680
    return np.where(n < LARGE, small, large)
