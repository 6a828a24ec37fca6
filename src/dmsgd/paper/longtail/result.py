"""What is run on the long-tailed digits, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from dmsgd.inputs.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Config:
    """What is run.

    `weights` are the label weights w of the two k-DPPs; class c has largest · decay^c items.
    Accuracy is measured after each of `checkpoints` steps; `early` is one of them, and the last
    ends the run.
    """

    seeds: int = 10
    k: int = 20
    weights: tuple[float, float] = (0.0, 0.7)
    rate: float = 0.5
    checkpoints: tuple[int, ...] = (5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 400, 600, 800)
    early: int = 50
    largest: int = 120
    decay: float = 0.7
    test_per_class: int = 50


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did.

    shares:   (classes,) expected share of a batch by class, commonest first; from `inclusion()`.
    accuracy: (seeds, checkpoints) on the balanced test set.
    setup, sample, step: seconds (median over seeds) to build the design, to draw one batch and to
    take one training step with it.
    """

    name: str
    shares: FloatArray
    accuracy: FloatArray
    setup: float
    sample: float
    step: float


@dataclass(frozen=True, eq=False)
class Result:
    """All methods on the same data; `sizes` are the class sizes in training, commonest first."""

    config: Config
    sizes: IntArray
    outcomes: tuple[Outcome, ...]

    def __getitem__(self, name: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.name == name)

    def accuracy(self, name: str, step: int) -> FloatArray:
        """Return the accuracy of a method after `step` steps, one value per seed."""
        return self[name].accuracy[:, self.config.checkpoints.index(step)]
