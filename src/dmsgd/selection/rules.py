"""What a covering set is asked to be, beside its size: groups, costs, coverage, duplicates.

`Wishes` are the arguments of `select`; the `Rules` made of them say who may still be chosen. What a
rule closes stays closed, so that one mask tells all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, final

import numpy as np

from dmsgd.errors import InputError
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, as_numbers
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.messages import counted, visible
from dmsgd.inputs.scalars import as_count, as_fraction, as_positive
from dmsgd.selection.pool import MemoryPool, Pool, least_scale

Metric = Literal["euclidean", "cosine", "precomputed"]
#: A budget may be exceeded by this share of it, which is rounding.
ROUNDING = 1e-12
#: Arguments that need another one, and why.
NEEDS = (
    ("budget", "costs", "a budget is in units of costs"),
    ("costs", "budget", "a budget is in units of costs"),
    ("at_most", "groups", "pass the group of each item"),
    ("at_least", "groups", "pass the group of each item"),
)
#: A number that was printed is less by this share at most.
PRINTED = 1e-5
#: Items that cost a smaller share of the dearest than this cost as much.
CHEAPEST = 1e-100


@final
@dataclass(frozen=True, eq=False)
class Wishes:
    """Arguments of `select` that how="greedy" does not take; None for what was not asked for."""

    cover: Any = None
    groups: Any = None
    at_most: Any = None
    at_least: Any = None
    costs: Any = None
    budget: Any = None
    until: Any = None
    duplicates: Any = None
    details: Any = None
    m: Any = None

    def check(self, k: int | None, how: str, metric: Metric) -> None:
        """Raise for combinations that have no meaning."""
        asked = {each.name for each in fields(self) if getattr(self, each.name) is not None}
        refused = asked - {"details", "m"} if how == "medoids" else asked
        if how != "cover" and refused:
            raise InputError(f"{min(refused)} needs how='cover', got how={how!r}", how="cover")
        if how != "cover" and metric == "precomputed":
            advice = "" if how == "medoids" else "; a k-DPP of a kernel matrix is dmsgd.KDPP(L, k)"
            raise InputError(
                f"how={how!r} needs rows of features, not similarities{advice}", how="cover"
            )
        if metric == "precomputed" and "m" in asked:
            raise InputError("m is for distances, and metric='precomputed' has similarities")
        if self.m is not None:
            as_positive(self.m, "m")
        if k is None and not asked & {"budget", "until"}:
            raise InputError("how many items? give k, budget or until")
        for one, other, why in NEEDS:
            if one in asked and other not in asked:
                raise InputError(f"{one} is given without {other}: {why}")
        if "groups" in asked and not {"at_most", "at_least"} & asked:
            raise InputError("groups are given without at_most or at_least; pass one of them")
        if "at_least" in asked and k is None and "budget" not in asked:
            raise InputError("at_least reserves places of k, or of a budget; give k or budget")
        if metric == "precomputed" and "cover" in asked:
            raise InputError(
                "cover needs rows of features; with metric='precomputed' the columns of X are what "
                "is covered, so give one column for each of those items"
            )

    def scale(self, pool: Pool, known: IntArray) -> float:
        """Return m of the similarity: the one that is given, or that of the pool."""
        m = pool.scale(known) if self.m is None else as_positive(self.m, "m")
        if self.m is None and not pool.sparse:
            return m
        least = least_scale(pool)
        if m >= (least if pool.sparse else min(least, pool.median)) * (1 - PRINTED):
            return m
        rows, advice = "rows are too far from their mean", "pass more"
        if pool.sparse:
            rows = "sparse rows are too far from zero"
            advice = "subtract the means of their largest columns, or pass dense rows"
        raise InputError(
            f"{rows} for m={m:.6g}: float32 shows their distances from m={least:.6g} on; {advice}"
        )

    def rules(
        self, X: Any, pool: Pool, k: int | None, free: BoolArray, known: IntArray, metric: Metric
    ) -> Rules:
        """Return who may be chosen, or raise where no set can be so."""
        costs, budget = self._costs(X, free)
        quotas = None if self.groups is None else self._quotas(X, k, free, known)
        places = int(np.count_nonzero(free)) if k is None else k
        if costs is not None and quotas is not None and quotas.least.any():
            if not isinstance(pool, MemoryPool):
                raise InputError("at_least with a budget needs a pool in memory; read it first")
            needed = float(quotas.reserve(costs, free)[0])
            if needed > budget * (1 + ROUNDING):
                raise InputError(
                    f"budget={budget:g} does not pay for the items of at_least: the cheapest cost "
                    f"{needed:g}"
                )
        until = np.inf
        if self.until is not None:
            until = as_positive(as_fraction(self.until, "until"), "until")
        return Rules(free, places, costs, budget, quotas, until, self._apart(metric, pool))

    def _costs(self, X: Any, free: BoolArray) -> tuple[FloatArray | None, float]:
        """Return what items cost, None if nothing, and the budget."""
        if self.costs is None:
            return None, np.inf
        costs = as_numbers(aligned(self.costs, X, "costs"), "costs", free.size)
        budget = as_positive(self.budget, "budget")
        if (costs <= 0).any():
            item = int(np.argmin(costs))
            raise InputError(f"costs must be positive, but item {item} costs {costs[item]:g}")
        if budget < (least := costs[free].min(initial=np.inf)):
            raise InputError(
                f"budget={budget:g} buys no item: the cheapest that can be chosen costs {least:g}"
            )
        return costs, budget

    def _quotas(self, X: Any, k: int | None, free: BoolArray, known: IntArray) -> Quotas:
        """Return how many items of each group may be chosen, and how many must be."""
        names, codes = as_classes(aligned(self.groups, X, "groups"), free.size, "groups")
        most = _per_group(self.at_most, names, free.size, "at_most")
        least = _per_group(self.at_least, names, 0, "at_least")
        most = np.maximum(most - np.bincount(codes[known], minlength=len(names)), 0)
        places = np.minimum(np.bincount(codes[free], minlength=len(names)), most)
        for group in np.flatnonzero(least > places):
            raise InputError(
                f"at_least asks for {least[group]:,} of group {visible(names[group])!r}, of which "
                f"{places[group]:,} can be chosen; ask for at most {places[group]:,}"
            )
        if k is not None and least.sum() > k:
            raise InputError(f"at_least asks for {least.sum():,} items in all, but k={k}; raise k")
        if k is not None and (count := int(places.sum())) < k:
            raise InputError(
                f"k={k} items are asked for, but at_most leaves {counted(count, 'item')}; ask for "
                f"at most {count:,}"
            )
        return Quotas(codes, most, least)

    def _apart(self, metric: Metric, pool: Pool) -> float:
        """Return the squared distance that chosen items must exceed; -1 if any will do."""
        if self.duplicates is None:
            return -1.0
        if metric == "precomputed" and not pool.same:
            raise InputError(
                f"duplicates needs similarities of candidates to each other, but X has "
                f"{pool.n:,} x {pool.N:,} numbers; leave it out, or pass an n x n matrix"
            )
        above = as_positive(as_fraction(self.duplicates, "duplicates"), "duplicates")
        if metric == "cosine":
            return 2 * (1 - above)
        return max(0.0, -float(np.log(above / pool.largest))) * pool.median

    def demand(self, quality: FloatArray, pool: Pool) -> FloatArray:
        """Return the weights of the items that are to be covered; quality where these are X."""
        if pool.same and self.cover is None:
            return quality
        rows, weights = self.split_cover()
        if weights is None:
            return np.ones(pool.N)
        weights = aligned(weights, rows, "weights", of="cover")
        found = as_numbers(weights, "the weights of cover", pool.N)
        if (found < 0).any() or not found.any():
            raise InputError("the weights of cover must be >= 0, and one of them above 0")
        return np.asarray(found / found.max())

    def split_cover(self) -> tuple[Any, Any]:
        """Return the rows to be covered and their weights, None if they have none."""
        pair = isinstance(self.cover, tuple) and len(self.cover) == 2
        return self.cover if pair else (self.cover, None)


def _per_group(value: Any, names: Any, default: int, option: str) -> IntArray:
    """Return one number per group, from one for all or a mapping of names."""
    if value is None:
        return np.full(len(names), default, dtype=np.int64)
    if not isinstance(value, Mapping):
        return np.full(len(names), as_count(value, option, least=0), dtype=np.int64)
    found, places = np.full(len(names), default, dtype=np.int64), {}
    for place, name in enumerate(names):
        places[name] = places[str(name)] = place
    named = set[int]()
    for name, number in value.items():
        if name not in places:
            raise InputError(f"{option} names the group {visible(name)!r}, which no item has")
        if places[name] in named:
            raise InputError(f"{option} names the group {visible(name)!r} twice")
        named.add(places[name])
        found[places[name]] = as_count(number, f"{option}[{name!r}]", least=0)
    return found


@final
class Rules:
    """Which items may be chosen next, after those that were taken.

    open:   (n,) mask.
    k:      places in all; count: of the items that were taken.
    costs:  (n,), or None; spent: their sum over the items that were taken.
    quotas: of groups, or None.
    until:  the share of demand at which the set is complete.
    met:    whether that share is covered.
    apart:  the squared distance that chosen items must exceed; -1 if any will do.
    """

    def __init__(
        self,
        open_: BoolArray,
        k: int,
        costs: FloatArray | None = None,
        budget: float = np.inf,
        quotas: Quotas | None = None,
        until: float = np.inf,
        apart: float = -1.0,
    ) -> None:
        self.open, self.k, self.costs, self.budget = open_.copy(), k, costs, budget
        self.quotas, self.until, self.apart, self.met = quotas, until, apart, False
        self.spent, self.count = 0.0, 0
        self._close()

    def of(self, items: IntArray, margin: float = 0.0) -> Rules:
        """Return what the rules still allow of these items alone; -1 is one that is not open.

        Of each group as many are needed, or all if there are fewer.

        margin: share of the rest that is to be covered, too, where a share of demand is.
        """
        open_ = self.open[items] & (items >= 0)
        k, budget = min(self.k - self.count, int(open_.sum())), self.budget - self.spent
        costs = None if self.costs is None else self.costs[items]
        quotas = None if self.quotas is None else self.quotas.of(items, open_)
        until = self.until if self.until >= 1 else self.until + margin * (1 - self.until)
        return Rules(open_, k, costs, budget, quotas, until, self.apart)

    def more(self) -> bool:
        """Return whether another item can be taken."""
        return self.count < self.k and bool(self.open.any())

    def lacks(self) -> int:
        """Return how many items groups must still have."""
        return 0 if self.quotas is None else int(self.quotas.least.sum())

    def end(self) -> None:
        """Leave no places but those of items that groups must still have."""
        self.met, self.k = True, self.count + self.lacks()
        self._close()

    def places(self) -> int:
        """Return a bound on how many more items can be taken: the least that one rule allows."""
        most = min(self.k - self.count, int(np.count_nonzero(self.open)))
        if self.costs is not None:
            paid = np.cumsum(np.sort(self.costs[self.open])) <= self._left()
            most = min(most, int(np.count_nonzero(paid)))
        if self.quotas is not None:
            there = np.bincount(self.quotas.codes[self.open], minlength=len(self.quotas.most))
            most = min(most, int(np.minimum(there, self.quotas.most).sum()))
        return most

    def prices(self, fair: bool) -> FloatArray:
        """Return the costs as shares of the largest, which no rounding makes zero.

        fair: whether items cost at least what is left of the budget for each place that is left.
        """
        assert self.costs is not None
        dearest = float(self.costs.max())
        least = min(self._left() / (self.k - self.count), dearest) / dearest if fair else 0.0
        return np.maximum(self.costs / dearest, max(least, CHEAPEST))

    def _left(self) -> float:
        """Return what is left of the budget."""
        return self.budget * (1 + ROUNDING) - self.spent

    def _affordable(self) -> Any:
        """Return what the next item may cost, so that what groups must have can be paid, too."""
        left = self._left()
        if self.costs is None or self.quotas is None or not self.lacks():
            return left
        needed, dearest = self.quotas.reserve(self.costs, self.open)
        return np.maximum(left - needed, 0.0) + dearest[self.quotas.codes]

    def take(self, *items: int) -> None:
        """Take items that can be chosen together."""
        for item in items:
            self.open[item] = False
            self.count += 1
            if self.costs is not None:
                self.spent += float(self.costs[item])
            if self.quotas is not None:
                group = self.quotas.codes[item]
                self.quotas.most[group] -= 1
                self.quotas.least[group] = max(self.quotas.least[group] - 1, 0)
        self._close()

    def _close(self) -> None:
        """Close what no rule allows any more."""
        if self.costs is not None:
            self.open &= self.costs <= self._affordable()
        if (quotas := self.quotas) is not None:
            # Once groups need all places that are left, only these groups get them.
            needed = quotas.least > 0 if self.lacks() >= self.k - self.count else True
            self.open &= ((quotas.most > 0) & needed)[quotas.codes]


@final
class Quotas(NamedTuple):
    """At most and at least so many items of each group, of those that are not taken yet.

    codes: (n,) the group of each item; most, least: (groups,).
    """

    codes: IntArray
    most: IntArray
    least: IntArray

    def of(self, items: IntArray, open_: BoolArray) -> Quotas:
        """Return the quotas of these items alone, of which some are open."""
        groups, codes = np.unique(self.codes[items], return_inverse=True)
        there = np.bincount(codes[open_], minlength=groups.size)
        least = np.minimum(self.least[groups], there)
        return Quotas(codes, self.most[groups], least)

    def reserve(self, costs: FloatArray, open_: BoolArray) -> tuple[float, FloatArray]:
        """Return what the cheapest open items cost that groups must have, and the dearest of each.

        The second is 0 for groups that need none.
        """
        items = np.flatnonzero(open_ & (self.least[self.codes] > 0))
        items = items[np.lexsort((costs[items], self.codes[items]))]
        groups = self.codes[items]
        ranks = np.arange(items.size) - np.searchsorted(groups, groups)
        cheapest = ranks < self.least[groups]
        dearest = np.zeros(self.least.size)
        np.maximum.at(dearest, groups[cheapest], costs[items[cheapest]])
        return float(costs[items[cheapest]].sum()), dearest
