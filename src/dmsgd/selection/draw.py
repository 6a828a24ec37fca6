"""Sets drawn from a k-DPP of an RBF kernel: exactly, or from many items by a Markov chain."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.designs.greedy import greedy, independent, median_square, points_of
from dmsgd.designs.kdpp import KDPP
from dmsgd.errors import InputError
from dmsgd.features import Features, as_features
from dmsgd.features.rows import similarity, squared_distances
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray
from dmsgd.kernels import RBF, Kernel, exact
from dmsgd.kernels.quality import Quality
from dmsgd.spectra.rounding import WARN_ABOVE

#: Squares of qualities below this share of the largest are lost in rounding.
UNLIKELY = 1e-5
#: Up to this many items a set is drawn from the exact spectrum, from more by a Markov chain.
EXACT_ITEMS = 2000
#: Proposals of the Markov chain for each place.
ROUNDS = 10


def draw_exactly(
    F: Features, q: FloatArray, k: int, known: IntArray, free: BoolArray, square: float, key: int
) -> IntArray | None:
    """Return k items from the k-DPP of the free and the known items, given the known ones.

    None if rounding would be visible: too few items are independent at this scale.
    """
    near = np.asarray(squared_distances(F.take(known), F.take(known)))
    known = known[~np.triu(near == 0, 1).any(0)]  # one of each that is given twice
    pool = np.flatnonzero(free | np.isin(np.arange(F.n), known))
    rows = F if pool.size == F.n else as_features(F.take(pool), allow_tiny=True)
    worth, size = q[pool], k + known.size
    worth[np.searchsorted(pool, known)] = 1.0  # quality is asked of new items only
    kernel: Kernel = RBF(rows, np.sqrt(square / 2))
    kernel = kernel if (worth == 1).all() else Quality(kernel, worth)
    found = exact(kernel)
    if found.rank < size or found.inclusion_error(size) > WARN_ABOVE:
        return None
    design = KDPP(found, size)
    whole = design.given(np.searchsorted(pool, known)) if known.size else design
    items: IntArray = pool[whole.sample(1, key)[0]]
    return items[~np.isin(items, known)]


def draw_by_chain(
    F: Features, points: Any, worth: FloatArray, k: int, known: IntArray, square: float, key: int
) -> IntArray | None:
    """Return k items from nearly the k-DPP given the known ones, or None if too many depend.

    The first set is that of a randomly pivoted Cholesky factor, which is close to the k-DPP. Then
    comes a Markov chain whose stationary distribution is the k-DPP (`SwapChain`): a new item is
    proposed by the square of its quality, and accepted by the ratio of det(S_Y).
    """
    from dmsgd.compiled.swap import MATRIX, factor, walk

    order, _, Y = independent(points, F.d, square, worth, known.size + k, known, key)
    if order.size < known.size + k:
        return None
    rng, sums, fixed = np.random.default_rng(key), np.cumsum(worth), Y.size - k
    R = np.zeros((Y.size, Y.size))
    for _ in range(ROUNDS):
        proposed = np.searchsorted(sums, rng.random(k) * sums[-1], side="right")
        items, where = np.unique(np.concatenate([Y, proposed]), return_inverse=True)
        rows, local, uniforms = F.take(items), where[: Y.size].copy(), rng.random(3 * k)
        uniforms[::3] = (fixed + 1e-9 + uniforms[::3] * (k - 2e-9)) / Y.size  # which leaves
        S = np.asarray(similarity(rows, rows, np.sqrt(square / 2)))
        plan = MATRIX, S, 0.0, S.diagonal().copy(), local, R
        factor(*plan)
        walk(*plan, uniforms, where[Y.size :])
        Y = items[local]
    return rng.permutation(Y[fixed:])


def draw_set(
    F: Features, q: FloatArray, k: int, known: IntArray, free: BoolArray, key: int
) -> IntArray:
    """Return k of the free items from the k-DPP given the known ones; fewer if too few differ."""
    points, small = points_of(F), np.count_nonzero(free) + known.size <= EXACT_ITEMS
    square = median_square(F, points)

    def draw(square: float) -> IntArray | None:
        if small:
            return draw_exactly(F, q, k, known, free, square, key)
        return draw_by_chain(F, points, np.where(free, q**2, 0.0), k, known, square, key)

    if not small and (drawn := draw(square)) is not None:
        return drawn
    chosen, square = greedy(points, F.d, q, k, known, free, square)
    if chosen.size < k:
        return chosen
    if q[chosen].min() < UNLIKELY:
        raise InputError(
            f"{k} items can be drawn only with such as item {chosen[np.argmin(q[chosen])]}, whose "
            f"quality is {q[chosen].min():.1g} of the largest, which rounding hides; reduce k, or "
            f"let diversity count more",
            how="greedy",
        )
    while (drawn := draw(square)) is None:
        square /= 4
    return drawn
