"""`select`: one diverse set of items, chosen to cover all, greedily, or drawn from a k-DPP."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from dmsgd.designs.greedy import greedy_items, median_square, points_of, sampled_pairs
from dmsgd.errors import warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, as_items
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import Seed, as_choice, as_count, seed_key
from dmsgd.kernels.quality import as_quality
from dmsgd.selection.cover import cover, nearest
from dmsgd.selection.draw import draw_set

#: Of more items than this, and EACH k, those that cover the others are chosen from a sample.
MANY, EACH = 6144, 12
How = Literal["cover", "greedy", "draw"]


def select(
    X: Any,
    k: int,
    *,
    quality: Any = None,
    diversity: float = 0.5,
    given: Any = (),
    exclude: Any = (),
    how: How = "cover",
    seed: Seed = None,
) -> IntArray:
    """Return the numbers of k items that are diverse and, if `quality` is given, good.

    The similarity of two items is S = exp(-d² / m), where d is their distance and m the median
    squared distance among 40 items. Where X has few columns or many near-duplicates, so that fewer
    than k items are independent at this m, m is reduced; "draw" warns of it.

    X:         (n, d) features in any form that `diversify` takes. If columns are in different
               units, pass `dmsgd.features.standardize(X)`.
    quality:   (n,) numbers >= 0: relevance, uncertainty, or whatever makes an item worth having.
    diversity: weight of diversity against quality: 0.5 takes quality as it is
               (L_ij = q_i S_ij q_j), towards 0 only quality counts, and at 1 only diversity. It is
               1 - λ of MMR, for logs: the next greedy item has the largest (1-diversity) log q² +
               diversity log r, r being the share of it that chosen items leave. diversity=v of
               pyversity's DPP is quality=np.exp((1 - v) * z) here, z being the relevance with mean
               0 and deviation 1.
    given:     items chosen already, from which the new ones differ. k counts new items only.
    exclude:   items that must not be chosen.
    how:       "cover": each item has the largest product of its quality and what it adds to
               Σ_j q_j max_i S_ij, i being chosen or given, so that every good item has a similar
               one in the set. Best first, the same every time. Use it for what to label, with or
               without `uncertainty`. Where items are given, m is at most the median squared
               distance to the nearest of them.
               "greedy": each item adds most to det(L_Y), best first, the same every time. Use it
               where quality is relevance; without `quality` it prefers outliers. An item counts as
               a duplicate where rounding hides r: below about 1e-14, or 1e-5 in arrays of more
               than 2**28 numbers.
               "draw" from the k-DPP, by `seed`: sets are diverse, and on average like the data.
    seed:      for "draw"; the other two are not random.

    "cover" takes O(n² d) operations and up to 1 GiB. If there are more than max(6144, 12 k) items
    it draws a sample of that size by quality, chooses from the sample and covers the sample.
    "greedy" takes O(n d k + n k²) operations at most, fewer with quality, and 8 n k bytes, or half
    from 2 GiB on. "draw" is exact for up to 2,000 items, or 3 k up to 10,000. For more its sets are
    within 1 % of the k-DPP in total variation, by a factor of low rank or a Markov chain of 14 to
    20 steps for each of the k (docs/results/approximations.md): O(k²) memory, or up to 2 GB.

    Items of quality 0 are not chosen. If fewer than k distinct items of quality above 0 are left,
    `select` warns and chooses the rest by quality, duplicates included. Raises ValueError if fewer
    than k items are neither given nor excluded. See also `uncertainty`, `DiverseSelector`, `cells`.

    >>> X = [[0.0, 0.0], [0.0, 0.1], [5.0, 5.0], [5.0, 5.1], [9.0, 0.0]]
    >>> select(X, k=2)
    array([2, 0])
    >>> select(X, k=3, how="greedy")
    array([0, 4, 3])
    >>> select(X, k=3, how="greedy", quality=[1, 2, 2, 1, 1])
    array([1, 2, 4])
    """
    as_choice(how, "how", get_args(How))
    F, k = as_features(X), as_count(k, "k")
    key = seed_key(seed) if how == "draw" or seed is not None else 0
    q = as_quality(np.ones(F.n) if quality is None else quality, F.n, diversity)
    known, barred = (_as_set(v, F.n, name) for v, name in ((given, "given"), (exclude, "exclude")))
    free = np.ones(F.n, dtype=bool)
    free[known] = free[barred] = False
    if k > (count := int(np.count_nonzero(free))):
        raise ValueError(
            f"k={k} new items are asked for, but of {counted(F.n, 'item')} {count:,} are neither "
            f"given nor excluded; ask for at most {count:,}"
        )
    if how == "cover":
        return _filled(_cover(F, np.where(free, q, 0.0), k, known), q, k, free)
    if how == "greedy":
        return _filled(greedy_items(F, q, k, known, free), q, k, free)
    return _filled(draw_set(F, q, k, known, free, key), q, k, free)


def _as_set(value: Any, n: int, name: str) -> IntArray:
    """Return the items of `value`, sorted."""
    if isinstance(value, tuple) and not value:
        return np.empty(0, dtype=np.int64)
    return np.unique(as_items(value, n, name, 1))


def _sample(q: FloatArray, size: int, seed: int = 0) -> tuple[IntArray, FloatArray]:
    """Return items drawn by their quality, and weights with which sums over them are unbiased.

    This is priority sampling (Duffield, Lund, Thorup 2007).
    """
    key = q / (1 - np.random.default_rng(seed).random(q.size))
    order = np.argpartition(-key, size)
    items = np.sort(order[:size])
    return items, np.maximum(q[items], key[order[size]])


def _cover(F: Features, q: FloatArray, k: int, known: IntArray) -> IntArray:
    """Return items that cover all, or a sample of them; fewer than k if others are duplicates.

    q: the quality of free items, 0 of all others.
    """
    sampled = as_features(F.take(sampled_pairs(F.n)[0]), allow_tiny=True)
    square = median_square(sampled, points_of(sampled))
    items, most = np.flatnonzero(q), max(MANY, EACH * k)
    if not items.size:
        return items
    items, weights = _sample(q, most) if items.size > most else (items, q[items])
    rows = F.take(items)
    near = nearest(F.take(known), rows)
    if known.size:
        square = min(square, float(np.median(near)) or square)
    return items[cover(rows, q[items], weights, k, square, near)]


def _filled(chosen: IntArray, q: FloatArray, k: int, free: BoolArray) -> IntArray:
    """Return k items: those that are chosen, and others by quality, with a warning."""
    if chosen.size == k:
        return chosen
    free[chosen] = False
    rest = np.flatnonzero(free)
    rest = rest[np.argsort(-q[rest], kind="stable")][: k - chosen.size]
    warn_kernel(
        f"{counted(chosen.size, 'item')} of k={k} are distinct and of quality above 0; the "
        f"other {rest.size} are chosen by quality alone"
    )
    return np.concatenate([chosen, rest])
