"""What a schedule shows against what it should show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from dmsgd.diagnostics.exposure import refuse_stored_partitions
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.schedules import Schedule


@final
@dataclass(frozen=True, eq=False)
class Observed:
    """How often each item was drawn, against its inclusion probability.

    counts:   draws of each item, shape (n,).
    expected: steps b_i, shape (n,).
    unseen, expected_unseen: items that were never drawn, and how many of those to expect.
    p_value:  chance that some item's count is as extreme as the most extreme one here, at most;
              small only if the batches are not draws of their design.
    """

    counts: IntArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    unseen: int
    expected_unseen: float
    p_value: float


def observed_inclusion(schedule: Schedule) -> Observed:
    """Return expected against observed inclusion of a schedule's items.

    Each count is binomial, because draws are independent. The p-value is the smallest two-sided
    binomial one times n (Bonferroni), which holds although items of a batch depend on each other.
    O(steps k + n).

    >>> import dmsgd
    >>> found = observed_inclusion(dmsgd.presample(dmsgd.Uniform(n=20, k=4), steps=50))
    >>> int(found.counts.sum()), bool(found.p_value > 1e-4)
    (200, True)
    """
    from scipy.stats import binom

    if not isinstance(schedule, Schedule):
        raise TypeError(
            f"observed_inclusion takes a Schedule, got {type(schedule).__name__}; make one with "
            f"dmsgd.presample(design, steps)"
        )
    refuse_stored_partitions(schedule, "observed_inclusion")
    steps, b = len(schedule), np.clip(schedule.inclusion(), 0.0, 1.0)
    counts = np.bincount(schedule.batches.ravel(), minlength=schedule.n)
    tails = np.minimum(binom.cdf(counts, steps, b), binom.sf(counts - 1, steps, b))
    return Observed(
        counts=counts,
        expected=steps * b,
        unseen=int(np.sum(counts == 0)),
        expected_unseen=float(np.sum((1 - b) ** steps)),
        p_value=float(min(1.0, schedule.n * 2 * tails.min())),
    )
