"""`select`: one diverse set of items, chosen to cover all, greedily, or drawn from a k-DPP."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from dmsgd.designs.cover import cover, nearest
from dmsgd.designs.kdpp import KDPP
from dmsgd.errors import InputError, warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.features.rows import row_norms2, similarity, squared_distances
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, as_items
from dmsgd.inputs.messages import counted
from dmsgd.inputs.progress import Progress, plan_work
from dmsgd.inputs.scalars import Seed, as_choice, as_count, seed_key
from dmsgd.kernels import RBF, Kernel, exact
from dmsgd.kernels.quality import Quality, as_quality
from dmsgd.spectra.rounding import WARN_ABOVE

#: Squares of qualities below this share of the largest are lost in rounding.
UNLIKELY = 1e-5
#: Items between which the median distance is taken.
SAMPLE = 40
#: Multiplications of compiled code at a time, a second or two, so that Ctrl-C works.
AT_A_TIME = 2e9
#: Up to this many items a set is drawn from the exact spectrum; from more by a Markov chain, with
#: so many proposals for each place.
EXACT_ITEMS, ROUNDS = 2000, 10
#: Of more items than this, and EACH k, those that cover the others are chosen from a sample.
MANY, EACH = 6144, 12
#: Arrays of more numbers than this are in float32.
LARGE = 2**28
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
    """Return k items that are diverse and, where `quality` is given, good: their numbers.

    Two items are similar by exp(-d² / m), where d is their distance and m the median squared
    distance of 40 items. Where that is too wide for k items, because X has few columns or many
    near-copies, the scale is reduced until it is not.

    X:         (n, d) features in any form that `diversify` takes.
    quality:   (n,) numbers >= 0: relevance, uncertainty, or whatever makes an item worth having.
    diversity: what counts more: 0.5 takes quality as it is (L_ij = q_i S_ij q_j), towards 0 only
               quality counts, and at 1 only diversity. It is 1 - λ of MMR, for logs: the next
               greedy item has the largest (1-diversity) log q² + diversity log r, r being the
               share of it that chosen items leave. diversity=v of pyversity's DPP is
               quality=np.exp((1 - v) * z) here, z being the relevance with mean 0 and deviation 1.
    given:     items that are there already: the others differ from them. k counts new items only.
    exclude:   items that must not be chosen.
    how:       "cover": each item adds most to Σ_j q_j max_i S_ij, i being chosen or given: every
               item that matters has a similar one in the set. Best first, the same every time. Use
               it for what to label, with or without `uncertainty`. Where items are given, m is at
               most the median squared distance to the nearest of them.
               "greedy": each item adds most to det(L_Y), best first, the same every time. Use it
               where quality is relevance; without `quality` it prefers outliers.
               "draw" from the k-DPP, by `seed`: sets are diverse, and on average like the data.
    seed:      of the draw; the other two are not random.

    Sets that cover are O(n² d), and up to 1 GiB; of more than 6,144 items (and 12 k), so many are
    drawn by their quality, and items are chosen from these to cover these. Greedy sets are
    O(n d k + n k²) at most, a fraction of that with quality, and 8 n k bytes, or half from 2 GiB
    on. Draws from up to 2,000 items are exact, from more by a Markov chain
    (docs/results/approximations.md). Items of quality 0 are not chosen. Where fewer than k distinct
    items of quality above 0 are left, the rest is chosen by quality, copies too, with a warning.

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
    points, small = _points(F), count + known.size <= EXACT_ITEMS
    square = _median_square(F, points)

    def draw(square: float) -> IntArray | None:
        if small:
            return _draw(F, q, k, known, free, square, key)
        return _walk(F, points, np.where(free, q**2, 0.0), k, known, square, key)

    if how == "draw" and not small and (drawn := draw(square)) is not None:
        return drawn
    chosen, square = _greedy(points, F.d, q, k, known, free, square)
    if how == "greedy" or chosen.size < k:
        return _filled(chosen, q, k, free)
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
    """Return items that cover all, or a sample of them; fewer than k if others are copies.

    q: the quality of free items, 0 of all others.
    """
    sampled = as_features(F.take(_sampled_pairs(F.n)[0]), allow_tiny=True)
    square = _median_square(sampled, _points(sampled))
    items, most = np.flatnonzero(q), max(MANY, EACH * k)
    if not items.size:
        return items
    items, weights = _sample(q, most) if items.size > most else (items, q[items])
    rows = F.take(items)
    near = nearest(F.take(known), rows)
    if known.size:
        square = min(square, float(np.median(near)) or square)
    return items[cover(rows, weights, k, square, near)]


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


def _draw(
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


def _walk(
    F: Features, points: Any, worth: FloatArray, k: int, known: IntArray, square: float, key: int
) -> IntArray | None:
    """Return k items from nearly the k-DPP given the known ones, or None if too many depend.

    The first set is a randomly pivoted Cholesky's, P(Y) ∝ det(L_Y) but for how fast the residual's
    trace falls. Then comes a Markov chain whose stationary distribution is the k-DPP (`SwapChain`):
    a new item is proposed by the square of its quality, and accepted by the ratio of det(S_Y).
    """
    from dmsgd.compiled.swap import MATRIX, factor, walk

    order, _, Y = _independent(points, F.d, square, worth, known.size + k, known, key)
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


def greedy_set(F: Features, q: FloatArray, k: int) -> tuple[IntArray, float]:
    """Return the greedy set of k items, smaller if all others are copies, and an RBF scale.

    At that scale they are independent.
    """
    points, nothing = _points(F), np.empty(0, dtype=np.int64)
    square, everything = _median_square(F, points), np.ones(F.n, dtype=bool)
    items, square = _greedy(points, F.d, q, k, nothing, everything, square)
    return items, float(np.sqrt(square / 2))


def _points(F: Features) -> Any:
    """Return what `greedy_steps` needs of the features."""
    from dmsgd.compiled.greedy import DENSE, SPARSE

    X, none = F.to_memory().matrix, np.empty(0, dtype=np.int64)
    kind = np.float32 if F.n * F.d > LARGE and not sparse.issparse(X) else np.float64
    noise = float(np.finfo(kind).eps) * (8 + F.d**0.5)
    if sparse.issparse(X):
        starts, indices = (part.astype(np.int64) for part in (X.indptr, X.indices))
        return SPARSE, X.data[None], starts, indices, row_norms2(X), noise
    X = np.subtract(X, X.mean(0), order="C", dtype=kind)  # rounding is smaller
    return DENSE, X, none, none, row_norms2(X).astype(float), noise


def _median_square(F: Features, points: Any) -> float:
    """Return the median squared distance between distinct items of a sample; 1 if all are alike."""
    from dmsgd.compiled.greedy import SPARSE

    (items, one, other), norms = _sampled_pairs(F.n), points[4]
    if points[0] == SPARSE:
        rows = F.take(items)
        pairs = np.asarray(squared_distances(rows, rows))[one, other]
    else:
        rows, sizes = points[1][items], norms[items]
        pairs = sizes[one] + sizes[other] - 2 * (rows @ rows.T)[one, other]
    apart = np.sort(pairs[pairs > 1e-12 * norms.max()])
    return float(apart[[(apart.size - 1) // 2, apart.size // 2]].mean()) if apart.size else 1.0


@cache
def _sampled_pairs(n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return SAMPLE of n items, or all, and the two places of each pair of them."""
    size = min(n, SAMPLE)
    items = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    return items, *np.triu_indices(size, 1)


def _greedy(
    points: Any, d: int, q: FloatArray, k: int, known: IntArray, free: BoolArray, square: float
) -> tuple[IntArray, float]:
    """Return the greedy set, smaller than k if all other items are copies, and the last scale.

    The scale is reduced whenever all items that are left depend on those that are chosen.
    """
    order = known
    worth = np.where(free, q**2, 0.0)
    while True:
        order, near, _ = _independent(points, d, square, worth, known.size + k, order)
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
    key: Any = None,
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the items `before` and, to `count`, more that are independent of each other and them.

    These are greedy, or drawn at random by `key`. Also returned are the squared distance of each
    item to the nearest of all, and those of all that are independent.
    """
    from dmsgd.compiled.greedy import SPARSE, greedy_steps

    n, width = worth.size, d if points[0] == SPARSE else 0
    what = f"a greedy set of {counted(count - before.size, 'item')} of {n:,}"
    kind = np.float32 if n * count > LARGE else np.float64
    size = count * (n * np.dtype(kind).itemsize // 8 + width)
    plan_work(n * float(count) * (d + count / 2), size, what, "ask for fewer items")
    order = np.concatenate([before, np.empty(count - before.size, dtype=np.int64)])
    picks, rows = np.empty_like(order), np.zeros((count, width))
    C = np.empty((n, count), dtype=kind)
    left, near, steps = np.ones(n), np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    state = -1 / square, picks, rows, C, left, near, steps
    step, done, progress, score = 0, 0, Progress(what), worth.copy()
    sums = np.empty(0) if key is None else np.cumsum(worth)
    choice = points, state, worth, score, sums, np.uint64(key or 0), order, before.size
    at_once = int(1 + AT_A_TIME / (n * (d + count)))
    while step < count:
        last = min(step + at_once, count)
        step, done = greedy_steps(*choice, step, last, done)
        if step < last:
            break
        progress(step / count)
    return order[:step], near, picks[:done]
