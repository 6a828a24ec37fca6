"""Means over seeds, how far they can be trusted, and when a statement about them holds."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

from dmsgd.inputs.arrays import FloatArray

#: Standard errors in half of a 95 % interval, where there are many draws.
NORMAL = float(ndtri(0.975))

#: Fewer runs than these have an interval, but say nothing: with two it is 13 standard errors wide.
ENOUGH = 5


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


def holds(lead: float, half: float = 0.0, runs: int | None = None) -> bool | None:
    """Return whether the interval lead ± half lies above 0: the one rule for all statements.

    "A is better than B" is asked of A - B, "less than 2 %" of 2 % minus the share. What is known
    without error, such as a closed form, has half = 0 and no runs; all else says how many `runs`
    the interval is of. None for fewer than ENOUGH of them, and if half is NaN.

    >>> holds(0.54, 0.53, 10), holds(0.53, 0.54, 10), holds(0.5, 0.5, 10), holds(9.0, 0.1, 2)
    (True, False, False, None)
    """
    if np.isnan(half) or (runs is not None and runs < ENOUGH):
        return None
    return bool(lead - half > 0)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the centre and the half-width of Wilson's 95 % interval for a share, as of runs.

    >>> centre, half = wilson(9, 10)
    >>> round(centre - half, 3), round(centre + half, 3)
    (0.596, 0.982)
    """
    z = NORMAL
    centre = (successes + z**2 / 2) / (trials + z**2)
    half = z * np.sqrt(successes * (trials - successes) / trials + z**2 / 4) / (trials + z**2)
    return float(centre), float(half)


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
