"""One chosen set beside random sets, in figures and words, and the page about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.diagnostics.data import commonest_and_rarest
from dmsgd.features import Features
from dmsgd.features.rows import product, squared_distances
from dmsgd.inputs.arrays import FloatArray, IntArray, random_rows
from dmsgd.inputs.messages import visible
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.kernels.rbf import median_scale
from dmsgd.report.items import NAME, snippet, to_unit_square
from dmsgd.spectra.decompose import leading

#: Random sets that the chosen one is compared with: it beats all of them by chance in 1 of 21.
SETS = 20
#: About as many products are spent on distances, for at least and at most so many items.
PRODUCTS, FEWEST, MOST = 5e9, 1000, 20_000
#: Items on the map and those that decide its axes; items in lists, and classes.
DOTS, AXES, LISTED, FARTHEST, CLASSES = 3000, 500, 1000, 12, 30
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

    figures:  by name, of the set and then of SETS random ones.
    measured: items whose distance to the nearest item of the set was measured: all or a sample.
    distance: that distance, as a share of the median distance between two items.
    nearest:  the place of that nearest item among the given and then the chosen items.
    """

    figures: dict[str, FloatArray]
    measured: IntArray
    distance: FloatArray
    nearest: IntArray

    def words(self) -> str:
        """Return whether the set is better spread than random ones, and whether it covers less."""
        if APART not in self.figures:
            return "one item alone is not spread"
        ours, *theirs = self.figures[APART]
        covered, *others = self.figures[COVERED]
        words = (
            f"{'better' if ours > max(theirs) else 'no better'} spread than a random choice: a "
            f"chosen item is {ours:.2f} of the median distance from the nearest other one, in "
            f"{SETS} random sets {min(theirs):.2f} to {max(theirs):.2f}"
        )
        if covered > max(others):
            words += "; it prefers outliers: random sets are nearer to the other items"
        if round(covered, 2) < round(min(others), 2):
            words += (
                f"; it covers the others better: they are {covered:.2f} from the nearest chosen "
                f"item, and {min(others):.2f} to {max(others):.2f} in random sets"
            )
        return words


def compare_with_random(
    F: Features, chosen: IntArray, given: IntArray, free: IntArray, seed: Seed = 0
) -> Spread:
    """Return how well `chosen` and `given` are spread, beside random sets of as many free items.

    Of many items a random sample is measured.
    """
    rng = np.random.default_rng(seed_key(seed))
    size = given.size + chosen.size
    most = int(np.clip(PRODUCTS / (SETS * size * F.d), FEWEST, MOST))
    measured = random_rows(F.n, most, rng)
    rows = F.take(measured)
    try:
        unit = median_scale(F)
    except ValueError:  # all items that it looks at are alike
        unit = 1.0

    def nearest(items: IntArray) -> tuple[dict[str, float], FloatArray, IntArray]:
        everyone = np.append(given, items)
        set_rows = F.take(everyone)
        squares = squared_distances(rows, set_rows)
        place = squares.argmin(axis=1)
        distance = np.sqrt(squares[np.arange(measured.size), place]) / unit
        far = np.sort(distance)[-max(1, distance.size // 20) :]
        found = {COVERED: float(distance.mean()), FAR: float(far.mean())}
        if size > 1:
            own = given.size + random_rows(chosen.size, most, rng)
            squares = squared_distances(set_rows[own], set_rows)
            squares[np.arange(own.size), own] = np.inf
            apart = float(np.sqrt(squares.min(axis=1)).mean() / unit)
            found = {APART: apart, **found}
        return found, distance, place

    ours, distance, place = nearest(chosen)
    random = [nearest(rng.choice(free, chosen.size, replace=False))[0] for _ in range(SETS)]
    figures = {name: np.array([each[name] for each in (ours, *random)]) for name in ours}
    return Spread(figures, measured, distance, place)


def build_selection(
    F: Features,
    chosen: IntArray,
    given: IntArray,
    free: IntArray,
    spread: Spread,
    about: Mapping[str, Any],
    facts: dict[str, str],
) -> dict[str, Any]:
    """Return what the page shows of the `chosen` items, in their order.

    free:  items that could be chosen, sorted.
    about: by name, "id", "label", "quality" and "text" of all n items, each optional.
    facts: for the top of the page.
    """
    counts = np.bincount(spread.nearest, minlength=given.size + chosen.size)[given.size :]
    others = np.flatnonzero(~np.isin(spread.measured, np.append(given, chosen)))
    far = others[np.argsort(-spread.distance[others], kind="stable")][:FARTHEST]
    return {
        "n": F.n,
        "measured": int(spread.measured.size),
        "k": int(chosen.size),
        "given": int(given.size),
        "facts": facts,
        "words": spread.words(),
        "sets": SETS,
        "most_classes": CLASSES,
        "figures": [
            {
                "name": name,
                "chosen": f"{found[0]:.3f}",
                "random": f"{found[1:].mean():.3f}",
                "range": f"{found[1:].min():.3f} to {found[1:].max():.3f}",
            }
            for name, found in spread.figures.items()
        ],
        "classes": _classes(chosen, free, about["label"]) if "label" in about else [],
        "dots": _dots(F, chosen, given, spread.measured),
        "set": [
            _entry(item, about, f"{count / spread.measured.size:.1%}")
            for item, count in zip(chosen[:LISTED].tolist(), counts, strict=False)
        ],
        "farthest": [
            _entry(int(spread.measured[i]), about, f"{spread.distance[i]:.2f}") for i in far
        ],
    }


def _classes(chosen: IntArray, free: IntArray, labels: Any) -> list[dict[str, Any]]:
    """Return the classes, commonest first: items, how many are chosen, how many would be."""
    names, codes, items = np.unique(labels[free], return_inverse=True, return_counts=True)
    drawn = np.bincount(codes[np.searchsorted(free, chosen)], minlength=names.size)
    expected = chosen.size * items / free.size
    widest = float(max(drawn.max(), expected.max()))
    return [
        {
            "name": visible(names[c], NAME),
            "size": int(items[c]),
            "chosen": int(drawn[c]),
            "random": float(expected[c]),
            "widths": (70 * drawn[c] / widest, 70 * expected[c] / widest),
        }
        for c in commonest_and_rarest(items, CLASSES)
    ]


def _dots(
    F: Features, chosen: IntArray, given: IntArray, measured: IntArray
) -> list[dict[str, Any]]:
    """Return groups of places on the map, 0 to 1000 by 0 to 600: all items, chosen, given."""
    plain = measured[:: -(-measured.size // DOTS)]
    groups = {"plain": plain, "chosen": chosen[:DOTS], "given": given[:DOTS]}
    axes = F.take(plain[:: -(-plain.size // AXES)])
    products = product(axes, axes.T)
    products = products - products.mean(axis=0)
    products = products - products.mean(axis=1)[:, None]
    plane = product(axes.T, leading(products, min(2, len(products))))
    rows = F.take(np.concatenate(list(groups.values())))
    places = 12 + to_unit_square(product(rows, plane)) * [976, 576]
    ends = np.cumsum([group.size for group in groups.values()])[:-1]
    parts = np.split(places.round(1), ends)
    return [
        {"name": name, "radius": 2.5 if name == "plain" else 5, "places": part.tolist()}
        for name, part in zip(groups, parts, strict=True)
    ]


def _entry(item: int, about: Mapping[str, Any], value: str) -> dict[str, Any]:
    """Return one line of a list."""
    known = {name: snippet(column[item]) for name, column in about.items()}
    if "quality" in about:
        known["quality"] = f"{about['quality'][item]:.3g}"
    return {"id": "", "label": "", "quality": "", "text": "", **known, "item": item, "value": value}
