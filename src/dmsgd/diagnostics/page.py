"""What the page of an `Inspection`, here `found`, shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dmsgd.diagnostics.advice import missed, number
from dmsgd.diagnostics.facts import take_rows
from dmsgd.features.products import squared_distances
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import FloatArray, to_numpy
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.messages import counted, visible
from dmsgd.report.page import NAME, Items, evenly_spaced, map_places, render

#: Dots on the map, those of a small class at least, and classes with a colour of their own.
DOTS, LEAST, COLOURS = 1500, 40, 10
#: Items of a batch, groups of near-duplicates with so many members, and outliers that are shown.
BATCH, GROUPS, MEMBERS, OUTLIERS = 64, 8, 6, 12
#: Items that all are compared with to find outliers, some at a time.
COMPARED, AT_ONCE = 1000, 4096
#: Bars and points of the small pictures.
BARS, POINTS = 40, 60


def page_of(found: Any, title: str, texts: Any, images: Any) -> str:
    """Return the HTML page of an inspection."""
    data, n = found.data, found.data.n
    texts = None if texts is None else to_numpy(aligned(texts, found._given, "texts"), "texts")
    if texts is not None and texts.shape != (n,):
        raise ValueError(f"texts must be one per item ({n}), got shape {texts.shape}")
    known = {"label": found._labels, "text": texts}
    items = Items({name: each for name, each in known.items() if each is not None}, images, n)
    codes = np.zeros(data.rows.size, dtype=np.int64)
    names = np.array(["items"])
    if found._labels is not None:
        names, codes = as_classes(found._labels[data.rows])
    classes = f", {counted(len(data.classes), 'class')}" if data.classes else ""
    content = {
        "made_by": f"dmsgd inspect, batches of {found.k:,}",
        "subtitle": f"{counted(n, 'item')}, {counted(data.d, 'column')}{classes}.",
        "footer": "Figures are exact expectations unless they have ±.",
        "found": found,
        "cards": list(_cards(found, items)),
        "missed": missed(data, found.k),
        "most": max([1e-9, *(count for each in found.batches for count in each.items.values())]),
        "number": number,
        "shown_name": lambda label: visible(label, NAME),
        "examples": list(_examples(found, items)),
        **_map(found, names, codes),
        "groups": list(_groups(found, items, codes)),
        "outliers": _outliers(found, items),
    }
    return render("inspect.html", title, content)


def _cards(found: Any, items: Items) -> Iterator[dict[str, Any]]:
    """Yield the cards about the data, each with a picture: bars or a line up to 1, or two items."""
    data, facts, pair = found.data, found.facts(), found.data.duplicates.closest

    def thinned(values: FloatArray, most: int) -> list[float]:
        return [round(float(each), 3) for each in values[evenly_spaced(values.size, most)]]

    sizes, deviations = (
        np.sort(np.array(each, dtype=float))[::-1]
        for each in (list(data.classes.values()), data.deviations)
    )
    sums = np.cumsum(data.variances) / (data.variances.sum() or 1.0)
    pictures: dict[str, dict[str, Any]] = {
        "classes": {"bars": thinned(sizes / sizes[:1], BARS)},
        "duplicates": {},
        "columns": {"bars": thinned(deviations / (deviations[0] or 1.0), BARS)},
        "dimension": {"line": thinned(sums[: max(2, 2 * data.directions())], POINTS)},
    }
    if pair is not None and items.images is not None:
        entries = [items.entry(int(data.rows[each])) for each in pair[:2]]
        pictures["duplicates"] = {"pair": entries}
    for name, picture in pictures.items():
        if name in facts:
            yield {"bars": [], "line": [], "pair": [], **picture, "name": name, "fact": facts[name]}


def _examples(found: Any, items: Items) -> Iterator[dict[str, Any]]:
    """Yield one batch of each kind, sorted by class, if there is something to look at."""
    if not items.about and items.images is None:
        return
    colour = items.images is not None and items.images.shape[3] > 1
    for each in found.batches:
        batch, held = np.sort(each.rows[each.design.sample(1, seed=0)[0]]), ""
        if found._labels is not None:
            labels = found._labels[batch]
            batch = batch[np.argsort(labels, kind="stable")]
            held = f": {np.unique(labels).size} of {counted(len(found.data.classes), 'class')}"
        entries = [items.entry(int(item)) for item in batch[: BATCH // (1 + colour)]]
        yield {"name": f"{each.name}{held}", "entries": entries}


def _map(found: Any, names: Any, codes: Any) -> dict[str, Any]:
    """Return places of items by class, of small classes more than their share, and the key."""
    rows, order = found.data.rows, np.argsort(-np.bincount(codes), kind="stable")[:COLOURS]
    places = [np.flatnonzero(codes == c) for c in order]
    shown = [visible(names[c], NAME) for c in order]
    if (others := np.flatnonzero(~np.isin(codes, order))).size:
        places, shown = [*places, others], [*shown, "other classes"]
    shares = [max(LEAST, DOTS * each.size // rows.size) for each in places]
    kept = [rows[e[evenly_spaced(e.size, most)]] for e, most in zip(places, shares, strict=True)]
    spots = iter(map_places(found._X, np.concatenate(kept)))
    dots = [
        {"name": f"c{number}", "radius": 3, "places": [
            (*next(spots), f"item {item}, {name}" if len(names) > 1 else f"item {item}")
            for item in some
        ]}
        for number, (name, some) in enumerate(zip(shown, kept, strict=True))
    ]  # fmt: skip
    count = sum(each.size for each in kept)
    return {"dots": dots, "names": shown if len(names) > 1 else [], "shown": count}


def _groups(found: Any, items: Items, codes: Any) -> Iterator[dict[str, Any]]:
    """Yield groups of near-duplicates, those with several classes first: a label may be wrong."""
    first, rows = found.data.duplicates.representative, found.data.rows
    leaders, sizes = np.unique(first[first != np.arange(first.size)], return_counts=True)
    mixed = np.isin(leaders, first[codes != codes[first]])
    for leader in leaders[np.lexsort([-sizes, ~mixed])[:GROUPS]]:
        members = np.flatnonzero(first == leader)
        entries = [items.entry(int(item)) for item in rows[members[:MEMBERS]]]
        several = int(np.unique(codes[members]).size)
        yield {"entries": entries, "size": members.size, "classes": several}


def _outliers(found: Any, items: Items) -> list[dict[str, Any]]:
    """Return the items that are farthest from the nearest of some others, over the median."""
    F = take_rows(found._X, found.data.rows)
    compared = evenly_spaced(F.n, COMPARED)
    points, far = F.take(compared), np.empty(F.n)
    for start in range(0, F.n, AT_ONCE):
        part = np.arange(start, min(start + AT_ONCE, F.n))
        squares = np.asarray(squared_distances(F.take(part), points))
        squares[part[:, None] == compared] = np.inf
        far[part] = np.sqrt(squares.min(axis=1))
    order = np.argsort(-far, kind="stable")[: min(OUTLIERS, F.n // 2)].tolist()
    unit = float(np.median(far)) or 1.0
    return [items.entry(int(found.data.rows[at]), f"{far[at] / unit:.1f} ×") for at in order]
