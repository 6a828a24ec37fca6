"""Who is seen, and how soon: closed forms of the inclusion probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.designs.design import inclusion_of
from dmsgd.designs.partition import EXCHANGE, Partition
from dmsgd.designs.stream import Source, check_design
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, to_numpy
from dmsgd.inputs.scalars import as_fraction


def coverage(design: Source, steps: Any) -> FloatArray:
    """Return the expected fraction of items seen at least once in `steps` batches.

    steps: a number or an array of numbers; the result has its shape. Draws are independent, so
    item i has been seen after t of them with probability 1 - (1 - b_i)^t. Those of an epoch of a
    `Partition` hold no item twice, so e epochs of m batches and t more of the next miss it with
    probability (1 - m b_i)^e (1 - t b_i). O(n) for each number.

    >>> import dmsgd
    >>> coverage(dmsgd.Uniform(100, 10), [0, 1, 22]).round(2).tolist()
    [0.0, 0.1, 0.9]
    """
    refuse_stored_partitions(design, "coverage")
    b = inclusion_of(design)
    counts = to_numpy(steps, "steps")
    if counts.dtype.kind not in "iu" or (counts < 0).any():
        raise ValueError(f"steps must be whole numbers of at least 0, got {steps!r}")
    epoch = design.batches if isinstance(design, Partition) else 1
    missed = np.maximum(1 - epoch * b, 0.0)
    seen = [
        1 - np.mean(missed ** float(t // epoch) * (1 - b * float(t % epoch)))
        for t in counts.ravel().tolist()
    ]
    return np.array(seen).reshape(counts.shape)


def refuse_stored_partitions(source: Any, what: str) -> None:
    """Raise if this is a schedule of partitions, whose draws depend on each other."""
    if getattr(getattr(source, "record", None), "sampler", "") == EXCHANGE:
        raise ValueError(
            f"{what} takes draws to be independent, and this schedule was drawn from a Partition, "
            f"in which no item comes twice an epoch; ask the Partition itself, or count items in "
            f"schedule.batches"
        )


def neglected(design: Source, below: float = 0.1) -> IntArray:
    """Return the items with b_i < `below` times the uniform k/n, the least likely first.

    Their unbiased weights 1 / (N b_i) are more than 1 / `below` times those of uniform batches. The
    result has as many item numbers as there are such items. O(n log n).

    >>> import dmsgd, numpy as np
    >>> neglected(dmsgd.diversify(np.vstack([np.eye(4), 0.1 * np.eye(4)]), k=2)).tolist()
    [4, 5, 6, 7]
    """
    check_design(design)
    b = inclusion_of(design)
    order = np.argsort(b, kind="stable")
    return order[b[order] < as_fraction(below, "below") * design.k / design.n]


def effective_items(design: Source) -> float:
    """Return (Σ b)² / Σ b²: on how many equally likely items the batches would look as uneven.

    It is n for uniform batches; the objective of biased training rests on so many items. O(n).

    >>> import dmsgd
    >>> round(effective_items(dmsgd.Stratified(["a"] * 6 + ["b"] * 2, 2)), 6)
    6.0
    """
    b = inclusion_of(design)
    return float(b.sum() ** 2 / np.sum(b**2))


def effective_batch(design: Source) -> float:
    """Return n² / Σ (1/b_i): the effective size of a batch with unbiased weights.

    Kish's (E Σ w)² / E Σ w² over the batch. It is k for uniform batches and 0 if an item is never
    drawn; far below k the unbiased weights cost more than diversity can give. O(n).

    >>> import dmsgd
    >>> round(effective_batch(dmsgd.Stratified(["a"] * 6 + ["b"] * 2, 2)), 6)
    1.6
    """
    b = inclusion_of(design)
    return 0.0 if (b < TINY).any() else float(design.n**2 / np.sum(1 / b))
