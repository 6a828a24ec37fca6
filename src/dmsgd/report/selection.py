"""One page about one chosen set: what it holds, what it covers, and what random sets would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import linalg

from dmsgd.features.principal import principal
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import visible
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.report.page import filled
from dmsgd.spectra import Spectrum
from dmsgd.spectra.conditional import DEPENDENT

#: Numbers of the items that are looked at, and of their similarities that are held at a time.
NUMBERS, PIECE = 2**23, 2**22
#: Random sets that the chosen one is compared with.
SETS = 10
#: Other items on the map, items in a list, classes in the table.
DOTS, LISTED, CLASSES = 3000, 12, 200
#: Characters of a class's name that are shown.
NAME = 80
#: What is measured of a set, and how it is written.
FIGURES = {
    "Share of the data's spread that the set spans": "{:.1%}",
    "Cosine with the nearest chosen item, the middle item": "{:.3f}",
    "The same of the least covered twentieth": "{:.3f}",
    "Mean cosine between two chosen items": "{:.3f}",
}


@final
@dataclass(frozen=True)
class Covered:
    """What a set covers of the items that are looked at.

    spread:  share of their variance that lies in the span of the set.
    cosines: of each item with the item of the set that is most similar to it.
    nearest: the place of that one in the set.
    pairs:   mean cosine between two items of the set.
    """

    spread: float
    cosines: FloatArray
    nearest: IntArray
    pairs: float


def build_selection(
    spectrum: Spectrum,
    chosen: IntArray,
    given: int,
    labels: Any,
    words: dict[str, str],
    seed: Seed = 0,
) -> dict[str, Any]:
    """Return the content of the page about the items `chosen`, of which the first were `given`.

    labels: (n,) classes, or None; words: facts for the top of the page.

    Of very many items a random part is looked at, and the page says so. O(m r k) for m items.
    """
    rng = np.random.default_rng(seed_key(seed))
    most = max(1000, NUMBERS // spectrum.rank)
    looked_at = np.arange(spectrum.n)
    if spectrum.n > most:
        looked_at = np.sort(rng.choice(spectrum.n, most, replace=False))
    count = 4 * looked_at.size * spectrum.rank
    reserve(count, f"what a page measures of {looked_at.size:,} items", "leave the page out")
    A = _features(spectrum, looked_at)
    others = np.setdiff1d(np.arange(spectrum.n), chosen[:given])
    random = [
        _covered(
            spectrum,
            A,
            np.append(chosen[:given], rng.choice(others, chosen.size - given, replace=False)),
        )
        for _ in range(SETS)
    ]
    found = _covered(spectrum, A, chosen)
    return {
        "n": spectrum.n,
        "looked_at": int(looked_at.size),
        "k": int(chosen.size),
        "given": given,
        "words": words,
        "sets": SETS,
        "figures": _figures(found, random),
        "classes": _classes(chosen, labels),
        "dots": _dots(A, _features(spectrum, chosen), given, rng),
        "stands_for": _stands_for(found, chosen, labels),
        "farthest": _farthest(found, looked_at, chosen, labels),
    }


def render_selection(content: dict[str, Any], title: str) -> str:
    """Return the page that shows `content`, made by `build_selection`; it loads nothing."""
    return filled("selection.html", title, content)


def _features(spectrum: Spectrum, items: IntArray) -> FloatArray:
    """Return rows of V Λ^(1/2), which have the similarities of the kernel."""
    return spectrum.held.rows(items) * np.sqrt(spectrum.values)


def _covered(spectrum: Spectrum, A: FloatArray, items: IntArray) -> Covered:
    F = _features(spectrum, items)
    Q, R, _ = linalg.qr(F.T, mode="economic", pivoting=True, check_finite=False)
    left = np.abs(R.diagonal())
    centred = A - A.mean(axis=0)
    inside = centred @ Q[:, left > DEPENDENT * left[0]]
    total = float(np.einsum("ij,ij->", centred, centred))
    spread = float(np.einsum("ij,ij->", inside, inside)) / total if total > 0 else 1.0
    units = _units(F)
    cosines, nearest = np.empty(len(A)), np.empty(len(A), dtype=np.int64)
    step = max(1, PIECE // items.size)
    for first in range(0, len(A), step):
        part = slice(first, first + step)
        similar = _units(A[part]) @ units.T
        nearest[part] = similar.argmax(axis=1)
        cosines[part] = similar.max(axis=1)
    total_of = units.sum(axis=0)
    count = items.size
    pairs = float(total_of @ total_of - np.einsum("ij,ij->", units, units))
    return Covered(min(spread, 1.0), cosines, nearest, pairs / max(count * (count - 1), 1))


def _units(rows: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _figures(found: Covered, random: list[Covered]) -> list[dict[str, Any]]:
    """Return the rows of the table: a name, the chosen set, random ones and their range."""
    table = []
    for name, form in FIGURES.items():
        others = [_measured(each)[name] for each in random]
        table.append(
            {
                "name": name,
                "chosen": form.format(_measured(found)[name]),
                "random": form.format(float(np.mean(others))),
                "range": f"{form.format(min(others))} to {form.format(max(others))}",
            }
        )
    return table


def _measured(found: Covered) -> dict[str, float]:
    low, middle = np.quantile(found.cosines, (0.05, 0.5)).tolist()
    return dict(zip(FIGURES, (found.spread, middle, low, found.pairs), strict=True))


def _classes(chosen: IntArray, labels: Any) -> list[dict[str, Any]]:
    """Return the classes, commonest first: items, how many are chosen, how many would be."""
    if labels is None:
        return []
    names, codes, items = np.unique(labels, return_inverse=True, return_counts=True)
    drawn = np.bincount(codes[chosen], minlength=names.size)
    expected = chosen.size * items / codes.size
    order = np.argsort(-items, kind="stable")
    if order.size > CLASSES:
        order = np.concatenate([order[: CLASSES // 2], order[-CLASSES // 2 :]])
    widest = float(max(drawn.max(), expected.max()))
    return [
        {
            "name": visible(names[c], NAME),
            "size": int(items[c]),
            "chosen": int(drawn[c]),
            "random": float(expected[c]),
            "widths": (70 * drawn[c] / widest, 70 * expected[c] / widest),
        }
        for c in order
    ]


def _dots(
    A: FloatArray, F: FloatArray, given: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Return groups of places on the map, 0 to 1000 by 0 to 600: all items, chosen, given."""
    mean, count = A.mean(axis=0), min(2, *A.shape)
    directions = principal(A - mean, count)
    shown = A if len(A) <= DOTS else A[rng.choice(len(A), DOTS, replace=False)]
    plane = np.zeros((len(shown) + len(F), 2))
    plane[:, :count] = (np.vstack([shown, F]) - mean) @ directions
    low, high = plane.min(axis=0), plane.max(axis=0)
    plane = 12 + (plane - low) / np.where(high > low, high - low, 1.0) * [976, 576]
    places = plane.round(1).tolist()
    everyone, first = len(shown), len(shown) + given
    return [
        {"name": "plain", "radius": 2.5, "places": places[:everyone]},
        {"name": "chosen", "radius": 5, "places": places[first:]},
        {"name": "given", "radius": 5, "places": places[everyone:first]},
    ]


def _stands_for(found: Covered, chosen: IntArray, labels: Any) -> list[dict[str, Any]]:
    """Return the chosen items that most others are nearest to."""
    counts = np.bincount(found.nearest, minlength=chosen.size)
    order = np.argsort(-counts, kind="stable")[:LISTED]
    share = counts / max(counts.sum(), 1)
    return [
        {"item": int(chosen[j]), "label": _label(labels, chosen[j]), "value": f"{share[j]:.1%}"}
        for j in order
    ]


def _farthest(
    found: Covered, looked_at: IntArray, chosen: IntArray, labels: Any
) -> list[dict[str, Any]]:
    """Return the items whose nearest chosen item is least similar to them."""
    order = np.argsort(found.cosines, kind="stable")
    order = order[~np.isin(looked_at[order], chosen)][:LISTED]
    return [
        {
            "item": int(looked_at[i]),
            "label": _label(labels, looked_at[i]),
            "value": f"{found.cosines[i]:.3f}",
        }
        for i in order
    ]


def _label(labels: Any, item: int) -> str:
    return "" if labels is None else visible(labels[item], NAME)
