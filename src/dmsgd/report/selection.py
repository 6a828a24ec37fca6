"""The page about one chosen set: what it holds, what it covers, and what random sets would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import linalg

from dmsgd.diagnostics.data import commonest_and_rarest
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import visible
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.report.items import NAME
from dmsgd.report.maps import scaled
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

    figures: those of FIGURES.
    cosines: of each item with the most similar item of the set, whose place is in `nearest`.
    """

    figures: tuple[float, ...]
    cosines: FloatArray
    nearest: IntArray


def build_selection(
    spectrum: Spectrum,
    chosen: IntArray,
    given: int,
    labels: Any,
    facts: dict[str, str],
    seed: Seed = 0,
) -> dict[str, Any]:
    """Return what the page shows about the items `chosen`, of which the first were `given`.

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
    A, F = _features(spectrum, measured), _features(spectrum, chosen)
    others = np.setdiff1d(np.arange(spectrum.n), chosen[:given])
    random = []
    for _ in range(SETS):
        drawn = rng.choice(others, chosen.size - given, replace=False)
        items = np.append(chosen[:given], drawn)
        random.append(_covered(A, _features(spectrum, items)).figures)
    found = _covered(A, F)
    counts = np.bincount(found.nearest, minlength=chosen.size)
    stands = np.argsort(-counts, kind="stable")[:LISTED]
    far = np.argsort(found.cosines, kind="stable")
    far = far[~np.isin(measured[far], chosen)][:LISTED]
    share = counts / counts.sum()
    return {
        "n": spectrum.n,
        "measured": int(measured.size),
        "k": int(chosen.size),
        "given": given,
        "facts": facts,
        "sets": SETS,
        "figures": [
            {
                "name": name,
                "chosen": form.format(ours),
                "random": form.format(float(np.mean(theirs))),
                "range": f"{form.format(min(theirs))} to {form.format(max(theirs))}",
            }
            for (name, form), ours, theirs in zip(
                FIGURES.items(), found.figures, zip(*random, strict=True), strict=True
            )
        ],
        "classes": [] if labels is None else _classes(chosen, labels),
        "dots": _dots(A, F, given, rng),
        "stands_for": [_entry(chosen[j], labels, f"{share[j]:.1%}") for j in stands],
        "farthest": [_entry(measured[i], labels, f"{found.cosines[i]:.3f}") for i in far],
    }


def _features(spectrum: Spectrum, items: IntArray) -> FloatArray:
    """Return rows of V Λ^(1/2), which have the similarities of the kernel."""
    return spectrum.eigenvectors.rows(items) * np.sqrt(spectrum.values)


def _covered(A: FloatArray, F: FloatArray) -> Covered:
    """Return what a set with features F covers of items with features A."""
    Q, R, _ = linalg.qr(F.T, mode="economic", pivoting=True, check_finite=False)
    left = np.abs(R.diagonal())
    centred = A - A.mean(axis=0)
    inside = centred @ Q[:, left > DEPENDENT * left[0]]
    total = float(np.einsum("ij,ij->", centred, centred))
    spread = float(np.einsum("ij,ij->", inside, inside)) / total if total > 0 else 1.0
    units, count = _units(F), len(F)
    cosines, nearest = np.empty(len(A)), np.empty(len(A), dtype=np.int64)
    step = max(1, PIECE // count)
    for first in range(0, len(A), step):
        part = slice(first, first + step)
        similar = _units(A[part]) @ units.T
        nearest[part] = similar.argmax(axis=1)
        cosines[part] = similar.max(axis=1)
    total_unit = units.sum(axis=0)
    pairs = float(total_unit @ total_unit - np.einsum("ij,ij->", units, units))
    low, middle = np.quantile(cosines, (0.05, 0.5)).tolist()
    figures = min(spread, 1.0), middle, low, pairs / max(count * (count - 1), 1)
    return Covered(figures, cosines, nearest)


def _units(rows: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _classes(chosen: IntArray, labels: Any) -> list[dict[str, Any]]:
    """Return the classes, commonest first: items, how many are chosen, how many would be."""
    names, codes, items = np.unique(labels, return_inverse=True, return_counts=True)
    drawn = np.bincount(codes[chosen], minlength=names.size)
    expected = chosen.size * items / codes.size
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
