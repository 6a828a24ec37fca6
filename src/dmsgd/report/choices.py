"""What the page shows for one position of its sliders, and for uniform batches of the same size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.designs import KDPP, ClosedForm, Uniform
from dmsgd.designs.tuning import evenness
from dmsgd.diagnostics import coverage, effective_batch, effective_items, estimate_similarity
from dmsgd.diagnostics.prospects import halves, priced
from dmsgd.features import Features
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.seeding import Seed
from dmsgd.report.items import packed

#: Items listed as the most and the least favoured.
LISTED = 12
#: Classes whose shares are listed; of more, the commonest and the rarest.
CLASSES = 200
#: Batches shown, and batches that similarity is estimated from.
SHOWN_BATCHES, DRAWS = 3, 32
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

    @property
    def listed(self) -> IntArray:
        """Return the numbers of the classes whose shares are listed."""
        numbers = np.arange(len(self.names))
        if numbers.size <= CLASSES:
            return numbers
        return np.concatenate([numbers[: CLASSES // 2], numbers[-CLASSES // 2 :]])


def choice(design: KDPP, data: Data, seed: Seed, setup: float) -> dict[str, Any]:
    """Return what one (w, k) of the sliders shows; the spectrum took `setup` seconds."""
    b = design.inclusion()
    order = np.argsort(b, kind="stable")
    listed = min(LISTED, design.n // 2)
    found, batches = _shown(design, data, seed, setup)
    ratio = b * design.n / design.k
    found["ratio"] = ratio
    found["quantiles"] = np.quantile(ratio, np.linspace(0, 1, 51)).round(4).tolist()
    found["most"], found["least"] = order[::-1][:listed].tolist(), order[:listed].tolist()
    found["effective"] = round(effective_batch(design), 2)
    weighted, repulsion, price = halves(design, batches, setup, seed)
    found["repulsion"] = {"value": repulsion.value, "error": repulsion.error}
    found["same_b"] = {"seconds": price.draw, "setup": price.setup}
    uniform = Uniform(design.n, design.k)
    for name, judged in (("uniform", uniform), ("same_b", weighted), ("diverse", design)):
        value = estimate_similarity(judged, design.spectrum, DRAWS, seed).value
        found.setdefault("similarity", {})[name] = value
    return found


def baseline(design: ClosedForm, data: Data, seed: Seed) -> dict[str, Any]:
    """Return what is shown of batches that know no kernel: uniform, stratified."""
    return _shown(design, data, seed, 0.0)[0]


def _shown(
    design: ClosedForm, data: Data, seed: Seed, setup: float
) -> tuple[dict[str, Any], IntArray]:
    """Return what all designs have in common, and the batches that were drawn to see it."""
    shares = _shares(design, data)
    price, batches = priced(design, setup, seed)
    found = {
        "shares": [round(shares[c], 6) for c in data.listed],
        "evenness": round(evenness(dict(enumerate(shares))), 4) if shares else None,
        "coverage": coverage(design, _steps(design)).round(4).tolist(),
        "steps": _steps(design).tolist(),
        "seen": float(coverage(design, math.ceil(design.n / design.k))),
        "items": effective_items(design) / design.n,
        "batches": batches[:SHOWN_BATCHES].tolist(),
        "seconds": price.draw,
        "setup": price.setup,
    }
    return found, batches


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
