"""`suggest_scale`: an RBF scale for batches of k, from the eigenvalues of a few hundred items."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from dmsgd.features import as_features
from dmsgd.features.products import squared_distances
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.scalars import Seed, as_part, seed_key
from dmsgd.kernels.feature_kernels import median_distance
from dmsgd.runtime.memory import reserve
from dmsgd.spectra.decompose import eigenvalues
from dmsgd.spectra.eigenpairs import entropy

#: Target of the effective rank, in units of k.
RANK_PER_ITEM = 2.0
#: Items in the sample, or twice the target rank if that is more; items of the first guess.
SAMPLE, GUESSED = 500, 200
#: Range below and above the median distance, and tolerance, in logs.
BELOW, ABOVE, ACCURACY = float(np.log(100)), float(np.log(10)), 0.005


def suggest_scale(X: Any, k: int, seed: Seed = 0) -> float:
    """Return the RBF scale for batches of k items: the kernel then has effective rank 2k.

    With fewer than 4k items the rank is n/2 instead. The scale is found to 1 % between a hundredth
    of the median distance and ten times it, and is an end of that range where the rank is out of
    reach. Of more than max(500, 4k) items a sample of that size is used, and the rank of all is
    extrapolated (docs/results/approximations.md). Raises ValueError if all items are equal.
    See also `RBF`.

    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> 0.3 < suggest_scale(X, k=5) < 3.0
    True
    """
    X = as_features(X)
    k = as_part(k, "k", X.n)
    target = float(np.log(min(RANK_PER_ITEM * k, 0.5 * X.n)))
    size = min(X.n, max(SAMPLE, int(2 * RANK_PER_ITEM * k)))
    reserve(4 * size**2, f"the distances between {size:,} items", "choose a smaller k")
    rng = np.random.default_rng(seed_key(seed))
    sample = X.take(np.sort(rng.choice(X.n, size, replace=False)))
    D = squared_distances(sample, sample)
    np.fill_diagonal(D, 0.0)
    middle = float(np.log(median_distance(D)))
    mixed = rng.permutation(size)  # so that leading blocks are random samples, too
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

    The growth from a quarter of the m items to a half, and from the half to all, is continued
    geometrically from m to n.
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
    """Return the mean entropy of the eigenvalues of `parts` diagonal blocks of L."""
    size = len(L) // parts
    blocks = (slice(part * size, (part + 1) * size) for part in range(parts))
    return float(np.mean([entropy(eigenvalues(L[block, block].copy())) for block in blocks]))


def _first_guess(D: FloatArray, n: int, target: float, middle: float) -> float:
    """Return the log scale at which (Σλ)² / Σλ², which needs no eigenvalues, is the rank."""
    squares = D[np.triu_indices(len(D), 1)]
    low, high = middle - BELOW, middle + ABOVE
    while high - low > 0.1:
        half = (low + high) / 2
        alike = np.exp(-squares * np.exp(-2 * half)).mean()
        low, high = (half, high) if -np.log(1 / n + alike) > target else (low, half)
    return (low + high) / 2


def _falling_root(f: Callable[[float], float], x: float, least: float, most: float) -> float:
    """Return the zero of the decreasing function f, searched from x, or the end of the range."""
    from scipy.optimize import brentq

    f, step = cache(f), 0.1
    while True:
        beyond = min(max(x + float(np.copysign(step, f(x))), least), most)
        if beyond == x:
            return x
        if f(x) * f(beyond) <= 0:
            return float(brentq(f, x, beyond, xtol=ACCURACY))
        x, step = beyond, 2 * step
