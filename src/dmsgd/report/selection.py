"""What the page about one chosen set shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmsgd.diagnostics.data import commonest_and_rarest
from dmsgd.features import Features
from dmsgd.features.rows import product
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.messages import visible
from dmsgd.report.items import NAME, snippet, to_unit_square
from dmsgd.report.spread import SETS, Spread, random_count
from dmsgd.spectra.decompose import leading

#: Items on the map and those that decide its axes; items in lists, and classes.
DOTS, AXES, LISTED, FARTHEST, CLASSES = 3000, 500, 1000, 12, 30
#: What is known of a covering set.
SIMILAR, AS_MANY = "Similarity of an item to the nearest one, mean", "Items that cover as much"


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
    measured, same, words = spread.measured, not spread.other, spread.words()
    in_set = np.isin(measured, np.append(given, chosen)) & same
    others = np.flatnonzero(~in_set)
    farthest = others[np.argsort(-spread.far[others], kind="stable")][:FARTHEST]
    values = spread.far if spread.covering is None else spread.covering.similarity
    return {
        "n": F.n,
        "measured": int(measured.size) if same else F.n,
        "k": int(chosen.size),
        "given": int(given.size),
        "facts": facts,
        "words": words[0].upper() + words[1:],
        "sets": SETS,
        "most_classes": CLASSES,
        "figures": _figures(spread),
        "classes": _classes(chosen, free, about["label"]) if "label" in about else [],
        "dots": _dots(F, chosen, given, measured if same else np.arange(F.n)),
        "set": [
            _entry(item, about, f"{count / measured.size:.1%}")
            for item, count in zip(chosen[:LISTED].tolist(), counts, strict=False)
        ],
        "farthest": [
            _entry(int(measured[i]), about if same else {}, f"{values[i]:.2f}") for i in farthest
        ],
        "measure": "distance from" if spread.covering is None else "similarity to",
        "other": spread.other,
    }


def _figures(spread: Spread) -> list[dict[str, str]]:
    """Return lines of the table of figures: of the set, and of random sets."""
    lines = [
        {
            "name": name,
            "chosen": f"{found[0]:.3f}",
            "random": f"{found[1:].mean():.3f}",
            "range": f"{found[1:].min():.3f} to {found[1:].max():.3f}",
        }
        for name, found in spread.figures.items()
    ]
    if (covering := spread.covering) is None:
        return lines
    mean = {"name": SIMILAR, "chosen": f"{covering.coverage[-1]:.3f}", "random": "", "range": ""}
    if len(covering):
        count = {"name": AS_MANY, "chosen": f"{len(covering):,}", "range": ""}
        lines = [{**count, "random": random_count(covering).partition(" random")[0]}, *lines]
    return [mean, *lines]


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
