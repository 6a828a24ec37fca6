"""One chosen set beside random sets: figures, words, and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.features import Features
from dmsgd.inputs.arrays import FloatArray, IntArray, evenly_spaced
from dmsgd.inputs.labels import commonest_and_rarest
from dmsgd.inputs.messages import counted, visible
from dmsgd.report.page import NAME, Items, map_dots, render
from dmsgd.selection.result import LONGEST, Selection

#: Items on the map and in lists, and classes.
DOTS, LISTED, FARTHEST, CLASSES = 1500, 200, 12, 24
#: Shares of the items that are drawn as near and as far.
NEAR, FAR = 0.6, 0.95
#: Points of a curve; the edges of its picture.
POINTS, LEFT, RIGHT, TOP, BOTTOM = 160, 64, 940, 14, 270


@final
@dataclass(frozen=True, eq=False)
class SetFigures:
    """What a set covers, beside random sets of as many free items."""

    chosen: Selection
    given: IntArray  # items that were there before, sorted
    free: IntArray  # items that could be chosen, sorted
    greedy: bool  # it was chosen to be diverse, not to cover
    other: str = ""  # what the set is to cover, if that is not the pool that it was chosen from

    def sentences(self) -> list[str]:
        """Return how many random items cover as much, and how much that is."""
        chosen, size, what = self.chosen, self.chosen.like_random, self.other or "the pool"
        share = f"{chosen.coverage[-1]:.3g}"
        if not len(chosen):
            return [f"nothing is chosen: {share} of {what} is covered already"]
        beside = f"beside {self.given.size:,} given, " if self.given.size else ""
        many = f"as well as {counted(size, 'random one')}"
        many = many if size else f"better than {LONGEST:,} random ones"
        scale = f" (m = {chosen.m:.6g})" if chosen.m != 1 else ""  # 1: not needed
        before = f", before them {chosen.coverage[0]:.3g}" if self.given.size else ""
        verb = "covers" if len(chosen) == 1 else "cover"
        why = ": a greedy set prefers outliers" * (self.greedy and 0 < size < len(chosen))
        return [
            f"{beside}{counted(len(chosen), 'item')} {verb} {what} {many}{why}",
            f"on average an item is {share} similar to the nearest one{scale}{before}",
        ]


def selection_page(
    F: Features, figures: SetFigures, about: Mapping[str, Any], facts: Mapping[str, str],
    title: str, images: Any = None,
) -> str:  # fmt: skip
    """Return the HTML page of a set.

    about: by name, "id", "label", "group", "quality" and "text" of all n items, each optional.
    facts: more about the set, in words.
    """
    chosen, same, given, free = figures.chosen, not figures.other, figures.given, figures.free
    N = chosen.nearest.size
    counts = np.bincount(chosen.nearest, minlength=given.size + len(chosen))[given.size :]
    items = Items(about, images, F.n)
    head, *rest = figures.sentences()
    heading, _, more = head.partition(": ")
    in_set = np.isin(np.arange(N), [*given, *chosen.items]) & same
    order = np.argsort(np.where(in_set, np.inf, chosen.similarity), kind="stable")
    least = order[: min(FARTHEST, int(np.sum(~in_set)))]
    covered = items if same else Items({}, None, 0)
    beside = f", beside {given.size:,} that were given" if given.size else ""
    kind = next((name for name in ("label", "group") if name in about), "")
    content = {
        "made_by": f"dmsgd select, {facts['chosen']}",
        "subtitle": f"{len(chosen):,} of {counted(F.n, 'item')}{beside}.",
        "heading": heading,
        "sentences": [each for each in (more, *rest) if each],
        "figures": figures,
        "facts": {name: text for name, text in facts.items() if name != "chosen"},
        "curve": _curve(chosen),
        "dots": _dots(F, figures),
        "kind": "class" if kind == "label" else kind,
        "classes": _classes(chosen.items, free, about[kind]) if kind else [],
        "most": CLASSES,
        "set": [
            items.entry(item, f"{count / N:.1%}")
            for item, count in zip(chosen.items[:LISTED].tolist(), counts, strict=False)
        ],
        "least": [covered.entry(int(i), f"{chosen.similarity[i]:.2f}") for i in least],
    }
    return render("selection.html", title, content)


def _curve(chosen: Selection) -> dict[str, Any]:
    """Return the coverage by number of new items as places of a picture, 960 by 320."""
    ours, like = chosen.coverage, chosen.like_random
    random = np.pad(chosen.random_curves, ((0, 0), (1, 0)), constant_values=ours[0])
    random = random[:, : int(1.1 * max(like, ours.size)) + 2]
    length, first = max(ours.size, random.shape[1]) - 1, int(not ours[0] and ours.size > 1)
    values = np.append(ours[first:], random[:, first:])
    low, high = float(values.min()), float(values.max())

    def place(x: float, y: float) -> tuple[float, float]:
        right, up = x / length, (y - low) / (high - low or 1.0)
        return round(LEFT + right * (RIGHT - LEFT), 1), round(BOTTOM - up * (BOTTOM - TOP), 1)

    def points(values: FloatArray) -> list[str]:
        at = first + evenly_spaced(values.size - first, POINTS)
        return ["{},{}".format(*place(x, float(values[x]))) for x in at.tolist()]

    return {
        "ours": " ".join(points(ours)),
        "random": " ".join(points(random.mean(axis=0))),
        "band": " ".join([*points(random.min(axis=0)), *reversed(points(random.max(axis=0)))]),
        "end": place(ours.size - 1, float(ours[-1])),
        "like": (like, place(like, float(ours[-1]))) if like else None,
        "levels": [(f"{each:.3g}", place(0, each)[1]) for each in _ticks(low, high)],
        "counts": [(f"{each:,.0f}", place(each, low)[0]) for each in _ticks(0, length, 1.0)],
    }


def _ticks(low: float, high: float, least: float = 1e-9) -> list[float]:
    """Return about five round numbers from `low` to `high`."""
    step = max(least, 10.0 ** np.floor(np.log10(max((high - low) / 5, least))))
    step = next(step * each for each in (1, 2, 5, 10) if (high - low) / (step * each) <= 5)
    return [step * each for each in range(int(np.ceil(low / step)), int(high / step) + 1)]


def _classes(chosen: IntArray, free: IntArray, labels: Any) -> list[dict[str, Any]]:
    """Return the classes, commonest first: items, how many are chosen, how many would be."""
    names, codes, items = np.unique(labels[free], return_inverse=True, return_counts=True)
    drawn = np.bincount(codes[np.searchsorted(free, chosen)], minlength=names.size)
    expected = chosen.size * items / free.size
    widest = float(max(drawn.max(), expected.max())) or 1.0
    return [
        {
            "name": visible(names[c], NAME),
            "size": int(items[c]),
            "chosen": (100 * drawn[c] / widest, f"{drawn[c]:,}"),
            "random": (100 * expected[c] / widest, f"{expected[c]:,.1f}"),
        }
        for c in commonest_and_rarest(items, CLASSES)
    ]


def _dots(F: Features, figures: SetFigures) -> list[dict[str, Any]]:
    """Return groups of places on the map: items of the pool by how they are covered, the set."""
    chosen, pool = figures.chosen, evenly_spaced(F.n, DOTS)
    groups = {"near": pool}
    if not figures.other:
        near, far = np.quantile(chosen.similarity, [1 - NEAR, 1 - FAR])
        similar = chosen.similarity[pool]
        kinds = np.where(similar <= far, 2, np.where(similar < near, 1, 0))
        groups = {name: pool[kinds == i] for i, name in enumerate(("near", "far", "farthest"))}
    groups |= {"given": figures.given[:DOTS], "chosen": chosen.items[:DOTS]}
    return map_dots(F, [(name, items, "") for name, items in groups.items()])
