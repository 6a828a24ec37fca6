"""Greedy sets of an RBF kernel: each item adds most to the determinant of those before."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dmsgd.features import Features, as_features
from dmsgd.features.rows import row_norms2, squared_distances
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, random_rows
from dmsgd.inputs.messages import counted
from dmsgd.inputs.progress import Progress, plan_work

#: Items between which the median distance is taken.
SAMPLE = 40
#: Multiplications of compiled code at a time, half a second, so that Ctrl-C works; how many of a
#: product of matrices take as long as one of them.
AT_A_TIME, SLOWER = 5e8, 8
#: Arrays of more numbers than this are in float32.
LARGE = 2**28
#: An RBF scale suits items of which others leave more than this share.
DEPENDENT = 1e-4


def greedy_set(F: Features, q: FloatArray, k: int) -> tuple[IntArray, float]:
    """Return the greedy set of k items, smaller if all others are duplicates, and an RBF scale.

    At that scale they are independent.
    """
    points, nothing = points_of(F), np.empty(0, dtype=np.int64)
    square, everything = median_square(F, points), np.ones(F.n, dtype=bool)
    items, square = greedy(points, F.d, q, k, nothing, everything, square, DEPENDENT)
    return items, float(np.sqrt(square / 2))


def greedy_items(F: Features, q: FloatArray, k: int, known: IntArray, free: BoolArray) -> IntArray:
    """Return the greedy set of k free items beside the known ones, best first.

    It is smaller if all others are duplicates, or of quality 0.
    """
    points = points_of(F)
    return greedy(points, F.d, q, k, known, free, median_square(F, points))[0]


def sampled_square(F: Features) -> float:
    """Return `median_square` from the sampled rows alone."""
    sampled = as_features(F.take(sampled_pairs(F.n)[0]), allow_tiny=True)
    return median_square(sampled, points_of(sampled))


def points_of(F: Features) -> Any:
    """Return what `greedy_steps` needs of the features."""
    from dmsgd.compiled.greedy import DENSE, SPARSE

    X, none = F.to_memory().matrix, np.empty(0, dtype=np.int64)
    noise = 8 + F.d**0.5
    if F.sparse_rows:
        starts, indices = (part.astype(np.int64) for part in (X.indptr, X.indices))
        return SPARSE, X.data[None], starts, indices, row_norms2(X), np.finfo(float).eps * noise
    kind = np.float32 if F.n * F.d > LARGE else np.float64
    X = np.subtract(X, X.mean(0), order="C", dtype=kind)  # rounding is smaller
    norms = row_norms2(X).astype(float)
    return DENSE, X, none, none, norms, float(np.finfo(kind).eps) * noise


def median_square(F: Features, points: Any) -> float:
    """Return the median squared distance between distinct items of a sample; 1 if all are alike."""
    from dmsgd.compiled.greedy import SPARSE

    (items, one, other), norms = sampled_pairs(F.n), points[4]
    if points[0] == SPARSE:
        rows = F.take(items)
        pairs = np.asarray(squared_distances(rows, rows))[one, other]
    else:
        rows, sizes = points[1][items], norms[items]
        pairs = sizes[one] + sizes[other] - 2 * (rows @ rows.T)[one, other]
    apart = np.sort(pairs[pairs > 1e-12 * norms.max()])
    return float(apart[[(apart.size - 1) // 2, apart.size // 2]].mean()) if apart.size else 1.0


@cache
def sampled_pairs(n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return SAMPLE of n items, or all, and the two places of each pair of them."""
    items = random_rows(n, SAMPLE, np.random.default_rng(0))
    return items, *np.triu_indices(items.size, 1)


def greedy(
    points: Any,
    d: int,
    q: FloatArray,
    k: int,
    known: IntArray,
    free: BoolArray,
    square: float,
    least: float = 0.0,
) -> tuple[IntArray, float]:
    """Return the greedy set, smaller than k if all other items are duplicates, and the last scale.

    The scale is reduced whenever all items that are left depend on those that are chosen: rounding
    hides what these leave of them, or it is no more than `least`.
    """
    order = known
    worth = np.where(free, q**2, 0.0)
    while True:
        order, near = _independent(points, d, square, worth, known.size + k, order, least)
        worth[order] = 0.0
        farthest = float(near[worth > 0].max(initial=0.0))
        if order.size == known.size + k or farthest == 0:
            return order[known.size :], square
        square = min(square / 4, farthest)


def _independent(
    points: Any,
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
    from dmsgd.compiled.greedy import SPARSE, greedy_steps

    n, width = worth.size, d if points[0] == SPARSE else 0
    what = f"a greedy set of {counted(count - before.size, 'item')} of {n:,}"
    kind = np.float32 if n * count > LARGE else np.float64
    size = count * (n * np.dtype(kind).itemsize // 8 + width)
    plan_work(SLOWER * n * float(count) * (d + count / 2), size, what, "ask for fewer items")
    order = np.concatenate([before, np.empty(count - before.size, dtype=np.int64)])
    picks, rows = np.empty_like(order), np.zeros((count, width))
    C = np.empty((n, count), dtype=kind)
    left, doubt, near, steps = np.ones(n), np.zeros(n), np.full(n, np.inf), np.zeros(n, np.int64)
    state = -1 / square, least, float(np.finfo(kind).eps), picks, rows, C, left, doubt, near, steps
    choice = points, state, worth, worth.copy(), order, before.size
    step, done, nothing, progress = 0, 0, False, Progress(what)
    while step < count and not nothing:
        step, done, nothing = greedy_steps(*choice, step, done, AT_A_TIME)
        progress(max(step, 1) / count)
    return order[:step], near
