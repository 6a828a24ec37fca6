"""`select`: one diverse set of items, drawn from a k-DPP or chosen greedily."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal, final

import numpy as np
from scipy import sparse

from dmsgd.designs.kdpp import KDPP
from dmsgd.errors import warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.features.rows import row_norms2, squared_distances
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, Matrix, as_items
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import counted
from dmsgd.inputs.progress import Progress, announce
from dmsgd.inputs.scalars import Seed, as_choice, as_count, seed_key
from dmsgd.kernels import RBF, Kernel, exact, nystrom
from dmsgd.kernels.quality import Quality, as_quality
from dmsgd.kernels.rbf import median_distance, median_scale
from dmsgd.spectra.rounding import EPS, WARN_ABOVE
from dmsgd.spectra.spectrum import Spectrum

#: Relative differences up to this are ties, which go to the first item.
TIED = 1e-9
#: An item of which others leave less than this share depends on them.
DEPENDENT = 1e-4
#: Squares of qualities below this share of the largest are lost in rounding.
UNLIKELY = 1e-5
#: Up to this many items all distances are computed at once.
AT_ONCE = 2000
#: Up to this many items a set is drawn from the exact spectrum; else from so many landmarks, or
#: from three per item of the set.
EXACT_ITEMS, LANDMARKS = 5000, 1500


def select(
    X: Any,
    k: int,
    *,
    quality: Any = None,
    diversity: float = 0.5,
    given: Any = (),
    exclude: Any = (),
    how: Literal["draw", "greedy"] = "draw",
    seed: Seed = None,
) -> IntArray:
    """Return k items that are diverse and, where `quality` is given, good: their numbers.

    Two items are similar by exp(-d² / m), where d is their distance and m the median squared
    distance of all pairs. Where k items are not independent at that scale, because X has few
    columns or many copies, the scale is reduced until they are.

    X:         (n, d) features in any form that `diversify` takes.
    quality:   (n,) numbers >= 0: relevance, uncertainty, or whatever makes an item worth having.
    diversity: what counts more: 0.5 takes quality as it is (L_ij = q_i S_ij q_j), towards 0 only
               quality counts, and at 1 only diversity.
    given:     items that are there already: the others differ from them. k counts new items only.
    exclude:   items that must not be chosen.
    how:       "draw" from the k-DPP, by `seed`: sets are diverse, and on average like the data.
               "greedy": each item adds most to det(L_Y), best first, the same every time. Without
               `quality` it prefers outliers.
    seed:      of the draw.

    A draw from more than 5,000 items stands on max(1500, 3k) landmarks (`dmsgd.kernels.nystrom`).
    Greedy sets are O(n d k + n k²), with 8 n k bytes. Where fewer than k distinct items are left,
    the rest is filled with copies by quality, with a warning.

    >>> X = [[0.0, 0.0], [0.0, 0.1], [5.0, 5.0], [5.0, 5.1], [9.0, 0.0]]
    >>> select(X, k=3, how="greedy")
    array([0, 4, 3])
    >>> select(X, k=3, how="greedy", quality=[1, 2, 2, 1, 1])
    array([1, 2, 4])
    """
    as_choice(how, "how", ("draw", "greedy"))
    F, k, key = as_features(X), as_count(k, "k"), seed_key(seed)
    q = as_quality(np.ones(F.n) if quality is None else quality, F.n, diversity)
    known, barred = (_as_set(v, F.n, name) for v, name in ((given, "given"), (exclude, "exclude")))
    free = np.ones(F.n, dtype=bool)
    free[known] = free[barred] = False
    if k > (count := int(np.count_nonzero(free))):
        raise ValueError(
            f"k={k} new items are asked for, but of {counted(F.n, 'item')} {count:,} are neither "
            f"given nor excluded; ask for at most {count:,}"
        )
    chosen, scale = _greedy(F, q, k, known, free)
    if chosen.size < k:
        free[chosen] = False
        rest = np.flatnonzero(free)
        rest = rest[np.argsort(-q[rest], kind="stable")][: k - chosen.size]
        warn_kernel(
            f"{counted(chosen.size, 'item')} of k={k} are distinct and of quality above 0; the "
            f"other {rest.size} are chosen by quality alone"
        )
        return np.concatenate([chosen, rest])
    if how == "greedy":
        return chosen
    if q[chosen].min() < UNLIKELY:
        raise ValueError(
            f"{k} items can be drawn only with such as item {chosen[np.argmin(q[chosen])]}, whose "
            f"quality is {q[chosen].min():.1g} of the largest, which rounding hides; use "
            f"how='greedy', a smaller k or a larger diversity"
        )
    return _draw(F, q, k, known, free, scale, key)


def _as_set(value: Any, n: int, name: str) -> IntArray:
    """Return the items of `value`, sorted."""
    return np.unique(as_items(value, n, name, 1))


def _draw(
    F: Features, q: FloatArray, k: int, known: IntArray, free: BoolArray, scale: float, key: int
) -> IntArray:
    """Return k items from the k-DPP of the free and the known items, given the known ones."""
    pool = np.flatnonzero(free | np.isin(np.arange(F.n), known))
    rows = F if pool.size == F.n else as_features(F.take(pool), allow_tiny=True)
    worth = q[pool]
    worth[np.searchsorted(pool, known)] = 1.0  # quality is asked of new items only
    design = KDPP(_spectrum(rows, worth, k + known.size, scale), k + known.size)
    whole = design.given(np.searchsorted(pool, known)) if known.size else design
    items: IntArray = pool[whole.sample(1, key)[0]]
    return items[~np.isin(items, known)]


def _spectrum(F: Features, q: FloatArray, k: int, scale: float) -> Spectrum:
    """Return the spectrum of the kernel, of a smaller scale where rounding would be visible."""
    while True:
        kernel: Kernel = RBF(F, scale)
        kernel = kernel if (q == 1).all() else Quality(kernel, q)
        if F.n <= EXACT_ITEMS:
            found = exact(kernel)
        else:
            found = nystrom(kernel, min(max(LANDMARKS, 3 * k), F.n), how="pivots")
        if found.rank >= k and found.inclusion_error(k) <= WARN_ABOVE:
            return found
        scale /= 2


@final
class _Distances:
    """Squared distances between items: all at once if there are few, else from one at a time."""

    def __init__(self, F: Features) -> None:
        self.X: Matrix = F.to_memory().matrix
        self.all: FloatArray | None = None
        self.median = 1.0
        if F.n <= AT_ONCE:
            self.all = squared_distances(self.X, self.X)
            np.fill_diagonal(self.all, 0.0)
            self.median = median_distance(self.all) ** 2 if self.all.any() else self.median
            return
        with suppress(ValueError):  # the items that it looks at are all alike
            self.median = median_scale(F) ** 2
        if not sparse.issparse(self.X):
            self.X = self.X - self.X.mean(0)  # rounding is smaller
        self.norms = row_norms2(self.X)
        self.noise = EPS * (8 + F.d**0.5)

    def of(self, item: int) -> FloatArray:
        """Return those of all items from one; 0 where they are no more than rounding."""
        if self.all is not None:
            return np.asarray(self.all[item])
        row = self.X[[item]].toarray()[0] if sparse.issparse(self.X) else self.X[item]
        sizes = self.norms + self.norms[item]
        found = sizes - 2 * (self.X @ row)
        found[found <= self.noise * sizes] = 0.0
        return np.asarray(found)


def _greedy(
    F: Features, q: FloatArray, k: int, known: IntArray, free: BoolArray
) -> tuple[IntArray, float]:
    """Return the greedy set, smaller than k if all other items are copies, and the last scale.

    The scale is reduced whenever all items that are left depend on those that are chosen.
    """
    distances = _Distances(F)
    square = distances.median
    chosen = np.empty(0, dtype=np.int64)
    worth = np.where(free, q**2, 0.0)
    while True:
        before = np.concatenate([known, chosen])
        more, near = _independent(distances, square, worth, k - chosen.size, before)
        chosen = np.concatenate([chosen, more])
        worth[more] = 0.0
        farthest = float(near[worth > 0].max(initial=0.0))
        if chosen.size == k or farthest == 0:
            return chosen, float(np.sqrt(square / 2))
        square = min(square / 4, farthest)


def _independent(
    distances: _Distances, square: float, worth: FloatArray, k: int, before: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return up to k items that are independent of each other and of those `before`.

    Each has the largest q_i² r_i, r_i being what the items before it leave of S_ii = 1: Cholesky
    steps (Chen, Zhang, Zhou 2018). The second result is the squared distance to the nearest of
    them.
    """
    n = worth.size
    steps = before.size + k
    what = f"a greedy set of {counted(k, 'item')} of {n:,}"
    reserve(steps * n, what, "ask for fewer items")
    announce(float(n) * steps * (distances.X.shape[1] + steps / 2), n, what, "ask for fewer items")
    C, left, near = np.empty((steps, n)), np.ones(n), np.full(n, np.inf)
    chosen: list[int] = []
    done = 0
    progress = Progress(what)
    for step in range(steps):
        if step < before.size:
            item = int(before[step])
        else:
            score = worth * left
            top = score.max()
            if top <= 0:
                break
            item = int(np.argmax(score >= (1 - TIED) * top))
            chosen.append(item)
        squares = distances.of(item)
        np.minimum(near, squares, out=near)
        if left[item] > 0:
            column = np.exp(squares * (-1 / square))
            column -= C[:done, item] @ C[:done]
            column /= np.sqrt(left[item])
            C[done] = column
            done += 1
            left -= column * column
            left[left < DEPENDENT] = 0.0
            left[item] = 0.0
        progress((step + 1) / steps)
    return np.array(chosen, dtype=np.int64), near
