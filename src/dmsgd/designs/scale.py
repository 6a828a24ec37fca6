"""Choosing the RBF scale from the eigenvalues of a few hundred items.

The scale is right when the kernel can tell about as many groups of items apart as a batch has
places: with a far smaller one every item is alone and the k-DPP is uniform, with a far larger one
there are fewer independent directions than places.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from dmsgd.features import as_features
from dmsgd.features.similarity import squared_distances
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.scalars import Seed, as_batch_size, seed_key
from dmsgd.kernels.rbf import median_distance
from dmsgd.spectra.eigen import eigenvalues
from dmsgd.spectra.strength import entropy

#: Effective rank that `suggest_scale` aims at, in batch sizes, where there are items enough.
GROUPS_PER_PLACE = 2.0
#: Items it looks at, or twice the rank it aims at if that is more.
SAMPLE = 500
#: Items that the search begins with.
GUESSED = 200
#: How far below and above the median distance it goes, and when it stops, in logs.
BELOW, ABOVE, ACCURACY = float(np.log(100)), float(np.log(10)), 0.005


def suggest_scale(X: Any, k: int, seed: Seed = 0) -> float:
    """Return the RBF scale at which the kernel of all items has effective rank 2k.

    With fewer than 4k items it is n/2 instead: near 2k every item would be alone. The scale is
    found to 1 % between a hundredth of the median distance and ten times it, and is an end of that
    range where the rank is out of reach within it. Of more than max(500, 4k) items so many are
    looked at, and the rank of all is extrapolated; docs/approximations.md says how well. Distances
    are computed once, eigenvalues about five times, eigenvectors never.

    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> 0.3 < suggest_scale(X, k=5) < 3.0
    True
    """
    X = as_features(X)
    k = as_batch_size(k, X.n)
    target = float(np.log(min(GROUPS_PER_PLACE * k, 0.5 * X.n)))
    size = min(X.n, max(SAMPLE, int(2 * GROUPS_PER_PLACE * k)))
    reserve(4 * size**2, f"the distances between {size:,} items", "choose a smaller k")
    rng = np.random.default_rng(seed_key(seed))
    sample = X.take(np.sort(rng.choice(X.n, size, replace=False)))
    D = squared_distances(sample, sample)
    np.fill_diagonal(D, 0.0)
    middle = float(np.log(median_distance(D)))
    mixed = rng.permutation(size)  # so that leading blocks are samples, too
    D = D[np.ix_(mixed, mixed)]
    found = _falling_root(
        lambda log_scale: _log_rank(D, log_scale, X.n) - target,
        _first_guess(D[:GUESSED, :GUESSED], X.n, target, middle),
        middle - BELOW,
        middle + ABOVE,
    )
    return float(np.exp(found))


def _log_rank(D: FloatArray, log_scale: float, n: int) -> float:
    """Return the log of the effective rank of n items, from squared distances between m of them.

    It grows with the items, by less with each doubling. Those from a quarter of the m items to a
    half, and from the half to all, say by how much and by what factor less; the doublings from m
    to n are taken to go on so.
    """
    L = np.exp(D * (-0.5 * np.exp(-2 * log_scale)))
    m = len(L)
    if m == n:
        return entropy(eigenvalues(L))
    quarter, half, whole = (_mean_entropy(L, parts) for parts in (4, 2, 1))
    before, last = half - quarter, whole - half
    ratio = min(max(last / before, 0.0), 1.0) if before > 0 else 0.0
    doublings = float(np.log2(n / m))
    more = doublings if ratio == 1 else ratio * (1 - ratio**doublings) / (1 - ratio)
    return min(whole + last * more, float(np.log(n)))


def _mean_entropy(L: FloatArray, parts: int) -> float:
    """Return the mean over as many diagonal blocks of L of the entropy of their eigenvalues."""
    size = len(L) // parts
    blocks = (slice(part * size, (part + 1) * size) for part in range(parts))
    return float(np.mean([entropy(eigenvalues(L[block, block].copy())) for block in blocks]))


def _first_guess(D: FloatArray, n: int, target: float, middle: float) -> float:
    """Return the log scale at which (Σλ)² / Σλ² is the rank, whose mean needs no eigenvalues."""
    squares = D[np.triu_indices(len(D), 1)]
    low, high = middle - BELOW, middle + ABOVE
    while high - low > 0.1:
        half = (low + high) / 2
        alike = np.exp(-squares * np.exp(-2 * half)).mean()
        low, high = (half, high) if -np.log(1 / n + alike) > target else (low, half)
    return (low + high) / 2


def _falling_root(f: Callable[[float], float], x: float, least: float, most: float) -> float:
    """Return where the falling function f is zero, or the end of the range that is nearest to it.

    From x in growing steps until the sign changes, then by Brent's method between the two sides.
    """
    from scipy.optimize import brentq

    f, step = cache(f), 0.1
    while True:
        beyond = min(max(x + float(np.copysign(step, f(x))), least), most)
        if beyond == x:
            return x
        if f(x) * f(beyond) <= 0:
            return float(brentq(f, x, beyond, xtol=ACCURACY))
        x, step = beyond, 2 * step
