"""The page about one chosen set: what it holds, what it covers, and what random sets would."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from dmsgd.diagnostics.data import commonest_and_rarest
from dmsgd.diagnostics.similarity import kernel_features, mean_cosine, unit_rows
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import visible
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.report.items import NAME, positions
from dmsgd.spectra import Spectrum
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
    A, F = kernel_features(spectrum, measured), kernel_features(spectrum, chosen)
    others = np.setdiff1d(np.arange(spectrum.n), chosen[:given])
    random = []
    for _ in range(SETS):
        drawn = rng.choice(others, chosen.size - given, replace=False)
        items = np.append(chosen[:given], drawn)
        random.append(_covered(A, kernel_features(spectrum, items))[0])
    figures, cosines, nearest = _covered(A, F)
    counts = np.bincount(nearest, minlength=chosen.size)
    stands = np.argsort(-counts, kind="stable")[:LISTED]
    far = np.argsort(cosines, kind="stable")
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
                FIGURES.items(), figures, zip(*random, strict=True), strict=True
            )
        ],
        "classes": [] if labels is None else _classes(chosen, labels),
        "dots": _dots(A, F, given, rng),
        "stands_for": [_entry(chosen[j], labels, f"{share[j]:.1%}") for j in stands],
        "farthest": [_entry(measured[i], labels, f"{cosines[i]:.3f}") for i in far],
    }


def _covered(A: FloatArray, F: FloatArray) -> tuple[tuple[float, ...], FloatArray, IntArray]:
    """Return what a set with features F covers of items with features A.

    That is FIGURES, each item's cosine with the most similar item of the set, and its place there.
    """
    Q, R, _ = linalg.qr(F.T, mode="economic", pivoting=True, check_finite=False)
    left = np.abs(R.diagonal())
    centred = A - A.mean(axis=0)
    inside = centred @ Q[:, left > DEPENDENT * left[0]]
    total = float(np.einsum("ij,ij->", centred, centred))
    spread = float(np.einsum("ij,ij->", inside, inside)) / total if total > 0 else 1.0
    units = unit_rows(F)
    cosines, nearest = np.empty(len(A)), np.empty(len(A), dtype=np.int64)
    step = max(1, PIECE // len(F))
    for first in range(0, len(A), step):
        part = slice(first, first + step)
        similar = unit_rows(A[part]) @ units.T
        nearest[part] = similar.argmax(axis=1)
        cosines[part] = similar.max(axis=1)
    low, middle = np.quantile(cosines, (0.05, 0.5)).tolist()
    return (min(spread, 1.0), middle, low, mean_cosine(F)), cosines, nearest


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
    shown = A if len(A) <= DOTS else A[rng.choice(len(A), DOTS, replace=False)]
    places = 12 + positions(A, np.vstack([shown, F])) * [976, 576]
    everyone, first = len(shown), len(shown) + given
    plain, given_ones, others = np.split(places.round(1), [everyone, first])
    return [
        {"name": "plain", "radius": 2.5, "places": plain.tolist()},
        {"name": "chosen", "radius": 5, "places": others.tolist()},
        {"name": "given", "radius": 5, "places": given_ones.tolist()},
    ]


def _entry(item: int, labels: Any, value: str) -> dict[str, Any]:
    """Return one line of a list."""
    label = "" if labels is None else visible(labels[item], NAME)
    return {"item": int(item), "label": label, "value": value}
