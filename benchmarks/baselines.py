"""Batches of other methods, to compare with; none of them is part of the package."""

from __future__ import annotations

import numpy as np


def k_center(X, k, rng):
    """Greedy k-center batch: a random item, then each time the one farthest from those chosen.

    Within a factor of two of the smallest covering radius (Gonzalez 1985), O(n k d). It chases
    outliers, and all its batches look alike. Facility location, the other common choice, is in
    apricot (`apricot.FacilityLocationSelection`), which is not a dependency.
    """
    batch = np.empty(k, dtype=np.int64)
    batch[0] = rng.integers(len(X))
    nearest = np.full(len(X), np.inf)
    for m in range(1, k):
        step = X - X[batch[m - 1]]
        np.minimum(nearest, np.einsum("ij,ij->i", step, step), out=nearest)
        nearest[batch[:m]] = -np.inf  # copies of chosen items are at distance 0, chosen ones below
        batch[m] = nearest.argmax()
    return batch
