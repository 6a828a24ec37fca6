"""What is run on partitions, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.intervals import margin

TITLE = "Every item once an epoch: diverse partitions against plain shuffling"

#: The tasks; see `partitions.tasks`.
TASKS = ("2 columns", "10 columns", "digits", "mnist", "flowers")

#: Those that are regressions, and those of which a seed takes seconds.
REGRESSIONS, LARGE = ("2 columns", "10 columns"), ("mnist", "flowers")

#: What is compared with, and what else has no kernel; see `partitions.arms`.
SHUFFLED, UNIFORM, GRAB = "shuffled", "independent, uniform", "GraB-like order"

#: Where gradients are measured, and lengths of training.
POINTS, LENGTHS = ("start", "trained"), ("early", "late")


@dataclass(frozen=True)
class Config:
    """What is run.

    seeds, large_seeds: to report; `large_seeds` at most are those of LARGE tasks.
    tasks:    of TASKS.
    k, large_k: batch sizes.
    items:    of MNIST, drawn anew for every seed.
    early, late: epochs of a short and of a long training; the rate falls to 0 in each.
    looks:    epochs of the long training after which its loss is looked at; `late` is the last.
    rates, class_rates: of regressions and of the others, in units of 1/L. Each arm takes the best
              for each length.
    tuning, large_tuning: seeds that choose the rates and are not reported.
    streams:  of batches, over which the losses of a seed are averaged in regressions.
    measured, large_measured: epochs of batches whose gradients are measured at fixed weights.
    settled:  epochs of a GraB-like order before its gradients are measured.
    workers:  processes that share the seeds.
    """

    seeds: int = 20
    large_seeds: int = 10
    tasks: tuple[str, ...] = TASKS
    k: int = 16
    large_k: int = 64
    items: int = 6400
    early: int = 1
    late: int = 10
    looks: tuple[float, ...] = (0.25, 0.5, 1, 2, 4, 7, 10)
    rates: tuple[float, ...] = tuple(float(2 ** (power / 2)) for power in range(-14, 4))
    class_rates: tuple[float, ...] = tuple(float(2 ** (power / 2)) for power in range(2, 13))
    tuning: int = 5
    large_tuning: int = 2
    streams: int = 4
    measured: int = 40
    large_measured: int = 4
    settled: int = 3
    workers: int = 1

    def grid(self, task: str) -> tuple[float, ...]:
        """Return the rates that are tried on a task."""
        return self.rates if task in REGRESSIONS else self.class_rates

    def reported(self, task: str) -> int:
        """Return the number of seeds that are reported of a task."""
        return min(self.seeds, self.large_seeds) if task in LARGE else self.seeds

    def unreported(self, task: str) -> int:
        """Return the number of seeds that choose the rates of a task."""
        return self.large_tuning if task in LARGE else self.tuning


QUICK = Config(
    seeds=5, tasks=("2 columns", "digits"), late=4, looks=(0.5, 1, 2, 4), tuning=2, streams=2,
    measured=10,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """One way to batch the items of one task; seeds are the first axis.

    rates:    (2,), the best for a short and for a long training.
    variance: (seeds, 2) of a batch's gradient over that of uniform batches, which is known exactly;
              at the start of training and after a short one.
    quarter, half: (seeds, 2) squared error of the mean gradient over this part of an epoch, over
              that of as many independent uniform batches.
    loss:     (seeds, 2) of all training items after a short and a long training, less the least.
    accuracy: (seeds, 2) on items that were not trained on; no numbers in regression.
    curve:    (seeds, looks) the loss of the long training.
    seconds:  (seeds,) of CPU time that a batch took to draw.
    """

    task: str
    arm: str
    rates: FloatArray
    variance: FloatArray
    quarter: FloatArray
    half: FloatArray
    loss: FloatArray
    accuracy: FloatArray
    curve: FloatArray
    seconds: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All ways on all tasks, the items and the batch size of each, and what updates cost.

    update: CPU seconds of one step of training, by task.
    """

    config: Config
    sizes: dict[str, tuple[int, int]]
    update: dict[str, float]
    outcomes: tuple[Outcome, ...]

    def arms(self, task: str) -> dict[str, Outcome]:
        """Return what was compared on a task, by name."""
        return {each.arm: each for each in self.outcomes if each.task == task}

    def logs(self, task: str, arm: str, what: str, at: int) -> FloatArray:
        """Return log(arm / shuffled) of a measure, by seed."""
        ours, theirs = (getattr(self.arms(task)[name], what)[:, at] for name in (arm, SHUFFLED))
        return np.asarray(np.log(ours / theirs))


def ratio(logs: FloatArray) -> tuple[float, float, float]:
    """Return the geometric mean of ratios and its 95 % interval, from their logarithms."""
    mean, half = float(logs.mean()), margin(logs)
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))
