"""What the page of an `Inspection`, here `found`, shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dmsgd.diagnostics.facts import take_rows
from dmsgd.features.products import squared_distances
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import FloatArray, evenly_spaced, to_numpy
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.messages import counted, number, visible
from dmsgd.report.page import NAME, Items, map_dots, render

#: Dots on the map in all, about; a class with more items than LEAST has at least so many dots.
DOTS, LEAST = 1500, 40
#: Classes that have a colour of their own.
COLOURS = 10
#: Items of a batch that are shown: pictures, by their number of channels, or lines of text.
PICTURES, LINES = {1: 64, 3: 32}, 12
#: Groups of near-duplicates, and members of each; bars and points of the small pictures.
GROUPS, MEMBERS, BARS, POINTS = 8, 6, 40, 60
#: Outliers that are shown; items that each item is compared with; items compared at a time.
OUTLIERS, COMPARED, AT_ONCE = 12, 1000, 4096


def page_of(found: Any, title: str, texts: Any, images: Any) -> str:
    """Return the HTML page of an inspection."""
    data, n = found.data, found.data.n
    texts = None if texts is None else to_numpy(aligned(texts, found._given, "texts"), "texts")
    if texts is not None and texts.shape != (n,):
        raise ValueError(f"texts must be one per item ({n}), got shape {texts.shape}")
    items = Items({"label": found._labels, "text": texts}, images, n)
    labels = np.zeros(n, dtype=np.int64) if found._labels is None else found._labels
    names, codes = as_classes(labels[data.rows])
    classes = f", {counted(len(data.classes), 'class')}" if data.classes else ""
    content = {
        "made_by": f"dmsgd inspect, batches of {found.k:,}",
        "subtitle": f"{counted(n, 'item')}, {counted(data.d, 'column')}{classes}.",
        "found": found,
        "facts": found.facts(),
        "cards": list(_cards(found, items)),
        "missed": data.missed(found.k),
        "most": max([1e-9, *(count for each in found.batches for count in each.items.values())]),
        "number": number,
        "shown_name": lambda label: visible(label, NAME),
        "examples": list(_examples(found, items, labels)),
        **_map(found, names, codes),
        "groups": list(_groups(found, items, codes)),
        "outliers": _outliers(found, items),
    }
    return render("inspect.html", title, content)


def _cards(found: Any, items: Items) -> Iterator[dict[str, Any]]:
    """Yield the cards about the data, each with a picture: bars or a line up to 1, or two items."""
    data, pair = found.data, found.data.duplicates.closest

    def thinned(values: FloatArray, most: int, whole: float) -> list[float]:
        return [round(float(each / whole), 3) for each in values[evenly_spaced(values.size, most)]]

    if data.classes:
        sizes = np.array(sorted(data.classes.values(), reverse=True))
        yield {"name": "classes", "bars": thinned(sizes, BARS, sizes[0])}
    shown = pair[:2] if pair is not None and items.images is not None else ()
    yield {"name": "duplicates", "pair": [items.entry(int(data.rows[each])) for each in shown]}
    deviations, sums = np.sort(data.deviations)[::-1], np.cumsum(data.variances)
    yield {"name": "columns", "bars": thinned(deviations, BARS, deviations[0] or 1.0)}
    first = sums[: max(2, 2 * data.directions())]
    yield {"name": "dimension", "line": thinned(first, POINTS, sums[-1] or 1.0)}


def _examples(found: Any, items: Items, labels: Any) -> Iterator[dict[str, Any]]:
    """Yield one batch of each kind, sorted by class, if there is something to look at."""
    if items.about["text"] is None and items.images is None:
        return
    most = LINES if items.images is None else PICTURES[items.images.shape[3]]
    for each in found.batches:
        batch = np.sort(each.rows[each.design.sample(1, seed=0)[0]])
        batch = batch[np.argsort(labels[batch], kind="stable")]
        count, classes = np.unique(labels[batch]).size, len(found.data.classes)
        held = f": {count} of {counted(classes, 'class')}" if classes else ""
        shown = batch[evenly_spaced(batch.size, most)]
        yield {"name": f"{each.name}{held}", "entries": [items.entry(int(item)) for item in shown]}


def _map(found: Any, names: Any, codes: Any) -> dict[str, Any]:
    """Return the dots of the map, the names of its classes for the key, and how many dots it has.

    Small classes have more dots than their share.
    """
    rows, order = found.data.rows, np.argsort(-np.bincount(codes), kind="stable")[:COLOURS]
    classes = [(visible(names[c], NAME), np.flatnonzero(codes == c)) for c in order]
    if (others := np.flatnonzero(~np.isin(codes, order))).size:
        classes.append(("other classes", others))
    several, groups = len(classes) > 1, []
    for at, (name, items) in enumerate(classes):
        most = max(LEAST, DOTS * items.size // rows.size)
        chosen = rows[items[evenly_spaced(items.size, most)]]
        groups.append((f"c{at}", chosen, f", {name}" if several else ""))
    count = sum(chosen.size for _, chosen, _ in groups)
    key = [name for name, _ in classes] if several else []
    return {"dots": map_dots(found._X, groups), "names": key, "shown": count}


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
