"""What the page shows for one position of its sliders, and for uniform batches of the same size."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.designs import KDPP, ClosedForm, Uniform
from dmsgd.designs.tuning import evenness
from dmsgd.diagnostics import coverage, effective_batch, estimate_similarity
from dmsgd.features import Features
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.seeding import Seed
from dmsgd.report.items import packed
from dmsgd.spectra import Spectrum

#: Items listed as the most and the least favoured.
LISTED = 12
#: Batches shown, and batches that similarity is estimated from.
SHOWN_BATCHES, DRAWS = 3, 32
#: Rounds of draws that are timed; the median counts.
ROUNDS = 5
#: An inclusion ratio of 2^(±EXTENT) or beyond has the largest or smallest dot.
EXTENT = 6.0


@final
@dataclass(frozen=True, eq=False)
class Data:
    """The items that the report looks at, a sample where there are very many."""

    X: Features
    codes: npt.NDArray[np.int64] | None
    names: list[str]
    rows: IntArray
    texts: list[str] | None
    images: npt.NDArray[np.uint8] | None


def choice(design: KDPP, data: Data, seed: Seed) -> dict[str, Any]:
    """Return what one (w, k) of the sliders shows."""
    b = design.inclusion()
    order = np.argsort(b, kind="stable")
    listed = min(LISTED, design.n // 2)
    found = baseline(design, data, seed, design.spectrum)
    ratio = b * design.n / design.k
    found["ratio"] = ratio
    found["quantiles"] = np.quantile(ratio, np.linspace(0, 1, 51)).round(4).tolist()
    found["most"], found["least"] = order[::-1][:listed].tolist(), order[:listed].tolist()
    found["effective"] = round(effective_batch(design), 2)
    return found


def baseline(
    design: ClosedForm, data: Data, seed: Seed, spectrum: Spectrum | None = None
) -> dict[str, Any]:
    """Return what uniform and diverse batches have in common."""
    batches = design.sample(DRAWS, seed)  # also compiles, which is no part of a draw
    shares = _shares(design, data)
    found = {
        "shares": [round(share, 6) for share in shares],
        "evenness": round(evenness(dict(enumerate(shares))), 4) if shares else None,
        "coverage": coverage(design, _steps(design)).round(4).tolist(),
        "steps": _steps(design).tolist(),
        "seen": float(coverage(design, math.ceil(design.n / design.k))),
        "batches": batches[:SHOWN_BATCHES].tolist(),
        "seconds": _seconds(design, seed),
    }
    if spectrum is not None:
        uniform = Uniform(design.n, design.k)
        for name, judged in (("similarity", design), ("uniform_similarity", uniform)):
            found[name] = estimate_similarity(judged, spectrum, DRAWS, seed).value
    return found


def _seconds(design: ClosedForm, seed: Seed) -> float:
    """Return the median time of a draw."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        design.sample(DRAWS, seed)
        rounds.append((time.perf_counter() - began) / DRAWS)
    return float(np.median(rounds))


def _steps(design: ClosedForm) -> IntArray:
    """Return numbers of steps up to five epochs, evenly spaced."""
    return np.unique(np.linspace(0, 5 * design.n / design.k, 41).round().astype(np.int64))


def _shares(design: ClosedForm, data: Data) -> list[float]:
    if data.codes is None:
        return []
    b = design.inclusion()
    return list((np.bincount(data.codes, b, minlength=len(data.names)) / b.sum()).tolist())


def mentioned(table: list[list[dict[str, Any]]]) -> IntArray:
    """Return the items that the lists and the example batches name."""
    parts = [
        np.ravel(each[name])
        for row in table
        for each in row
        for name in ("most", "least", "batches")
    ]
    return np.unique(np.concatenate(parts)).astype(np.int64)


def for_page(found: dict[str, Any], shown: IntArray) -> dict[str, Any]:
    """Return a choice for the page: the ratios of the points on the map as bytes of their log."""
    ratio = found["ratio"]
    logs = np.log2(np.clip(ratio, 2**-EXTENT, 2**EXTENT))
    bytes_ = np.rint((logs / EXTENT + 1) * 127.5)
    listed = {name: [[i, float(ratio[i])] for i in found[name]] for name in ("most", "least")}
    return {**found, **listed, "ratio": packed(bytes_[shown], "u1")}
