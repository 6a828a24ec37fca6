"""How often items are drawn: inclusion probabilities in closed form, or counted in batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from dmsgd.designs.contract import ClosedForm, Design, inclusion_of
from dmsgd.designs.dpp import DPP
from dmsgd.designs.partition import SAMPLER, Partition
from dmsgd.designs.stream import Source, check_design
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, as_items, as_numbers, to_numpy
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.scalars import Seed, as_count
from dmsgd.schedules import Schedule
from dmsgd.spectra.eigenpairs import entropy

#: Batches that `estimate_inclusion` holds at a time.
PIECE = 1000


def class_shares(design: Source, labels: Any) -> dict[Any, float]:
    """Return a dict from each class to its expected share of a batch. The shares sum to 1. O(n).

    >>> import dmsgd
    >>> class_shares(dmsgd.Uniform(n=4, k=2), ["a", "a", "a", "b"])
    {'a': 0.75, 'b': 0.25}
    """
    inclusion = inclusion_of(design)
    names, codes = as_classes(labels, inclusion.size)
    shares = np.bincount(codes, inclusion) / inclusion.sum()
    return dict(zip(names.tolist(), shares.tolist(), strict=True))


def evenness(shares: Mapping[Any, float]) -> float:
    """Return how even shares are, up to 1 if all are equal: exp(entropy) / number of classes.

    >>> evenness({"a": 0.5, "b": 0.5}), evenness({"a": 1.0, "b": 0.0})
    (1.0, 0.5)
    """
    if not isinstance(shares, Mapping):
        raise TypeError(f"shares must map classes to numbers, got a {type(shares).__name__}")
    given = as_numbers(list(shares.values()), "shares")
    if given.min() < 0 or given.max() == 0:
        raise ValueError("shares must be at least 0, and one of them above it")
    return float(np.exp(entropy(given)) / len(shares))


def coverage(design: Source, steps: Any) -> FloatArray:
    """Return the expected fraction of items that occur in at least one of `steps` batches.

    steps: a number or an array of numbers; the result has its shape.

    Item i has occurred after t independent batches with probability 1 - (1 - b_i)^t; e epochs of m
    batches of a `Partition` and t more batches miss it with probability (1 - m b_i)^e (1 - t b_i).
    Raises ValueError for a schedule of a `Partition`: pass the `Partition` itself.

    >>> import dmsgd
    >>> coverage(dmsgd.Uniform(100, 10), [0, 1, 22]).round(2).tolist()
    [0.0, 0.1, 0.9]
    """
    _refuse_stored_partitions(design, "coverage")
    b, counts = inclusion_of(design), to_numpy(steps, "steps")
    if counts.dtype.kind not in "iu" or (counts < 0).any():
        raise ValueError(f"steps must be whole numbers of at least 0, got {steps!r}")
    epoch = design.batches if isinstance(design, Partition) else 1
    missed = np.maximum(1 - epoch * b, 0.0)
    times = (divmod(each, epoch) for each in counts.ravel().tolist())
    seen = [1 - np.mean(missed ** float(e) * (1 - b * float(t))) for e, t in times]
    return np.array(seen).reshape(counts.shape)


def _refuse_stored_partitions(source: Any, what: str) -> None:
    """Raise if this is a schedule of a Partition, whose batches depend on each other."""
    if getattr(getattr(source, "record", None), "sampler", "") == SAMPLER:
        drawn = "and this schedule was drawn from a Partition; pass the Partition itself"
        raise ValueError(f"{what} assumes independent batches, {drawn}")


def effective_batch(design: Source) -> float:
    """Return the effective size of a batch with unbiased weights, n² / Σ (1/b_i).

    Kish's (E Σ w)² / E Σ w² over the batch: k if uniform, 0 if an item is never drawn. O(n).

    >>> import dmsgd
    >>> round(effective_batch(dmsgd.Stratified(["a"] * 6 + ["b"] * 2, 2)), 6)
    1.6
    """
    b = inclusion_of(design)
    return 0.0 if (b < TINY).any() else float(design.n**2 / np.sum(1 / b))


def correlation(design: ClosedForm | DPP, i: Any, j: Any) -> FloatArray:
    """Return how strongly items i and j attract or avoid each other: C_ij, for broadcast numbers.

    C_ij = E[m_i m_j] / (b_i b_j) - 1, negative if they avoid each other. k-DPPs and DPPs are
    strongly Rayleigh (Borcea, Brändén, Liggett 2009), so that C_ij <= 0 for all i != j. Items that
    are never drawn give NaN. Raises TypeError if the design has no `joint`.

    >>> import dmsgd
    >>> float(correlation(dmsgd.Uniform(3, 2), 0, 1))
    -0.25
    """
    if not isinstance(design, ClosedForm | DPP):
        kind = type(design).__name__
        raise TypeError(f"correlation needs a design with joint probabilities, got {kind}")
    joint, b = design.joint(i, j), design.inclusion()
    product = b[as_items(i, design.n, "i")] * b[as_items(j, design.n, "j")]
    return np.asarray(joint / np.where(product > TINY, product, np.nan) - 1)


def estimate_inclusion(
    design: Design, draws: int, seed: Seed = None, *, workers: int = 1
) -> FloatArray:
    """Return the share of `draws` batches that contain each item, shape (n,); it sums to k.

    For designs without closed forms. With independent draws the standard error is
    sqrt(b (1 - b) / draws); those of `SwapChain` depend on each other, and the error is larger.

    >>> import dmsgd
    >>> estimate_inclusion(dmsgd.Uniform(4, 2), draws=1000, seed=0).round(1).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    check_design(design)
    draws, stream = as_count(draws, "draws"), design.stream(seed)
    counts = np.zeros(design.n, dtype=np.int64)
    size = stream.call_size(PIECE)
    for first in range(0, draws, size):
        batches = stream.sample(min(size, draws - first), first, workers)
        counts += np.bincount(batches.ravel(), minlength=design.n)
    return counts / draws


@final
@dataclass(frozen=True, eq=False)
class ScheduleCheck:
    """How often each item occurs in a schedule, against its inclusion probability.

    counts:   batches that contain each item, shape (n,).
    expected: steps b_i, shape (n,).
    p_value:  upper bound on the probability that some item's count is as extreme as the most
              extreme one here; small only if the batches were not drawn from their design.
    """

    counts: IntArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    p_value: float


def check_schedule(schedule: Schedule) -> ScheduleCheck:
    """Return how often each item occurs in a schedule, and how often it should.

    Each count is binomial, because batches are independent; a schedule of a `Partition` raises
    ValueError. The p-value is the smallest two-sided binomial one times n (Bonferroni), which holds
    although items of a batch depend on each other. See also `presample`.

    >>> import dmsgd
    >>> found = check_schedule(dmsgd.presample(dmsgd.Uniform(n=20, k=4), steps=50))
    >>> int(found.counts.sum()), bool(found.p_value > 1e-4)
    (200, True)
    """
    from scipy.stats import binom

    if not isinstance(schedule, Schedule):
        kind = type(schedule).__name__
        raise TypeError(f"schedule must be what dmsgd.presample returns, got {kind}")
    _refuse_stored_partitions(schedule, "check_schedule")
    steps, b = len(schedule), np.clip(schedule.inclusion(), 0.0, 1.0)
    counts = np.bincount(schedule.batches.ravel(), minlength=schedule.n)
    tails = np.minimum(binom.cdf(counts, steps, b), binom.sf(counts - 1, steps, b))
    p_value = float(min(1.0, schedule.n * 2 * tails.min()))
    return ScheduleCheck(counts, steps * b, p_value)
