"""Which items are looked at: all, or a random sample where decomposing all would take long.

A copy of every item leaves the law of eigenvectors and the class shares as they are, so those of a
sample are close to those of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.designs.options import DesignOptions
from dmsgd.features import Features, as_features
from dmsgd.features.interface import InMemory
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.scalars import Seed, seed_key

#: About as many floating point operations are spent on one eigendecomposition.
OPERATIONS = 2.5e10
#: Sizes of samples to choose from.
SAMPLES = (100_000, 50_000, 20_000, 10_000, 5000, 3000, 2000, 1500)
#: Items that are looked at where there are more classes: nearly each item is alone then, and
#: eigenvalues that are tied cost more than others.
MANY_CLASSES = 1000
#: Items among which target="density" looks for neighbours: all pairs of them are compared.
NEIGHBOURS = 10_000

#: Items that a target is prescribed for with a kernel by entries: each step decomposes them all.
PRESCRIBED = 500


def rows_for(X: Features, k: int, labels: Any, settings: DesignOptions, seed: Seed = 0) -> IntArray:
    """Return the items to look at for designs with these settings and several w.

    Every class adds a direction to the kernel where w > 0, so that a table with thousands of them
    is as costly as one with thousands of columns.
    """
    mixed = labels is not None and (settings.target is None or settings.w > 0)
    classes = np.unique(labels).size if mixed else 0
    directions = X.n if settings.kernel == "rbf" else X.d + classes
    most = readable(X)
    if settings.target is not None and settings.kernel == "rbf":
        most = min(most, max(PRESCRIBED, 5 * k))
    if settings.target == "density":
        most = min(most, NEIGHBOURS)
    if classes > MANY_CLASSES:
        most = min(most, max(MANY_CLASSES, 5 * k))
    return sample_rows(X.n, directions, k, seed, most)


def sample_rows(n: int, d: int, k: int, seed: Seed = 0, most: int | None = None) -> IntArray:
    """Return the items to look at, sorted: all, or as many as are quick to decompose.

    most: read no more than this many, whatever it costs to decompose them.
    """
    for size in (n if most is None else min(n, most), *SAMPLES):
        least = min(size, d)
        affordable = least * least * max(size, d) + 10 * least**3 <= OPERATIONS
        if size <= n and (affordable or size <= max(SAMPLES[-1], 5 * k)):
            break
    if size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed_key(seed)).choice(n, size, replace=False))


def readable(X: Features) -> int:
    """Return how many items of X may be read: of those that are not in memory, not all."""
    return X.n if X.resident else SAMPLES[0]


def taken(X: Features, rows: IntArray) -> InMemory:
    """Return these rows of X in memory."""
    return X.whole() if rows.size == X.n else as_features(X.take(rows), allow_tiny=True).whole()
