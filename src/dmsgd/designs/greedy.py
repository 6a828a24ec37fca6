"""Greedy sets of an RBF kernel: each item adds most to the determinant of those before.

For few items nothing is compiled or loaded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dmsgd.features import Features
from dmsgd.features.median import median_square
from dmsgd.features.products import is_small, row_norms2
from dmsgd.inputs.arrays import TINY, BoolArray, FloatArray, IntArray
from dmsgd.inputs.messages import counted
from dmsgd.runtime.progress import Progress, plan_work
from dmsgd.spectra.rounding import EPS

#: Multiplications of compiled code at a time, half a second, so that Ctrl-C works; how many of a
#: product of matrices take as long as one of them.
AT_A_TIME, SLOWER = 5e8, 8
#: Arrays of more numbers than this are in float32.
LARGE = 2**28
#: An RBF scale suits items of which others leave more than this share.
DEPENDENT = 1e-4
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


def points_of(F: Features) -> Points:
    """Return what `greedy_steps` needs of the features."""
    X, none = F.to_memory().matrix, np.empty(0, dtype=np.int64)
    noise = 8 + F.d**0.5
    if F.sparse_rows:
        starts, indices = (part.astype(np.int64) for part in (X.indptr, X.indices))
        rounding = float(np.finfo(float).eps) * noise
        return Points(False, X.data[None], starts, indices, row_norms2(X), rounding)
    kind = np.float32 if F.n * F.d > LARGE else np.float64
    X = np.subtract(X, X.mean(0), order="C", dtype=kind)  # rounding is smaller
    norms = row_norms2(X).astype(float)
    return Points(True, X, none, none, norms, float(np.finfo(kind).eps) * noise)


def greedy_set(
    F: Features,
    q: FloatArray,
    k: int,
    known: IntArray | None = None,
    free: BoolArray | None = None,
    least: float = 0.0,
) -> tuple[IntArray, float]:
    """Return the greedy set of k free items beside the known ones, best first, and an RBF scale.

    It is smaller if all others are duplicates, or of quality 0. The scale begins as that of
    `select`, and is reduced whenever all items that are left depend on those that are chosen:
    rounding hides what these leave of them, or it is no more than `least`.
    """
    points, square = points_of(F), median_square(F)
    known = np.empty(0, dtype=np.int64) if known is None else known
    worth = np.where(q**2 >= TINY, q**2, 0.0)
    if free is not None:
        worth[~free] = 0.0
    order = known
    while True:
        order, near = _independent(points, F.d, square, worth, known.size + k, order, least)
        worth[order] = 0.0
        farthest = float(near[worth > 0].max(initial=0.0))
        if order.size == known.size + k or farthest == 0:
            return order[known.size :], float(np.sqrt(square / 2))
        square = min(square / 4, farthest)


def _independent(
    points: Points,
    d: int,
    square: float,
    worth: FloatArray,
    count: int,
    before: IntArray,
    least: float,
) -> tuple[IntArray, FloatArray]:
    """Return the items `before` and, to `count`, more that are independent of each other and them.

    Also returned is the squared distance of each item to the nearest of these.
    """
    if is_small(worth.size, worth.size):
        return few_independent(points, square, worth, count, before, least)
    from dmsgd.compiled.greedy import State, greedy_steps

    n, width = worth.size, 0 if points.is_dense else d
    what = f"a greedy set of {counted(count - before.size, 'item')} of {n:,}"
    kind = np.float32 if n * count > LARGE else np.float64
    size = count * (n * np.dtype(kind).itemsize // 8 + width)
    plan_work(SLOWER * n * float(count) * (d + count / 2), size, what, "ask for fewer items")
    order = np.concatenate([before, np.empty(count - before.size, dtype=np.int64)])
    picks, rows = np.empty_like(order), np.zeros((count, width))
    near = np.full(n, np.inf)
    state = State(
        -1 / square, least, float(np.finfo(kind).eps), picks, rows, C=np.empty((n, count), kind),
        left=np.ones(n), doubt=np.zeros(n), near=near, steps=np.zeros(n, np.int64),
    )  # fmt: skip
    choice = points, state, worth, worth.copy(), order, before.size
    step, done, nothing, progress = 0, 0, False, Progress(what)
    while step < count and not nothing:
        step, done, nothing = greedy_steps(*choice, step, done, AT_A_TIME)
        progress(max(step, 1) / count)
    return order[:step], near


def few_independent(
    points: Points, square: float, worth: FloatArray, count: int, before: IntArray, least: float
) -> tuple[IntArray, FloatArray]:
    """Return what `_independent` does, in NumPy: in each step all items are looked at.

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
