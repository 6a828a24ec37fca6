"""The rows of the comparison that sliders do not reach: k-DPPs with each target."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from dmsgd.designs import DesignOptions, TargetName
from dmsgd.diagnostics.bench import unasked
from dmsgd.diagnostics.sample import PRESCRIBED, taken
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.messages import visible
from dmsgd.inputs.scalars import Seed, seed_key
from dmsgd.report.choices import diverse
from dmsgd.report.data import Data

#: Items that targets are prescribed for with a linear kernel, at most.
ITEMS = 5000
TARGETS: tuple[TargetName, ...] = ("uniform", "balanced", "density")
#: Characters of a reason.
REASON = 200


def with_targets(data: Data, k: int, settings: DesignOptions, seed: Seed) -> list[dict[str, Any]]:
    """Return what the design that was asked for would do with each other target, or why not."""
    part = _part(data, k, settings, seed)
    asked = [replace(settings, target=name) for name in TARGETS if name != settings.target]
    if data.codes is None:
        asked = [each for each in asked if each.target != "balanced"]
    if settings.target is not None:
        asked.append(replace(settings, target=None))
    return [_row(part, k, each, seed) for each in asked]


def _row(data: Data, k: int, settings: DesignOptions, seed: Seed) -> dict[str, Any]:
    name = "no target" if settings.target is None else f"target {settings.target}"
    about = {"name": name, "of": data.X.n}
    began = time.perf_counter()
    try:
        with unasked():
            design = data.design(settings, k)
            return about | diverse(design, data, seed, time.perf_counter() - began)[0]
    except (ValueError, ImportError) as error:  # out of reach, or of an extra: the page says why
        return about | {"reason": visible(" ".join(str(error).split()), REASON)}


def _part(data: Data, k: int, settings: DesignOptions, seed: Seed) -> Data:
    """Return as many of the items as targets are quick for."""
    narrow = settings.kernel == "linear" and data.X.d <= PRESCRIBED
    most = max(ITEMS if narrow else PRESCRIBED, 5 * k)
    if data.X.n <= most:
        return data
    rng = np.random.default_rng(seed_key(seed))
    rows: IntArray = np.sort(rng.choice(data.X.n, most, replace=False))
    codes = None if data.codes is None else data.codes[rows]
    return Data(taken(data.X, rows), codes, data.labels, data.rows[rows], None, None)
