"""Who may still be chosen: quotas of groups, a budget, and how many items.

What a rule closes stays closed, so that one mask tells all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from dmsgd.errors import InputError
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, as_numbers
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.messages import counted, visible
from dmsgd.inputs.scalars import as_count, as_positive

#: A budget may be exceeded by this share of it, which is rounding.
ROUNDING = 1e-12
#: Items that cost a smaller share of the dearest than this cost as much.
CHEAPEST = 1e-100


@final
class Rules:
    """Which items may be chosen next, after those that were taken.

    open:  (n,) mask.
    k:     places in all.
    costs: (n,), or None; spent: their sum over the items that were taken.
    codes: (n,) group of each item, or None; most, least: of each group.
    """

    def __init__(
        self,
        open_: BoolArray,
        k: int,
        costs: FloatArray | None = None,
        budget: float = np.inf,
        quotas: Quotas | None = None,
    ) -> None:
        self.open, self.k, self.costs, self.budget = open_.copy(), k, costs, budget
        self.quotas = quotas.copy() if quotas is not None else None
        self.spent, self.count = 0.0, 0
        self._close()

    def copy(self) -> Rules:
        """Return the same rules for another choice, of which nothing is taken yet."""
        return Rules(self.open, self.k, self.costs, self.budget, self.quotas)

    def of(self, items: IntArray) -> Rules:
        """Return what the rules still allow of these items alone; -1 is one that is not open.

        Of each group as many are needed, or all if there are fewer.
        """
        open_ = self.open[items] & (items >= 0)
        k, budget = min(self.k - self.count, int(open_.sum())), self.budget - self.spent
        costs = None if self.costs is None else self.costs[items]
        quotas = None if self.quotas is None else self.quotas.of(items, open_)
        return Rules(open_, k, costs, budget, quotas)

    def more(self) -> bool:
        """Return whether another item can be taken."""
        return self.count < self.k and bool(self.open.any())

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

    def take(self, item: int) -> None:
        """Take an item that is open."""
        self.take_all([item])

    def take_all(self, items: list[int]) -> None:
        """Take items that can be chosen together."""
        for item in items:
            self.open[item] = False
            self.count += 1
            if self.costs is not None:
                self.spent += float(self.costs[item])
            if self.quotas is not None:
                self.quotas.take(int(self.quotas.codes[item]))
        self._close()

    def _close(self) -> None:
        """Close what no rule allows any more."""
        if self.costs is not None:
            self.open &= self.costs <= self._left()
        if self.quotas is not None:
            self.open &= self.quotas.allowed(self.k - self.count)[self.quotas.codes]


@final
class Quotas:
    """At most and at least so many items of each group.

    names: of the groups; codes: (n,) the group of each item.
    """

    def __init__(self, names: Any, codes: IntArray, most: IntArray, least: IntArray) -> None:
        self.names, self.codes, self.most, self.least = names, codes, most, least

    def copy(self) -> Quotas:
        """Return quotas that another choice may use up."""
        return Quotas(self.names, self.codes, self.most.copy(), self.least.copy())

    def of(self, items: IntArray, open_: BoolArray) -> Quotas:
        """Return the quotas of these items alone, of which some are open."""
        groups, codes = np.unique(self.codes[items], return_inverse=True)
        there = np.bincount(codes[open_], minlength=groups.size)
        least = np.minimum(self.least[groups], there)
        return Quotas(self.names[groups], codes, self.most[groups], least)

    def take(self, group: int) -> None:
        """Count an item of a group."""
        self.most[group] -= 1
        self.least[group] = max(self.least[group] - 1, 0)

    def allowed(self, places: int) -> BoolArray:
        """Return which groups may get the next of so many places.

        Once all of them are needed, that is groups that have fewer than they must have.
        """
        needed = self.least > 0 if self.least.sum() >= places else True
        return np.asarray((self.most > 0) & needed)


def as_quotas(
    groups: Any,
    at_most: Any,
    at_least: Any,
    n: int,
    k: int | None,
    free: BoolArray,
    known: IntArray,
) -> Quotas:
    """Return quotas as users pass them, or raise where no set of k items can keep them."""
    names, codes = as_classes(groups, n, "groups")
    most = _per_group(at_most, names, n, "at_most")
    least = _per_group(at_least, names, 0, "at_least")
    most = np.maximum(most - np.bincount(codes[known], minlength=len(names)), 0)
    there = np.bincount(codes[free], minlength=len(names))
    for group in np.flatnonzero(least > np.minimum(there, most)):
        can = int(min(there[group], most[group]))
        raise InputError(
            f"at_least asks for {least[group]:,} of group {visible(names[group])!r}, of which "
            f"{can:,} can be chosen; ask for at most {can:,}"
        )
    if k is None:
        return Quotas(names, codes, most, least)
    if least.sum() > k:
        raise InputError(f"at_least asks for {least.sum():,} items in all, but k={k}; raise k")
    if (places := int(np.minimum(there, most).sum())) < k:
        raise InputError(
            f"k={k} items are asked for, but at_most leaves {counted(places, 'item')}; ask for at "
            f"most {places:,}"
        )
    return Quotas(names, codes, most, least)


def _per_group(value: Any, names: Any, default: int, option: str) -> IntArray:
    """Return one number per group, from one for all or a mapping of names."""
    if value is None:
        return np.full(len(names), default, dtype=np.int64)
    if not isinstance(value, Mapping):
        return np.full(len(names), as_count(value, option, least=0), dtype=np.int64)
    found, places = np.full(len(names), default, dtype=np.int64), {}
    for place, name in enumerate(names):
        places[name] = places[str(name)] = place
    for name, number in value.items():
        if name not in places:
            raise InputError(f"{option} names the group {visible(name)!r}, which no item has")
        found[places[name]] = as_count(number, f"{option}[{name!r}]", least=0)
    return found


def as_costs(costs: Any, budget: Any, n: int, free: BoolArray) -> tuple[FloatArray, float]:
    """Return costs and a budget in their units, or raise where nothing can be bought."""
    found, most = as_numbers(costs, "costs", n), as_positive(budget, "budget")
    if (found <= 0).any():
        item = int(np.argmin(found))
        raise InputError(f"costs must be positive, but item {item} costs {found[item]:g}")
    if most < (least := found[free].min(initial=np.inf)):
        raise InputError(
            f"budget={most:g} buys no item: the cheapest that can be chosen costs {least:g}"
        )
    return found, most
