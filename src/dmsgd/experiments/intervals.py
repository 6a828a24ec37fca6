"""Means over seeds and how far they can be trusted: 95 % intervals."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from dmsgd.arrays import FloatArray


def margin(values: FloatArray) -> float:
    """Return the half-width of the 95 % interval for the mean of `values` (Student's t).

    NaN for a single value: one run says nothing about the next.
    """
    if values.size < 2:
        return float("nan")
    return float(stdtrit(values.size - 1, 0.975) * values.std(ddof=1) / np.sqrt(values.size))


def paired(ours: FloatArray, theirs: FloatArray) -> tuple[float, float]:
    """Return the mean difference over seeds, ours - theirs, and its half-width."""
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    return float(difference.mean()), margin(difference)


def show(values: FloatArray, digits: int = 1, scale: float = 100.0) -> str:
    """Return "86.1 ± 0.8": the mean and the half-width, in percent unless `scale` says otherwise.

    >>> show(np.array([0.86, 0.87, 0.88]))
    '87.0 ± 2.5'
    """
    values = scale * np.asarray(values, dtype=np.float64)
    return shown(float(values.mean()), margin(values), digits)


def shown(mean: float, half: float, digits: int = 1, sign: bool = False) -> str:
    """Return "86.1 ± 0.8", or "86.1" when there is no interval; `sign` writes +0.8 for 0.8."""
    number = f"{mean:+.{digits}f}" if sign else f"{mean:.{digits}f}"
    return number if np.isnan(half) else f"{number} ± {half:.{digits}f}"
