"""Greedy sets of few items in NumPy, for which nothing is compiled or loaded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dmsgd.inputs.arrays import TINY, FloatArray, IntArray
from dmsgd.spectra.rounding import EPS

#: Relative differences up to this are ties, which go to the first item.
TIED = 1e-9


class Points(NamedTuple):
    """The rows of which a greedy set is chosen.

    is_dense: whether X are rows, (n, d); otherwise the entries of a CSR array, (1, nnz).
    starts:   indptr of a CSR array.
    indices:  those of a CSR array.
    norms:    (n,) squared lengths of the rows.
    noise:    the share of these below which a squared distance is rounding.
    """

    is_dense: bool
    X: Any
    starts: IntArray
    indices: IntArray
    norms: FloatArray
    noise: float


def few_independent(
    points: Points, square: float, worth: FloatArray, count: int, before: IntArray, least: float
) -> tuple[IntArray, FloatArray]:
    """Return what `designs/greedy.py: _independent` does: in each step all items are looked at.

    The formulas are those of `compiled/greedy.py`: C has the rows of a Cholesky factor, `left` is
    what chosen items leave of each, and `doubt` the error of that.
    """
    norms, noise = points.norms, points.noise
    n, order, C = worth.size, before.tolist(), np.empty((count, worth.size))
    left, doubt, near, done = np.ones(n), np.zeros(n), np.full(n, np.inf), 0
    for step in range(count):
        if step < before.size:
            item = order[step]
        else:
            scores = worth * left
            if (top := scores.max()) < TINY:
                break
            item = int((scores >= np.maximum((1 - TIED) * top - worth * doubt, TINY)).argmax())
            order.append(item)
        if (pivot := float(left[item])) > 0 and step < count - 1:
            sizes = norms + norms[item]
            squares = sizes - 2 * _products(points, item)
            squares[squares <= noise * sizes] = 0.0
            values, root = np.exp(squares / -square), pivot**0.5
            errors = EPS + noise / square * sizes * values
            values -= C[:done, item] @ C[:done]
            values /= root
            C[done], parts = values, values * values
            C[done, item], done = root, done + 1
            left -= parts
            doubt += 2 / root * np.abs(values) * errors + doubt[item] / pivot * parts
            left[left <= np.maximum(least, doubt)] = 0.0
            np.minimum(near, squares, out=near)
        left[item] = near[item] = 0.0
    return np.array(order, dtype=np.int64), near


def _products(points: Points, item: int) -> FloatArray:
    """Return X x for the row x of an item, where X is an array or the parts of a CSR array."""
    X, starts, indices, n = points.X, points.starts, points.indices, points.norms.size
    if points.is_dense:
        return np.asarray(X @ X[item])
    own, x = slice(starts[item], starts[item + 1]), np.zeros(indices.max(initial=0) + 1)
    x[indices[own]] = X[0, own]
    rows = np.repeat(np.arange(n), np.diff(starts))
    return np.bincount(rows, X[0] * x[indices], minlength=n).astype(float)
