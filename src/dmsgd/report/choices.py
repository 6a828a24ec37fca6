"""What the page shows for one position of its sliders, and for uniform batches of the same size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dmsgd.designs import KDPP, ClosedForm, Uniform, Weighted
from dmsgd.diagnostics import coverage, effective_batch, effective_items, estimate_similarity
from dmsgd.diagnostics.frequency import evenness
from dmsgd.diagnostics.prospects import halves, priced
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.scalars import Seed
from dmsgd.report.data import Data
from dmsgd.report.items import packed

#: Items listed as the most and the least favoured.
LISTED = 12
#: Batches shown, and batches that similarity is estimated from.
SHOWN_BATCHES, DRAWS = 3, 32
#: Bytes of the page tell inclusion ratios from 2^-EXTENT to 2^EXTENT.
EXTENT = 20.0


def choice(design: KDPP, data: Data, seed: Seed, setup: float) -> dict[str, Any]:
    """Return what one (w, k) of the sliders shows; the spectrum took `setup` seconds."""
    b = design.inclusion()
    order = np.argsort(b, kind="stable")
    listed = min(LISTED, design.n // 2)
    found, weighted = diverse(design, data, seed, setup)
    ratio = b * design.n / design.k
    found["ratio"] = ratio
    found["quantiles"] = np.quantile(ratio, np.linspace(0, 1, 51)).round(4).tolist()
    found["most"], found["least"] = order[::-1][:listed].tolist(), order[:listed].tolist()
    uniform = Uniform(design.n, design.k)
    for name, judged in (("uniform", uniform), ("same_b", weighted), ("diverse", design)):
        value = estimate_similarity(judged, design.spectrum, DRAWS, seed).value
        found.setdefault("similarity", {})[name] = value
    return found


def diverse(design: KDPP, data: Data, seed: Seed, setup: float) -> tuple[dict[str, Any], Weighted]:
    """Return what tables show of a k-DPP, and its b without repulsion."""
    found, batches = _shown(design, data, seed, setup)
    weighted, repulsion, price = halves(design, batches, setup, seed)
    found["repulsion"] = {"value": repulsion.value, "error": repulsion.error}
    found["same_b"] = {"seconds": price.draw, "setup": price.setup}
    return found, weighted


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
        "effective": round(effective_batch(design), 2),
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
    return list((np.bincount(data.codes, b, minlength=len(data.labels)) / b.sum()).tolist())


def mentioned(table: list[list[dict[str, Any]]]) -> IntArray:
    """Return the items that the lists and the example batches name."""
    parts = [
        np.ravel(each[name])
        for row in table
        for each in row
        for name in ("most", "least", "batches")
    ]
    return np.unique(np.concatenate(parts)).astype(np.int64)


def for_page(found: dict[str, Any]) -> dict[str, Any]:
    """Return a choice for the page: the ratios of all items as bytes of their logarithm.

    0 is an item that is never drawn; 1 to 255 span the other ratios.
    """
    ratio = found["ratio"]
    logs = np.log2(np.clip(ratio, 2**-EXTENT, 2**EXTENT))
    low, high = float(logs.min()), float(logs.max())
    steps = np.rint(254 * (logs - low) / (high - low)) if high > low else np.zeros(logs.size)
    listed = {name: [[i, float(ratio[i])] for i in found[name]] for name in ("most", "least")}
    bytes_ = np.where(ratio > 0, 1 + steps, 0)
    return {**found, **listed, "ratio": packed(bytes_, "u1"), "range": [low, high]}
