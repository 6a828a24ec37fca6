"""A k-DPP with an RBF kernel in which every item is as likely: repulsion alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import dmsgd

#: The scale of the kernel over `dmsgd.designs.suggest_scale`.
STRETCH = 3.0
#: Eigenvalues below this share of the largest one are rounding noise, which would show in b.
SMALLEST = 1e-11


def uniform_rbf(X: np.ndarray, k: int) -> Any:
    """Return the k-DPP with b_i = k/n on the 2k + 32 leading directions of an RBF kernel.

    Where these cannot give all items the same b, as with very many copies of a few items, it is
    the whole kernel at the suggested scale.
    """
    suggested = dmsgd.designs.suggest_scale(X, k)
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.RBF(X, STRETCH * suggested))
    r = min(2 * k + 32, int(np.sum(spectrum.values > SMALLEST * spectrum.values[0])))
    leading = spectrum.vectors[:, :r] * np.sqrt(spectrum.values[:r])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", dmsgd.KernelWarning)  # rounding shows in b
            return dmsgd.diversify(leading, k, kernel="linear", normalize=False, target="uniform")
    except (ValueError, dmsgd.KernelWarning):  # TargetError and RankError are ValueErrors
        return dmsgd.diversify(X, k, kernel="rbf", scale=suggested, target="uniform")
