"""One chosen set beside random sets and k-means, in figures and words."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import final

import numpy as np

from dmsgd.features import Features, as_features
from dmsgd.features.products import squared_distances
from dmsgd.inputs.arrays import FloatArray, IntArray, random_rows
from dmsgd.inputs.messages import counted
from dmsgd.kernels.landmarks import k_means
from dmsgd.kernels.rbf import median_scale
from dmsgd.report.page import evenly_spaced
from dmsgd.selection.result import LONGEST, Selection, coverage_of

#: Random sets that the chosen one is compared with: it beats all of them by chance in 1 of 21.
SETS = 20
#: About as many products are spent on distances, for at most so many items; on k-means, of so many.
PRODUCTS, MOST, MEANS, CLUSTERED = 5e9, 20_000, 5e9, 5000


@final
@dataclass(frozen=True, eq=False)
class SetFigures:
    """What a set covers, and how far apart its items are.

    how:    it was chosen: to "cover", "greedy" or as a "draw".
    chosen: the set and what it covers.
    given, free: items that were given, and those that could be chosen, sorted.
    apart:  mean distance of a chosen item to the nearest other one, in median distances: of the
            set and of SETS random ones; empty for a covering set and for one item.
    other:  the name of what it is to cover, if that is not the pool that it was chosen from.
    """

    how: str
    chosen: Selection
    given: IntArray
    free: IntArray
    apart: FloatArray
    other: str = ""

    def sentences(self) -> list[str]:
        """Return how the set compares with random ones, what it was made for first."""
        covered, size = self._coverage(), self.chosen.like_random
        if self.how == "cover":
            return covered
        if not self.apart.size:
            return ["one item alone is not spread", *covered]
        ours, *theirs = self.apart
        words = f"{'better' if ours > max(theirs) else 'no better'} spread than a random choice"
        if self.how == "greedy" and 0 < size < len(self.chosen):
            covered[0] += ": a greedy set prefers outliers"
        return [
            f"{words}: a chosen item is {ours:.2f} of the median distance from the nearest other "
            f"one, in {SETS} random sets {min(theirs):.2f} to {max(theirs):.2f}",
            *covered,
        ]

    def _coverage(self) -> list[str]:
        """Return how many random items cover as much, and how much that is."""
        chosen, size = self.chosen, self.chosen.like_random
        share = f"{chosen.coverage[-1]:.3g}"
        if not len(chosen):
            return [f"nothing is chosen: of the demand {share} is covered already"]
        beside = f"beside {self.given.size:,} given, " if self.given.size else ""
        many = f"{size:,} random one{'s' * (size > 1)}" if size else f"{LONGEST:,} random ones"
        as_well = "as well as" if size else "better than"
        scale = f" (m = {chosen.scale:.3g})" if chosen.scale != 1 else ""  # 1: none was needed
        before = f", before them {chosen.coverage[0]:.3g}" if self.given.size else ""
        return [
            f"{beside}{counted(len(chosen), 'item')} cover{'s' * (len(chosen) == 1)} "
            f"{self.other or 'the pool'} {as_well} {many}",
            f"on average an item is {share} similar to the nearest one{scale}{before}",
        ]


def figures_of(
    F: Features | None, chosen: Selection, given: IntArray, free: IntArray, how: str, other: str
) -> SetFigures:
    """Return how a set compares with random sets of as many free items.

    F: features of the items; without them distances are not known.
    """
    apart = np.empty(0)
    if F is not None and how != "cover" and len(chosen) and len(chosen) + given.size > 1:
        rng = np.random.default_rng(0)
        random = (rng.choice(free, len(chosen), replace=False) for _ in range(SETS))
        sets = [np.append(given, some) for some in (chosen.items, *random)]
        items = np.unique(np.concatenate(sets))
        rows = F.take(items)
        most = int(np.clip(PRODUCTS / (SETS * sets[0].size * F.d), 1000, MOST))
        own = given.size + random_rows(len(chosen), most, rng)
        apart = np.array([_apart(rows[np.searchsorted(items, some)], own) for some in sets])
        with suppress(ValueError):  # all items that it looks at are alike
            apart /= median_scale(F)
    return SetFigures(how, chosen, given, free, apart, other)


def _apart(rows: FloatArray, own: IntArray) -> float:
    """Return the mean distance of the rows `own` to the nearest other one."""
    squares = squared_distances(rows[own], rows)
    squares[np.arange(own.size), own] = np.inf
    return float(np.sqrt(squares.min(axis=1)).mean())


def k_means_coverage(F: Features, chosen: Selection, free: IntArray) -> float | None:
    """Return what as many items cover that are nearest to centres of k-means; None if too many."""
    candidates, k = free[evenly_spaced(free.size, CLUSTERED)], len(chosen)
    work = float(candidates.size) * k * F.d
    if not 0 < k <= candidates.size // 2 or work > MEANS or find_spec("sklearn") is None:
        return None
    rows = F.take(candidates)
    means = k_means(as_features(rows, allow_tiny=True), k, 0)
    nearest = squared_distances(rows, means.cluster_centers_).argmin(axis=0)
    return coverage_of(chosen, candidates[np.unique(nearest)])
