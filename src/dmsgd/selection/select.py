"""`select`: one set of items that covers all, of medoids, or greedy; `uncertainty` of each item."""

from __future__ import annotations

from typing import Any, Literal, get_args, overload

import numpy as np

from dmsgd.errors import InputError, warn_kernel
from dmsgd.features import Features, as_features
from dmsgd.features.maps import Normalize
from dmsgd.features.products import row_norms2
from dmsgd.inputs.alignment import aligned, as_named_items
from dmsgd.inputs.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_matrix,
    as_quality,
    is_tensor,
    on_host,
)
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_choice, as_count, as_flag
from dmsgd.runtime.threads import thread_count
from dmsgd.selection.cover import covering_set
from dmsgd.selection.pool import MatrixPool, MemoryPool, Pool, RowPool, in_memory
from dmsgd.selection.result import Selection, describe
from dmsgd.selection.rules import Metric, Rules, Wishes

How = Literal["cover", "medoids", "greedy"]
Uncertainty = Literal["margin", "entropy", "least confidence"]
#: How far the probabilities of an item may sum from 1: half precision rounds by so much.
ROUNDING = 1e-2


# fmt: off
@overload
def select(
    X: Any, k: int | None = ..., *, quality: Any = ..., diversity: float = ..., given: Any = ...,
    exclude: Any = ..., how: How = ..., metric: Metric = ..., cover: Any = ..., groups: Any = ...,
    at_most: Any = ..., at_least: Any = ..., costs: Any = ..., budget: float | None = ...,
    until: float | None = ..., duplicates: float | None = ..., m: float | None = ...,
    details: Literal[False] = ..., workers: int = ...,
) -> IntArray: ...
@overload
def select(
    X: Any, k: int | None = ..., *, quality: Any = ..., diversity: float = ..., given: Any = ...,
    exclude: Any = ..., how: How = ..., metric: Metric = ..., cover: Any = ..., groups: Any = ...,
    at_most: Any = ..., at_least: Any = ..., costs: Any = ..., budget: float | None = ...,
    until: float | None = ..., duplicates: float | None = ..., m: float | None = ...,
    details: Literal[True], workers: int = ...,
) -> Selection: ...
# fmt: on
def select(
    X: Any,
    k: int | None = None,
    *,
    quality: Any = None,
    diversity: float = 0.5,
    given: Any = (),
    exclude: Any = (),
    how: How = "cover",
    metric: Metric = "euclidean",
    cover: Any = None,
    groups: Any = None,
    at_most: Any = None,
    at_least: Any = None,
    costs: Any = None,
    budget: float | None = None,
    until: float | None = None,
    duplicates: float | None = None,
    m: float | None = None,
    details: bool = False,
    workers: int = 1,
) -> IntArray | Selection:
    """Return the numbers of k items that are diverse and, if `quality` is given, good.

    The similarity of two items is S = exp(-d² / m), where d is their distance and m the median
    squared distance among 40 items. Where X has few columns or many near-duplicates, so that fewer
    than k items are independent at this m, m is reduced.

    X:         (n, d) features in any form that `diversify` takes. If columns are in different
               units, pass `dmsgd.features.standardize(X)`.
    k:         how many items; with `budget` or `until` it may be left out.
    quality:   (n,) numbers >= 0: relevance, uncertainty, or whatever makes an item worth having.
    diversity: weight of diversity against quality: 0.5 takes quality as it is
               (L_ij = q_i S_ij q_j), towards 0 only quality counts, and at 1 only diversity. It is
               1 - λ of MMR, for logs: the next greedy item has the largest (1-diversity) log q² +
               diversity log r, r being the share of it that chosen items leave. diversity=v of
               pyversity's DPP is quality=np.exp((1 - v) * z) here, z being the relevance with mean
               0 and deviation 1.
    given:     items chosen already, from which the new ones differ. k counts new items only.
    exclude:   items that must not be chosen. They are covered as all others are: an item that does
               not matter has quality 0. `given` and `exclude` are item numbers, a mask, a set, or
               labels of the index if X is a DataFrame; numbers that could be both raise an error,
               and X.index[items] tells them apart.
    how:       "cover": each item has the largest product of its quality and what it adds to
               Σ_j q_j max_i S_ij, i being chosen or given, so that every good item has a similar
               one in the set. Best first, the same every time. Use it for what to label, with or
               without `uncertainty`. Where items are given, m is at most the median squared
               distance to the nearest of them, and with `cover` at least that of 40 of its rows to
               the nearest item. Groups, costs, `until`, `duplicates` and `cover` need it; `m` and
               `details` need it or "medoids".
               "medoids": a first set to label, for which it is better (docs/select.md). Rows, less
               their mean unless they are sparse, are shortened to the median length, and k-means
               begins at their covering set. Of each cell the item with the largest
               q_i Σ_j q_j exp(-4 d² / m) is chosen, j being in the cell. Best first by what each
               adds to the coverage, the same every time; a prefix is not the set of a smaller k.
               Centres at given items do not move. Of the arguments below it takes `metric`,
               `m`, `details` and `workers`.
               "greedy": each item adds most to det(L_Y), best first, the same every time. Use it
               where quality is relevance; without `quality` it prefers outliers. An item counts as
               a duplicate where rounding hides r: below about 1e-14, or 1e-5 in arrays of more
               than 2**28 numbers.
    metric:    "euclidean"; "cosine", the same for rows that are scaled to length 1; "precomputed",
               where X holds similarities >= 0 of n candidates to N items, dense, or sparse as a
               graph of nearest neighbours is.
    cover:     (N, d) rows that are to be covered instead of X, or a tuple of these and N weights.
    groups:    (n,) the group of each item, such as its source. at_most, at_least: how many of each
               group are chosen, one number for all, or a dict of names. Given items count towards
               at_most. With a budget, `at_least` needs a pool in memory.
    costs:     (n,) what each item costs, such as tokens; budget: what all may cost together. With k
               both limits hold, and the set is chosen to use both of them.
    until:     the share of Σ_j q_j, in (0, 1], at which enough is covered and the set ends, but
               for items of `at_least`.
    duplicates: no item is chosen beside one that is chosen or given and more similar to it than
               this, such as 0.995; the cosine for metric="cosine".
    m:         that of the similarity, such as `Selection.m`, in place of the one that is found;
               `duplicates` keeps its own. In memory, rounds with one m choose what one call would,
               but for ties, and their coverages can be compared. On one of 13 data sets what to
               label next was chosen worse so.
    details:   return a `Selection`: the items, what each added, what it stands for, the curve.
    workers:   threads for "cover" and "medoids", -1 for all cores. The set does not depend on it.

    "cover" knows the coverage of all items. Up to 8,192 items each choice is the best of all; of
    more, what candidates would add is estimated on a sample that grows until estimates are good,
    and the best few are decided on all (docs/results/selection.md). A prefix of the set is the set
    of a smaller k, unless there are `at_least`, `budget`, or m was reduced. More than 65,536 items
    (or 256 k) in blocks or on Dask are chosen from in two rounds: each block chooses items that
    cover it, and of these the set is chosen, to cover a sample (docs/project/blocks.md). "greedy"
    takes O(n d k + n k²) operations at most, fewer with quality, and 8 n k bytes, or half from
    2 GiB on. Sets that differ by seed are draws: `diversify(X, k, kernel="rbf", quality=q)`.

    Items of quality 0 are chosen only if there are fewer than k others; then, and if fewer than k
    items are distinct, `select` warns and chooses the rest by quality, duplicates included. Raises
    ValueError if fewer than k items are neither given nor excluded. See also `Selection`,
    `near_duplicates`, `uncertainty`, `dmsgd.sklearn.DiverseSelector`, `cells`.

    >>> X = [[0.0, 0.0], [0.0, 0.1], [5.0, 5.0], [5.0, 5.1], [9.0, 0.0]]
    >>> select(X, k=2)
    array([2, 0])
    >>> select(X, k=3, groups=["a", "a", "b", "b", "b"], at_most=2, at_least={"a": 1})
    array([2, 0, 4])
    >>> select(X, until=0.9)
    array([2, 0, 4])
    >>> select(X, k=3, how="greedy", quality=[1, 2, 2, 1, 1])
    array([1, 2, 4])
    """
    as_choice(how, "how", get_args(How))
    as_choice(metric, "metric", get_args(Metric))
    wishes = Wishes(
        cover, groups, at_most, at_least, costs, budget, until, duplicates,
        as_flag(details, "details") or None, m,
    )  # fmt: skip
    places = None if k is None else as_count(k, "k")
    wishes.check(places, how, metric)
    threads = thread_count(workers)
    F: Any = MatrixPool(X, threads) if metric == "precomputed" else _features(X, metric)
    F = in_memory(F) if how != "cover" else F
    q = np.ones(F.n) if quality is None else aligned(quality, X, "quality")
    plain, q = as_quality(q, F.n), as_quality(q, F.n, diversity)
    known = as_named_items(given, X, F.n, "given")
    free = np.ones(F.n, dtype=bool)
    free[known] = free[as_named_items(exclude, X, F.n, "exclude")] = False
    count = int(np.count_nonzero(free))
    if not count:
        raise ValueError(f"all {counted(F.n, 'item')} are given or excluded; leave some out")
    if (places or 1) > count:
        raise ValueError(
            f"k={places} new items are asked for, but of {counted(F.n, 'item')} {count:,} are "
            f"neither given nor excluded; ask for at most {count:,}"
        )
    if metric == "euclidean":
        _warn_zero_rows(F, free)
    pool: Any = F
    demand, rules = q, Rules(free, places or 0)
    items: IntArray
    if how == "cover":
        if metric != "precomputed":
            pool = _pool(F, metric, wishes, known, places, threads)
        rules, demand = wishes.rules(X, pool, places, free, known, metric), wishes.demand(q, pool)
        choose: Any = covering_set
        if not isinstance(pool, MemoryPool):
            from dmsgd.selection.parts import covering_parts as choose
        items, rules = choose(pool, q, demand, known, rules)
    else:
        if how == "medoids":
            from dmsgd.selection.medoids import medoids

            pool = RowPool(F.to_memory(), workers=threads)
            pool.square = wishes.scale(pool, known)
            items = medoids(pool, q, known, free, rules.k)
        else:
            from dmsgd.designs.greedy import greedy_set

            items, _ = greedy_set(F, q, rules.k, known, free)
        rules.take(*items.tolist())
    if until is not None and rules.costs is None and not rules.met and items.size != places:
        warn_kernel(
            f"the set covers less than until={until:g}: no other item that may be chosen adds to it"
        )
    if until is not None or rules.costs is not None:
        rules.end()
    if rules.count < rules.k:
        if duplicates is None:
            items = filled(items, plain, rules)
        else:
            warn_kernel(
                f"only {items.size:,} of {counted(rules.k, 'item')} are chosen: the others are "
                f"more similar to one of them, or to a given one, than duplicates={duplicates:g}, "
                f"or add nothing"
            )
    if not details:
        return items
    return describe(pool, demand, known, items, np.flatnonzero(free), rules.costs)


def _features(X: Any, metric: Metric, name: str = "X") -> Features:
    """Return features; for the cosine with rows of length 1."""
    F = as_features(X, name, allow_tiny=name != "X")
    if metric == "cosine":
        if (zero := np.flatnonzero(F.row_norms2() == 0)).size:
            raise InputError(
                f"row {zero[0]} of {name} is zero, so that it has no cosine with others; drop "
                f"{counted(zero.size, 'such row')}, or take another metric",
                metric="euclidean",
            )
        F = F.mapped(Normalize())
    return F


def _warn_zero_rows(F: Features, free: BoolArray) -> None:
    """Warn about free rows in memory that are zero where all others have one length.

    Such rows, of empty texts, are nearer to all others than these are to each other.
    """
    if F.unwrap() is F or F.d < 3:
        return
    lengths = on_host(row_norms2(F.unwrap()))
    zero, others = np.flatnonzero((lengths == 0) & free), lengths[lengths > 0]
    if 0 < zero.size < others.size and np.ptp(others) <= ROUNDING * others.max():
        warn_kernel(
            f"X has {counted(zero.size, 'row')} of zeros, as of empty texts (the first is row "
            f"{zero[0]}): they are nearer to rows of length 1 than these are to each other; drop "
            f"them, or name them in exclude"
        )


def _pool(
    F: Features, metric: Metric, wishes: Wishes, known: IntArray, k: int | None, workers: int
) -> Pool:
    """Return the candidates F, and what they are to cover."""
    rows = wishes.split_cover()[0]
    other = None if rows is None else in_memory(_features(rows, metric, "cover"))
    if other is not None and other.d != F.d:
        raise InputError(f"cover has {other.d} columns and X has {F.d}; give both the same ones")
    in_blocks = F.unwrap() is F
    if other is not None and not in_blocks and is_tensor(F.unwrap()) != is_tensor(other.unwrap()):
        raise InputError("one of X and cover is a tensor on a GPU; pass both so, or neither")
    if in_blocks:
        from dmsgd.selection.parts import pool_of_blocks

        pool = pool_of_blocks(F, other, known, k, workers)
    else:
        pool = RowPool(F, other, workers)
    pool.square = wishes.scale(pool, known)
    return pool


def filled(items: IntArray, q: FloatArray, rules: Rules) -> IntArray:
    """Return items and others by quality, with a warning, up to the last place."""
    if not rules.more():
        return items
    rest = []
    for item in np.argsort(-q, kind="stable").tolist():
        if rules.open[item] and rules.more():
            rules.take(item)
            rest.append(item)
    k, verbs = items.size + len(rest), ["is" if n == 1 else "are" for n in (items.size, len(rest))]
    adds = "adds" if items.size == 1 else "add"
    warn_kernel(
        f"only {items.size:,} of {counted(k, 'item')} {verbs[0]} distinct, of quality above 0, and "
        f"{adds} something; the other {len(rest):,} {verbs[1]} chosen by quality alone"
    )
    return np.concatenate([items, np.array(rest, dtype=np.int64)])


def uncertainty(
    probabilities: Any, how: Uncertainty = "margin", *, logits: bool = False
) -> FloatArray:
    """Return how uncertain each item is, from 0 (certain) to 1, shape (n,): `quality` of `select`.

    probabilities: (n, classes), such as scikit-learn's `predict_proba` gives, or a torch tensor.
    how:           "margin": 1 less the difference of the two largest probabilities. "entropy", and
                   "least confidence", 1 less the largest; both divided by their largest value.
    logits:        whether these are logits, such as torch's classifiers return, and become
                   probabilities by softmax.

    Raises ValueError if an item's probabilities do not sum to 1. See also `select`.

    >>> uncertainty([[0.5, 0.5, 0.0], [0.7, 0.1, 0.2], [1.0, 0.0, 0.0]])
    array([1. , 0.5, 0. ])
    """
    as_choice(how, "how", get_args(Uncertainty))
    P = as_array(as_matrix(probabilities, "probabilities", allow_tiny=True, columns="classes"))
    if (classes := P.shape[1]) < 2:
        raise ValueError(
            "probabilities must have one column per class, two at least, got one column; if it is "
            "p of the second of two classes, pass np.column_stack([1 - p, p])"
        )
    if as_flag(logits, "logits"):
        P = np.exp(P - P.max(1, keepdims=True))
        P /= P.sum(1, keepdims=True)
    wrong = (P < -ROUNDING).any(1) | (abs(P.sum(1) - 1) > ROUNDING)
    if wrong.any():
        raise ValueError(
            f"probabilities must be >= 0 with sum 1 for each item, but item {np.argmax(wrong)} has "
            f"the sum {P[wrong][0].sum():.3g}; for logits pass logits=True"
        )
    P = np.maximum(P, 0.0)
    if how == "margin":
        second, first = np.partition(P, -2, axis=1)[:, -2:].T
        found = 1 - (first - second)
    elif how == "entropy":
        found = -(P * np.log(np.maximum(P, 1e-300))).sum(1) / np.log(classes)
    else:
        found = (1 - P.max(1)) * classes / (classes - 1)
    return np.asarray(np.clip(found, 0.0, 1.0))
