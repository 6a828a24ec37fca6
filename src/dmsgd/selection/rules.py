"""Who may still be chosen: quotas of groups, a budget, and how many items.

What a rule closes stays closed, so that one mask tells all.
"""

from __future__ import annotations

from typing import final

import numpy as np

from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray

#: A budget may be exceeded by this share of it, which is rounding.
ROUNDING = 1e-12
#: Items that cost a smaller share of the dearest than this cost as much.
CHEAPEST = 1e-100


@final
class Rules:
    """Which items may be chosen next, after those that were taken.

    open:   (n,) mask.
    k:      places in all; count: of the items that were taken.
    costs:  (n,), or None; spent: their sum over the items that were taken.
    quotas: of groups, or None.
    until:  the share of demand at which the set is complete.
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
        self.quotas = quotas.copy() if quotas is not None else None
        self.until, self.apart = until, apart
        self.spent, self.count = 0.0, 0
        self._close()

    def copy(self) -> Rules:
        """Return the same rules for another choice, of which nothing is taken yet."""
        limits = self.budget, self.quotas, self.until, self.apart
        return Rules(self.open, self.k, self.costs, *limits)

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

    def take(self, *items: int) -> None:
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

    codes: (n,) the group of each item; most, least: (groups,).
    """

    def __init__(self, codes: IntArray, most: IntArray, least: IntArray) -> None:
        self.codes, self.most, self.least = codes, most, least

    def copy(self) -> Quotas:
        """Return quotas that another choice may use up."""
        return Quotas(self.codes, self.most.copy(), self.least.copy())

    def of(self, items: IntArray, open_: BoolArray) -> Quotas:
        """Return the quotas of these items alone, of which some are open."""
        groups, codes = np.unique(self.codes[items], return_inverse=True)
        there = np.bincount(codes[open_], minlength=groups.size)
        least = np.minimum(self.least[groups], there)
        return Quotas(codes, self.most[groups], least)

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
