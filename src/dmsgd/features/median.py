"""The median squared distance between items of a small sample: the scale m of `select`."""

from __future__ import annotations

from functools import cache

import numpy as np

from dmsgd.features.contract import Features
from dmsgd.features.products import squared_distances
from dmsgd.inputs.arrays import FloatArray, IntArray, is_sparse, random_rows

#: Items between which the median distance is taken.
SAMPLE = 40
#: Squared distances up to this share of the largest are rounding.
ROUNDING = 1e-12


def median_square(F: Features) -> float:
    """Return the median squared distance between distinct items of a sample; 1 if all are alike."""
    items, pairs = sampled_pairs(F.n)
    rows = F.take(items)
    if is_sparse(rows):
        found = np.asarray(squared_distances(rows, rows))
    else:  # the same in half the time: what is rounding is left out below
        rows = rows - rows.mean(0)
        found = rows @ rows.T
        lengths = found.diagonal()
        found = lengths[:, None] + lengths - 2 * found
    return median_above_rounding(found.ravel()[pairs]) or 1.0


def median_above_rounding(squares: FloatArray) -> float:
    """Return the median of the squared distances that are not rounding; 0 if there are none."""
    squares = squares[squares > ROUNDING * squares.max(initial=0.0)]
    return float(np.median(squares)) if squares.size else 0.0


@cache
def sampled_pairs(n: int) -> tuple[IntArray, IntArray]:
    """Return SAMPLE of n items, or all, and the places of their pairs in a matrix of all."""
    items = random_rows(n, SAMPLE, np.random.default_rng(0))
    one, other = np.triu_indices(items.size, 1)
    return items, one * items.size + other
