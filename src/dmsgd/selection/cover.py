"""Facility location: candidates that together are similar to all items, weighted by demand."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray
from dmsgd.inputs.messages import counted
from dmsgd.runtime.progress import Progress
from dmsgd.runtime.threads import one_blas_thread
from dmsgd.selection.coverage import WHOLE, Coverage, SmallCoverage
from dmsgd.selection.pool import MemoryPool
from dmsgd.selection.rules import Rules
from dmsgd.selection.similarity import SMALL, Kept, Similarity

#: Gains below this share of the largest, or of what is covered, are rounding.
NOTHING = 1e-6
#: Scales, each a quarter of the one before, at which nothing is added before the choice ends.
MISSES = 4
#: Similarities that never take a minute.
PAIRS = 1e9
ADVICE = "ask for fewer items, use workers=-1, or pass X as a CUDA tensor"
#: Pairs times places up to which NumPy computes all gains anew at every step.
ANEW = 2**25
#: What gains are compared by.
Per = Literal["item", "cost", "place"]


def covering_set(
    pool: MemoryPool, worth: FloatArray, demand: FloatArray, known: IntArray, rules: Rules
) -> tuple[IntArray, Rules]:
    """Return a covering set, best first, and the rules as it leaves them; arguments as for `cover`.

    Where items have costs it is the best of two, by gain and by gain per cost: if all are worth the
    same, that covers at least (1 - 1/e) / 2 of the most possible (Leskovec et al. 2007). If dear
    items use up the budget of one, and cheap ones the places of the other, there is a third, in
    between.
    """
    if rules.costs is None:
        return cover(pool, worth, demand, known, rules), rules
    tried = list[tuple[float, IntArray, Rules]]()
    similarity = lru_cache(1)(pool.similarity)  # the sets begin at one scale
    for per in get_args(Per):
        if per == "place" and not tried[0][2].count < rules.k == tried[1][2].count:
            break
        own = deepcopy(rules)
        items = cover(pool, worth, demand, known, own, per, similarity)
        near = pool.nearest(np.append(known, items))
        tried.append((float(demand @ np.exp(near / -pool.square)), items, own))
    _, items, rules = max(tried, key=lambda each: each[0])
    return items, rules


def cover(
    pool: MemoryPool,
    worth: FloatArray,
    demand: FloatArray,
    known: IntArray,
    rules: Rules,
    per: Per = "item",
    similarity: Callable[[float], Similarity] | None = None,
) -> IntArray:
    """Return candidates, best first, fewer than there are places if the others add nothing.

    Each has the largest product of its worth and what it adds to Σ_j demand_j max_i S_ij,
    S = exp(-d² / pool.square), where i runs over the chosen and the known candidates. Once these
    cover all as far as rounding shows, the scale is reduced.

    known: candidates that are there already.
    per:   what the product is divided by: "item", nothing; "cost"; "place", the cost, or what is
           left of the budget for each place that is left, if that is more.
    similarity: what `pool.similarity` returns, if some of it may be known already.
    """
    near, live, square = pool.nearest(known), worth > 0, pool.square
    until, apart = rules.until, rules.apart
    for item in known.tolist() if apart >= 0 else ():
        live &= ~pool.near(item, apart)
    chosen, misses = np.empty(0, dtype=np.int64), 0
    while misses < MISSES and rules.more():
        missing = until * demand.sum() - demand[near == 0].sum()
        if demand @ np.exp(near / -square) >= (1 - NOTHING) * until * demand.sum():
            rules.end()
        live &= near > 0 if pool.same and pool.scalable else True
        own, weights = np.where(live & rules.open, worth, 0.0), np.where(near > 0, demand, 0.0)
        if not (own.any() and weights.any()):
            break
        copies = apart if apart >= 0 or not chosen.size else 0.0  # small scales do not show them
        own, missing = own / own.max(), missing / weights.max()
        covered, weights = np.exp(near / -square), weights / weights.max()
        pairs = pool.n * pool.N
        with nullcontext() if pairs <= SMALL else one_blas_thread:
            S, now = (similarity or pool.similarity)(square), (own, weights, covered)
            if isinstance(S, Kept) and (pairs <= SMALL or pairs * rules.places() <= ANEW):
                state: Coverage | SmallCoverage = SmallCoverage(S, *now)
            else:
                state = Coverage(S, *now)
            found = _at_one_scale(pool, state, rules, live, per, missing, copies)
        chosen = np.concatenate([chosen, found])
        if (until < np.inf and not rules.met) or not (pool.scalable and rules.more()):
            break
        near = np.minimum(near, pool.nearest(found))
        farthest = near[live & rules.open] if pool.same else near
        misses = 0 if found.size else misses + 1
        square = min(square if found.size else square / 4, farthest.max(initial=0.0) or square)
    return chosen


def _at_one_scale(
    pool: MemoryPool,
    state: Coverage | SmallCoverage,
    rules: Rules,
    live: BoolArray,
    per: Per,
    missing: float,
    copies: float,
) -> IntArray:
    """Return candidates until there is no place, demand is met, or none adds more than rounding.

    live:    mask of candidates that may be chosen if the rules allow it; it changes.
    missing: demand that is to be covered.
    copies:  the squared distance from a chosen candidate up to which others are closed.
    """
    vector, chosen, least = state.similarity.vector, list[int](), -1.0
    tell = progress_of(state.similarity, max(rules.places(), 1), pool.is_part)
    price, met, flat = None, missing * (1 - NOTHING), False
    while True:
        if met < np.inf and not rules.met and state.amount >= met:
            rules.end()
        open_ = live & rules.open
        if rules.count >= rules.k or not np.count_nonzero(open_):
            break
        if per == "place" or (per == "cost" and price is None):
            price = vector(rules.prices(per == "place"), np.float64)
        item, gain = state.best(vector(open_, bool), price)
        value = gain if met < np.inf else float(state.worth[item]) * gain
        least = NOTHING * max(value, state.amount) if least < 0 else least
        if value <= least:
            if met == np.inf or flat:
                break
            state.worth, flat = (state.worth > 0) * 1.0, True  # others add more than the best
            continue
        rules.take(item)
        chosen.append(item)
        live[item] = False
        if rules.count < rules.k or met < np.inf:
            state.take(item)
        if copies >= 0:
            live &= ~pool.near(item, copies)
        tell(len(chosen))
    if met < np.inf and state.amount >= missing * (1 - 10 * NOTHING):  # as far as float32 tells
        rules.end()
    return np.array(chosen, dtype=np.int64)


def progress_of(similarity: Similarity, k: int, is_part: bool) -> Callable[[int], None]:
    """Return what logs how far a long choice of k candidates is, by items chosen.

    is_part: of a larger one: it is not announced, and in other threads and processes it is silent.
    """
    N = similarity.N
    begun, columns = expected_columns(0, N), expected_columns(k, N)
    silent = is_part and threading.current_thread() is not threading.main_thread()
    if silent or columns * similarity.n < PAIRS:
        return lambda chosen: None
    what = f"a covering set of {counted(k, 'item')} of {similarity.n:,}"
    progress = Progress(what, "" if is_part else ADVICE)
    return lambda chosen: progress((expected_columns(chosen, N) - begun) / (columns - begun))


def expected_columns(k: int, N: int) -> float:
    """Return about how many items are compared with all candidates for a set of k.

    If N is large, it is 4 N^0.6 √k, as it was within a third on five sets of 16,000 to 10⁶ items.
    """
    whole = N * (1.0 + math.log(k + 1))
    return whole if N <= WHOLE else min(whole, 4 * N**0.6 * math.sqrt(k))
