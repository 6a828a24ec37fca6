"""Batches of other methods, to compare with; none of them is part of the package."""

from __future__ import annotations

import numpy as np


def k_center(X, k, rng):
    """Greedy k-center batch: a random item, then each time the one farthest from those chosen.

    Within a factor of two of the smallest covering radius (Gonzalez 1985), O(n k d). It chases
    outliers, and all its batches look alike.
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


def facility_location(L, k):
    """Greedy facility location: k items that maximise Σ_i max_{j in batch} L_ij, within 1 - 1/e.

    Lazy (Minoux 1978): gains only ever fall, so an item whose gain was found anew and still leads
    is the best of all. L >= 0, symmetric (n, n); O(n²), then O(n) for each gain that is looked at.
    """
    covered, gains = np.zeros(len(L)), L.sum(axis=0)
    batch = np.empty(k, dtype=np.int64)
    for m in range(k):
        fresh = np.zeros(len(L), dtype=bool)
        while not fresh[j := gains.argmax()]:
            gains[j], fresh[j] = np.maximum(L[j] - covered, 0.0).sum(), True
        batch[m], gains[j] = j, -np.inf
        np.maximum(covered, L[j], out=covered)
    return batch


def apricot_facility_location(L, k):
    """Return the same batch from apricot-select, which compiles its loops anew on every call."""
    from apricot import FacilityLocationSelection

    return FacilityLocationSelection(k, metric="precomputed", optimizer="lazy").fit(L).ranking


def from_pool(select, kernel, k, rng, size=400):
    """Return the batch that `select(L, k)` finds among `size` random items.

    A deterministic choice from all items would be the same batch at every step.
    """
    pool = rng.choice(kernel.n, min(size, kernel.n), replace=False)
    return pool[select(kernel.block(pool, pool), k)]
