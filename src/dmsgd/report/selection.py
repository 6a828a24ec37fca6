"""One page about one chosen set: what it holds, what it covers, and what random sets would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import visible
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.report.items import NAME
from dmsgd.report.maps import scaled
from dmsgd.report.page import render
from dmsgd.spectra import Spectrum
from dmsgd.spectra.decompose import principal
from dmsgd.spectra.rounding import DEPENDENT

#: Numbers of the measured items' features, and of their similarities that are held at a time.
NUMBERS, PIECE = 2**23, 2**22
#: Random sets that the chosen one is compared with.
SETS = 10
#: Other items on the map, items in a list, classes in the table.
DOTS, LISTED, CLASSES = 3000, 12, 200
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
    """What a set covers of the measured items.

    spread:  share of their variance that lies in the span of the set.
    cosines: of each item with the most similar item of the set.
    nearest: the place of that one in the set.
    pairs:   mean cosine between two items of the set.
    """

    spread: float
    cosines: FloatArray
    nearest: IntArray
    pairs: float

    def figures(self) -> dict[str, float]:
        """Return the numbers of the table, by the names in FIGURES."""
        low, middle = np.quantile(self.cosines, (0.05, 0.5)).tolist()
        return dict(zip(FIGURES, (self.spread, middle, low, self.pairs), strict=True))


def selection_page(
    spectrum: Spectrum,
    chosen: IntArray,
    given: int,
    labels: Any,
    facts: dict[str, str],
    title: str,
    seed: Seed = 0,
) -> str:
    """Return the page about the items `chosen`, of which the first were `given`."""
    content = build_selection(spectrum, chosen, given, labels, facts, seed)
    return render("selection.html", title, content)


def build_selection(
    spectrum: Spectrum,
    chosen: IntArray,
    given: int,
    labels: Any,
    facts: dict[str, str],
    seed: Seed = 0,
) -> dict[str, Any]:
    """Return the content of the page.

    labels: (n,) classes, or None; facts: for the top of the page.

    Of very many items a random part is measured, which the page states. O(m r k) for m items.
    """
    rng = np.random.default_rng(seed_key(seed))
    most = max(1000, NUMBERS // spectrum.rank)
    measured = np.arange(spectrum.n)
    if spectrum.n > most:
        measured = np.sort(rng.choice(spectrum.n, most, replace=False))
    count = 4 * measured.size * spectrum.rank
    reserve(count, f"what a page measures of {measured.size:,} items", "leave the page out")
    A = _features(spectrum, measured)
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
    counts = np.bincount(found.nearest, minlength=chosen.size)
    stands = np.argsort(-counts, kind="stable")[:LISTED]
    far = np.argsort(found.cosines, kind="stable")
    far = far[~np.isin(measured[far], chosen)][:LISTED]
    share = counts / max(counts.sum(), 1)
    return {
        "n": spectrum.n,
        "measured": int(measured.size),
        "k": int(chosen.size),
        "given": given,
        "facts": facts,
        "sets": SETS,
        "figures": _figures(found, random),
        "classes": _classes(chosen, labels),
        "dots": _dots(A, _features(spectrum, chosen), given, rng),
        "stands_for": [_entry(chosen[j], labels, f"{share[j]:.1%}") for j in stands],
        "farthest": [_entry(measured[i], labels, f"{found.cosines[i]:.3f}") for i in far],
    }


def _features(spectrum: Spectrum, items: IntArray) -> FloatArray:
    """Return rows of V Λ^(1/2), which have the similarities of the kernel."""
    return spectrum.eigenvectors.rows(items) * np.sqrt(spectrum.values)


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
    sum_, count = units.sum(axis=0), items.size
    pairs = float(sum_ @ sum_ - np.einsum("ij,ij->", units, units))
    return Covered(min(spread, 1.0), cosines, nearest, pairs / max(count * (count - 1), 1))


def _units(rows: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _figures(found: Covered, random: list[Covered]) -> list[dict[str, Any]]:
    """Return the rows of the table: a name, the chosen set, random ones and their range."""
    table, chosen = [], found.figures()
    for name, form in FIGURES.items():
        others = [each.figures()[name] for each in random]
        table.append(
            {
                "name": name,
                "chosen": form.format(chosen[name]),
                "random": form.format(float(np.mean(others))),
                "range": f"{form.format(min(others))} to {form.format(max(others))}",
            }
        )
    return table


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
    shown = A if len(A) <= DOTS else A[rng.choice(len(A), DOTS, replace=False)]
    plane = np.zeros((len(shown) + len(F), 2))
    plane[:, :count] = (np.vstack([shown, F]) - mean) @ principal(A - mean, count)
    places = (12 + scaled(plane) * [976, 576]).round(1).tolist()
    everyone, first = len(shown), len(shown) + given
    return [
        {"name": "plain", "radius": 2.5, "places": places[:everyone]},
        {"name": "chosen", "radius": 5, "places": places[first:]},
        {"name": "given", "radius": 5, "places": places[everyone:first]},
    ]


def _entry(item: int, labels: Any, value: str) -> dict[str, Any]:
    """Return one line of a list."""
    label = "" if labels is None else visible(labels[item], NAME)
    return {"item": int(item), "label": label, "value": value}
