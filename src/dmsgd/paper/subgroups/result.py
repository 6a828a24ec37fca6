"""What is run on hidden subgroups, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.intervals import paired

TITLE = "Hidden subgroups: parity of digits that are rare inside each class"

#: The rarest digit of each class.
RAREST = [4, 9]

#: The checkpoint at which methods are compared besides the last.
EARLY = 1

#: (seeds, 10) accuracies by digit -> one number per seed.
MEASURES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "worst": lambda by_digit: by_digit.min(axis=1),
    "rarest": lambda by_digit: by_digit[:, RAREST].mean(axis=1),
    "mean": lambda by_digit: by_digit.mean(axis=1),
}


@dataclass(frozen=True)
class Config:
    """What is run.

    largest, ratio: sizes inside a class fall from `largest` to largest / ratio.
    minority:       odd items for each even one, so that the classes differ in size too.
    rank:           of the RBF kernel's factor; its scale is the median heuristic's.
    checkpoints:    steps after which accuracy is measured; the last ends the run.
    rates:          of plain SGD, the same for all methods: the best for uniform batches, by parity,
                    on items drawn as the training items are (nobody has balanced ones).
    test_per_digit: items of each digit in the test set.
    workers:        processes that share the trainings.
    """

    seeds: int = 40
    k: int = 50
    largest: int = 1500
    ratio: float = 100.0
    minority: float = 0.5
    rank: int = 400
    units: int = 128
    checkpoints: tuple[int, ...] = (100, 300, 1000, 3000)
    rates: tuple[float, ...] = (0.3, 1.0, 3.0)
    test_per_digit: int = 500
    workers: int = 1


QUICK = Config(
    seeds=2, k=30, largest=200, rank=200, checkpoints=(50, 100, 300), rates=(0.3,),
    test_per_digit=100,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did.

    accuracy: (seeds, checkpoints, 10) by digit, in the order of `Result.sizes`.
    shares:   (seeds, 10), expected share of a batch by digit in the same order.
    """

    method: str
    accuracy: FloatArray
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All methods. `sizes`: training items by digit: even from the commonest, then odd."""

    config: Config
    rate: float
    sizes: IntArray
    outcomes: tuple[Outcome, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were run, in their order."""
        return tuple(each.method for each in self.outcomes)

    def outcome(self, method: str) -> Outcome:
        """Return what a method did."""
        return next(each for each in self.outcomes if each.method == method)

    def accuracy(self, method: str, measure: str, checkpoint: int = -1) -> FloatArray:
        """Return "worst", "mean" or "rarest" digit accuracy, one value per seed."""
        by_digit = self.outcome(method).accuracy[:, checkpoint]
        return np.asarray(MEASURES[measure](by_digit))

    def gain(self, method: str, measure: str, checkpoint: int = -1) -> tuple[float, float]:
        """Return the mean lead over uniform batches in points, paired by seed, and its margin."""
        ours, uniform = (
            100 * self.accuracy(name, measure, checkpoint) for name in (method, "uniform")
        )
        return paired(ours, uniform)
