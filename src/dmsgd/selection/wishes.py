"""What a covering set is asked to be, beside its size: groups, costs, coverage, duplicates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, final

import numpy as np

from dmsgd.errors import InputError
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import BoolArray, FloatArray, IntArray, as_numbers
from dmsgd.inputs.scalars import as_fraction
from dmsgd.selection.pool import Pool
from dmsgd.selection.rules import Quotas, as_costs, as_quotas

Metric = Literal["euclidean", "cosine", "precomputed"]


@final
@dataclass(frozen=True, eq=False)
class Wishes:
    """Arguments of `select` that only how="cover" takes; None for what was not asked for."""

    cover: Any = None
    groups: Any = None
    at_most: Any = None
    at_least: Any = None
    costs: Any = None
    budget: Any = None
    until: Any = None
    duplicates: Any = None
    details: Any = None

    def check(self, k: int | None, how: str, metric: Metric) -> None:
        """Raise for combinations that have no meaning."""
        asked = {each.name for each in fields(self) if getattr(self, each.name) is not None}
        refused = asked - {"details"} if how == "medoids" else asked
        if how != "cover" and refused:
            raise InputError(f"{min(refused)} needs how='cover', got how={how!r}", how="cover")
        if how != "cover" and metric == "precomputed":
            advice = "" if how == "medoids" else "; a k-DPP of a kernel matrix is dmsgd.KDPP(L, k)"
            raise InputError(
                f"how={how!r} needs rows of features, not similarities{advice}", how="cover"
            )
        if k is None and not asked & {"budget", "until"}:
            raise InputError("how many items? give k, budget or until")
        for one, other in (("budget", "costs"), ("costs", "budget")):
            if one in asked and other not in asked:
                raise InputError(f"{one} is given without {other}: a budget is in units of costs")
        for one in {"at_most", "at_least"} & asked:
            if "groups" not in asked:
                raise InputError(f"{one} is given without groups; pass the group of each item")
        if "groups" in asked and not {"at_most", "at_least"} & asked:
            raise InputError("groups are given without at_most or at_least; pass one of them")
        if "at_least" in asked and (k is None or "budget" in asked):
            raise InputError("at_least reserves places of k; give k, and no budget")
        if metric == "precomputed" and "cover" in asked:
            raise InputError(
                "cover needs rows of features; with metric='precomputed' the columns of X are what "
                "is covered, so give one column for each of those items"
            )

    def quotas(
        self, X: Any, n: int, k: int | None, free: BoolArray, known: IntArray
    ) -> Quotas | None:
        """Return how many items of each group may be chosen."""
        if self.groups is None:
            return None
        groups = aligned(self.groups, X, "groups")
        return as_quotas(groups, self.at_most, self.at_least, n, k, free, known)

    def prices(self, X: Any, n: int, free: BoolArray) -> tuple[FloatArray | None, float]:
        """Return what items cost, None if nothing, and the budget."""
        if self.costs is None:
            return None, np.inf
        return as_costs(aligned(self.costs, X, "costs"), self.budget, n, free)

    def share(self) -> float:
        """Return the share of demand at which the set is complete; infinite if there is none."""
        if self.until is None:
            return np.inf
        if (share := as_fraction(self.until, "until")) == 0:
            raise InputError("until must be above 0: the share of demand that is to be covered")
        return share

    def apart(self, metric: Metric, square: float, largest: float) -> float:
        """Return the squared distance that chosen items must exceed; -1 if any will do.

        square: m of the similarity; largest: of the similarities that are given.
        """
        if self.duplicates is None:
            return -1.0
        if (above := as_fraction(self.duplicates, "duplicates")) == 0:
            raise InputError("duplicates must be above 0: a similarity such as 0.995")
        if metric == "cosine":
            return 2 * (1 - above)
        return max(0.0, -float(np.log(above / largest))) * square

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
