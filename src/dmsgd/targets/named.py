"""Target inclusion probabilities b*, by name or as an array.

"uniform"    b*_i = k/n: the plain average over a batch is unbiased and needs no weights
"balanced"   b*_i = k/(C n_c): every one of C classes has the same expected share of a batch,
             and every item of a class the same probability
"density"    larger where items are sparse in feature space (`density`)
an array     proportional to it: losses, importance, freshness
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.errors import TargetError
from dmsgd.features import as_features
from dmsgd.inputs.arrays import TINY, FloatArray, as_numbers
from dmsgd.inputs.messages import counted, require
from dmsgd.inputs.scalars import Seed, as_batch_size, as_count, as_fraction, seed_key

#: `density` searches neighbours among at most this many items.
REFERENCE_ITEMS = 20_000
#: Smallest log of a weight, relative to the largest: below it exp underflows.
LEAST_LOG = -700.0


def as_target(value: Any, n: int, k: int) -> FloatArray:
    """Return `value`, one positive number per item, scaled so that it sums to k and is below 1."""
    if isinstance(value, str):
        if value != "uniform":
            raise ValueError(
                f"target={value!r} is not known here; use 'uniform' or one number per item "
                f"(dmsgd.diversify also takes 'balanced' and 'density')"
            )
        value = np.ones(n)
    weights = as_numbers(value, "target", n)
    if (bad := np.flatnonzero(weights <= 0)).size:
        raise ValueError(
            f"target must be positive and finite, but is {weights[bad[0]]:g} for item {bad[0]} "
            f"({counted(bad.size, 'such item')}); remove items that are never to be drawn"
        )
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])  # sums stay within range
    b: FloatArray = weights * (k / weights.sum())
    if b.max() >= 1:
        fits = int(np.ceil(k / b.max()) - 1)
        advice = f"use k <= {fits}, or " if fits else ""
        raise ValueError(
            f"target asks for item {b.argmax()} {b.max():.3g} times in a batch of {k} "
            f"({counted(int((b >= 1).sum()), 'such item')}), but an item is in a batch at "
            f"most once; {advice}lower the largest values (np.minimum)"
        )
    if b.min() < TINY:
        raise ValueError(
            f"target asks for item {b.argmin()} in a share of {b.min():.0e} of the batches, which "
            f"is as good as never; leave it out of the data, or raise the smallest values"
        )
    return b


def named_target(name: str, X: Any, labels: Any, n: int, k: int) -> FloatArray:
    """Return the target that `name` stands for, over n items with features X and labels."""
    if name == "uniform":
        return as_target(name, n, k)
    if name == "density":
        return density(X, k)
    if labels is None:
        raise ValueError("target='balanced' gives every class the same share; pass labels=")
    return balanced_target(labels, k)


def balanced_target(labels: Any, k: int) -> FloatArray:
    """Return b* that gives every class k/C expected items of a batch, equal within a class."""
    names, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    share, rarest = k / names.size, int(np.argmin(sizes))
    if sizes[rarest] <= share:
        raise ValueError(
            f"a balanced batch of {k} has {share:.3g} items of each of {names.size} classes, but "
            f"class {names[rarest]!s} has {sizes[rarest]} in all; use "
            f"k <= {names.size * sizes[rarest] - 1}, or a target array that asks for less of it"
        )
    return np.asarray(share / sizes[codes])


def density(
    X: Any,
    k: int,
    strength: float = 0.5,
    neighbours: int = 10,
    least_effective: float = 0.25,
    seed: Seed = 0,
) -> FloatArray:
    """Return a target b* ∝ density^(-strength): larger where items are sparse in feature space.

    The density at an item is distance^(-m), with the distance to the neighbour number `neighbours`
    and the data's own dimension m (Levina and Bickel's estimate, its inverse averaged over items).

    strength:        The power: 0 is uniform, and 1 flattens the density completely.
    least_effective: The effective share of items, (Σb)² / (n Σb²), is at least this. The strength
                     is lowered where a few outliers would take all the batches.
    seed:            It chooses the 20,000 items in which neighbours are searched, if there are
                     more.

    No b is above 0.9, or above (1 + k/n) / 2 where that is more: batches that take nearly all
    items leave no room below 0.9. It takes n searches among at most 20,000 items. Raises ValueError
    if there are no more items than neighbours, and `TargetError` if all of those are duplicates.
    See also `diversify` with target="density".

    >>> dense, sparse = np.linspace(0, 1, 30), np.linspace(5, 50, 30)
    >>> b = density(np.r_[dense, sparse][:, None], k=10)
    >>> bool(b[30:].min() > b[:30].max())
    True
    """
    require("sklearn", "the density of items")
    from sklearn.neighbors import NearestNeighbors

    X = as_features(X)
    n = X.n
    k, strength = as_batch_size(k, n), as_fraction(strength, "strength")
    neighbours = as_count(neighbours, "neighbours", least=2)
    least = as_fraction(least_effective, "least_effective")
    rows = np.random.default_rng(seed_key(seed)).permutation(n)[:REFERENCE_ITEMS]
    if rows.size <= neighbours:
        raise ValueError(f"neighbours={neighbours} needs more than {rows.size} items")
    search = NearestNeighbors(n_neighbors=neighbours + 1).fit(X.take(rows))
    distances = np.concatenate([search.kneighbors(part)[0] for part in X.blocks()])
    found = np.isin(np.arange(n), rows)[:, None]  # items that are their own first neighbour
    log_density = _log_density(np.where(found, distances[:, 1:], distances[:, :-1]))
    b, low, high = _flattened(log_density, strength, k), 0.0, strength
    if _effective(b) >= least:
        return b
    for _ in range(40):
        middle = (low + high) / 2
        reached = _effective(_flattened(log_density, middle, k)) >= least
        low, high = (middle, high) if reached else (low, middle)
    return _flattened(log_density, low, k)


def _log_density(distances: FloatArray) -> FloatArray:
    """Return -m log r for the distances r to the last of the neighbours, up to a constant."""
    far = distances[:, -1]
    if not far.any():
        raise TargetError("all neighbours of every item are duplicates, so there is no density")
    far = np.maximum(far, far[far > 0].min())
    inner = distances[:, :-1]
    logs = np.log((far[:, None] / np.where(inner > 0, inner, 1.0))[inner > 0])
    dimension = 1 / max(float(logs.mean()), 1e-3) if logs.size else 1.0  # duplicates say nothing
    return np.asarray(-dimension * np.log(far))


def _flattened(log_density: FloatArray, strength: float, k: int) -> FloatArray:
    """Return b ∝ density^(-strength) with sum k, cut off at a ceiling (the rest takes the cut)."""
    logs = -strength * log_density
    weights = np.exp(np.maximum(logs - logs.max(), LEAST_LOG))
    ceiling = max(0.9, (1 + k / weights.size) / 2)
    return capped_shares(weights, k, ceiling)


def capped_shares(weights: FloatArray, k: int, ceiling: float = 1.0) -> FloatArray:
    """Return b_i = min(ceiling, c weights_i) with Σ b_i = k; items below it share the rest.

    >>> capped_shares(np.array([8.0, 1.0, 1.0, 2.0]), 2)
    array([1.  , 0.25, 0.25, 0.5 ])
    """
    b: FloatArray = weights * (k / weights.sum())
    while (b > ceiling).any():
        full = b >= ceiling
        others, left = weights[~full], k - ceiling * full.sum()
        b[~full] = others / (others.sum() or 1.0) * left  # 0 if all others have weight 0
        b[full] = ceiling
    return b


def _effective(b: FloatArray) -> float:
    return float(b.sum() ** 2 / (b.size * (b @ b)))
