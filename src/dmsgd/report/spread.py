"""One chosen set beside random sets, in figures and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.features import Features
from dmsgd.features.rows import squared_distances
from dmsgd.inputs.arrays import FloatArray, IntArray, random_rows
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.kernels.rbf import median_scale
from dmsgd.selection.selection import LONGEST, Selection

#: Random sets that the chosen one is compared with: it beats all of them by chance in 1 of 21.
SETS = 20
#: About as many products are spent on distances, for at least and at most so many items.
PRODUCTS, FEWEST, MOST = 5e9, 1000, 20_000
#: What is measured of a set, in shares of the median distance.
APART, COVERED, FAR = (
    "From a chosen item to the nearest other one, mean",
    "From any item to the nearest chosen one, mean",
    "The same of the least covered twentieth",
)


@final
@dataclass(frozen=True, eq=False)
class Spread:
    """How far apart the items of a set are and how well they cover the others.

    how:      the set was chosen: to "cover", "greedy" or as a "draw".
    figures:  by name, of the set and then of SETS random ones.
    measured: items for which the nearest item of the set is known: all or a sample.
    far:      how far that is: the distance, as a share of the median distance between two items;
              for a covering set 1 - the similarity.
    nearest:  the place of that nearest item among the given and then the chosen items.
    covering: what a covering set covers; known: how many items were given.
    other:    the name of what it is to cover, if that is not the pool that it was chosen from.
    """

    how: str
    figures: dict[str, FloatArray]
    measured: IntArray
    far: FloatArray
    nearest: IntArray
    covering: Selection | None = None
    known: int = 0
    other: str = ""

    def words(self) -> str:
        """Return how the set compares with random ones."""
        apart = covered = ""
        if APART in self.figures:
            ours, *theirs = self.figures[APART]
            apart = (
                f"a chosen item is {ours:.2f} of the median distance from the nearest other one, "
                f"in {SETS} random sets {min(theirs):.2f} to {max(theirs):.2f}"
            )
        if self.covering is not None:
            return "; ".join(filter(None, (self._coverage(self.covering), apart)))
        if not apart:
            return "one item alone is not spread"
        words = f"{'better' if ours > max(theirs) else 'no better'} spread than a random choice"
        mean, *others = self.figures[COVERED]
        if mean > max(others):
            covered = "; it prefers outliers:"
        elif round(mean, 2) < round(min(others), 2):
            covered = "; it covers the others better:"
        elif self.how == "draw":
            covered = ";"
        if covered:
            covered += (
                f" an item is {mean:.2f} from the nearest chosen one, and {min(others):.2f} to "
                f"{max(others):.2f} in random sets"
            )
        return f"{words}: {apart}{covered}"

    def _coverage(self, covering: Selection) -> str:
        """Return how many random items cover as much, and how much that is."""
        beside = f" beside {self.known:,} given" if self.known else ""
        share = f"{covering.coverage[-1]:.3g}"
        scale = f" (m = {covering.scale:.3g})" if covering.scale != 1 else ""  # 1: none was needed
        if not len(covering):
            return f"nothing is chosen: of the demand {share} is covered already"
        cover = f"cover{'s' * (len(covering) == 1)} {self.other or 'the pool'}"
        return (
            f"{counted(len(covering), 'item')}{beside} {cover} as well as "
            f"{random_count(covering)}; on average an item is {share} similar to the nearest "
            f"one{scale}"
        )


def random_count(covering: Selection) -> str:
    """Return how many random items cover as much, in words."""
    size = covering.like_random
    if not size:
        return f"more than {LONGEST:,} random ones"
    return f"{size:,} random one{'s' * (size > 1)}"


def compare_with_random(
    F: Features, chosen: IntArray, given: IntArray, free: IntArray, how: str, seed: Seed = 0
) -> Spread:
    """Return how well `chosen` and `given` are spread, beside random sets of as many free items.

    Of many items a random sample is measured.
    """
    rng = np.random.default_rng(seed_key(seed))
    most = _measurable(F, given.size + chosen.size)
    measured = random_rows(F.n, most, rng)
    sets = _random_sets(chosen, given, free, rng)
    rows, places = _rows(F, [measured, *sets])
    unit, own = _median(F), given.size + random_rows(chosen.size, most, rng)

    def nearest(some: IntArray) -> tuple[dict[str, float], FloatArray, IntArray]:
        squares = squared_distances(rows[places[0]], rows[some])
        place = squares.argmin(axis=1)
        distance = np.sqrt(squares[np.arange(measured.size), place]) / unit
        far = np.sort(distance)[-max(1, distance.size // 20) :]
        found = {COVERED: float(distance.mean()), FAR: float(far.mean())}
        if some.size > 1:
            found = {APART: _apart(rows[some], own) / unit, **found}
        return found, distance, place

    (ours, distance, place), *random = (nearest(some) for some in places[1:])
    figures = {name: np.array([ours[name], *(each[0][name] for each in random)]) for name in ours}
    return Spread(how, figures, measured, distance, place)


def describe_covering(
    F: Features | None,
    covering: Selection,
    given: IntArray,
    free: IntArray,
    other: str = "",
    seed: Seed = 0,
) -> Spread:
    """Return what a covering set covers, and how far apart its items are beside random ones.

    F:     features of the items; without them distances are not known.
    other: the name of what the set is to cover, if that is not the pool.
    """
    chosen, figures = covering.items, {}
    if F is not None and chosen.size and chosen.size + given.size > 1:
        rng = np.random.default_rng(seed_key(seed))
        rows, places = _rows(F, _random_sets(chosen, given, free, rng))
        most = _measurable(F, given.size + chosen.size)
        own = given.size + random_rows(chosen.size, most, rng)
        figures[APART] = np.array([_apart(rows[some], own) for some in places]) / _median(F)
    return Spread(
        "cover", figures, np.arange(covering.nearest.size), 1 - covering.similarity,
        covering.nearest, covering, given.size, other,
    )  # fmt: skip


def _measurable(F: Features, size: int) -> int:
    """Return of how many items the distances to SETS sets of this size are found."""
    return int(np.clip(PRODUCTS / (SETS * size * F.d), FEWEST, MOST))


def _random_sets(
    chosen: IntArray, given: IntArray, free: IntArray, rng: np.random.Generator
) -> list[IntArray]:
    """Return the chosen set and SETS random ones, each after the given items."""
    random = (rng.choice(free, chosen.size, replace=False) for _ in range(SETS))
    return [np.append(given, some) for some in (chosen, *random)]


def _rows(F: Features, lists: list[IntArray]) -> tuple[Any, list[IntArray]]:
    """Return the rows that are in any of the lists, read at once, and where those of each are."""
    items = np.unique(np.concatenate(lists))
    return F.take(items), [np.searchsorted(items, some) for some in lists]


def _median(F: Features) -> float:
    """Return the median distance between two items."""
    try:
        return median_scale(F)
    except ValueError:  # all items that it looks at are alike
        return 1.0


def _apart(rows: Any, own: IntArray) -> float:
    """Return the mean distance of the rows `own` to the nearest other one."""
    squares = squared_distances(rows[own], rows)
    squares[np.arange(own.size), own] = np.inf
    return float(np.sqrt(squares.min(axis=1)).mean())
