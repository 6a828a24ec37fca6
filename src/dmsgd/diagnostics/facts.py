"""What can be said of the data alone, before any design."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.features import Features
from dmsgd.features.moments import column_moments


def facts(X: Features, n: int, y: Any) -> dict[str, Any]:
    """Return what an `Examination` says of the data alone, from all or some of its n items."""
    squares = np.sort(X.row_squares())
    tenth = max(X.shape[0] // 10, 1)
    shortest = squares[squares > 0][:tenth].mean()
    with np.errstate(over="ignore"):
        lengths = squares[-tenth:].mean() / shortest
    names, counts = ([], []) if y is None else np.unique(y, return_counts=True)
    return {
        "n": n,
        "counted": int(X.shape[0]),
        "d": int(X.shape[1]),
        "classes": dict(zip(np.asarray(names).tolist(), np.asarray(counts).tolist(), strict=True)),
        "lengths": float(lengths),
        "scales": _scales(X),
        "duplicates": _duplicates(X),
        "empty": int(np.sum(squares == 0)),
    }


def _scales(X: Features) -> float:
    """Return the largest standard deviation of a column over the median of those that vary."""
    deviations = column_moments(X)[1].deviations
    varying = deviations[deviations > 0]
    return float(varying.max() / np.median(varying)) if varying.size else 1.0


def _duplicates(X: Features) -> int:
    """Return how many rows equal an earlier one: equal rows have equal projections."""
    rng = np.random.default_rng(0)
    projected = X.times(rng.normal(size=(X.d, 2)))
    projected = np.round(projected / np.abs(projected).max(), 12)
    return int(X.shape[0] - np.unique(projected, axis=0).shape[0])
