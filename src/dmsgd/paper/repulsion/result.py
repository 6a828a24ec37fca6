"""What is run on repulsion, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.intervals import margin

TITLE = "Where repulsion pays: steps to a loss when every item is as likely"

#: What is compared with, and the rest of what draws no items apart.
UNIFORM, SHUFFLED = "uniform", "shuffled epochs"

#: The settings; see `repulsion.settings`.
SETTINGS = ("1-d", "2-d", "3-d", "many items", "copies", "skewed copies", "2 columns",
            "10 columns", "softmax", "blobs", "digits", "mnist", "nmf")  # fmt: skip

#: Those of which a run takes seconds.
SLOW = ("many items", "softmax", "blobs", "digits", "mnist")


@dataclass(frozen=True)
class Config:
    """What is run.

    settings:    of SETTINGS.
    items, many: drawn anew for every seed, powers of two; `many` are those of "many items".
    ks, slow_ks: batch sizes, powers of two; `slow_ks` are those of SLOW.
    streams, slow_streams: of batches, over which the loss is averaged: so many to choose the rate,
                 so many others to report, and for uniform batches twice as many to set the losses.
    steps:       of a run.
    early, late: the losses to reach are a tenth above those of uniform batches after so many
                 steps, at their best rate.
    rates:       in units of 1/L, the same for all; the best are chosen anew for every seed.
    stretch:     of RBF scales, over `suggest_scale`.
    nmf_k, nmf_steps, nmf_early, nmf_late: the same for NMF.
    forgetting:  forget factors of NMF, in place of rates.
    fall_ks:     batch sizes at which the fall of the variance is measured, on `fall_seeds` seeds.
    workers:     processes that share the runs.
    """

    seeds: int = 20
    settings: tuple[str, ...] = SETTINGS
    items: int = 512
    many: int = 32768
    ks: tuple[int, ...] = (4, 16, 64)
    slow_ks: tuple[int, ...] = (16,)
    streams: int = 4
    slow_streams: int = 2
    steps: int = 1200
    early: int = 30
    late: int = 300
    rates: tuple[float, ...] = tuple(float(2 ** (power / 2)) for power in range(-16, 4))
    stretch: float = 3.0
    nmf_k: int = 16
    nmf_steps: int = 150
    nmf_early: int = 5
    nmf_late: int = 50
    forgetting: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9)
    fall_ks: tuple[int, ...] = (4, 8, 16, 32, 64)
    fall_seeds: int = 5
    workers: int = 1


QUICK = Config(
    seeds=3, settings=("1-d", "2-d", "copies", "2 columns", "digits"), items=256,
    ks=(16,), steps=600, late=200, fall_ks=(4, 16), fall_seeds=2,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """One way to draw batches on one problem.

    rates:    (seeds, 3), chosen for the early loss, the late one, and the decayed run, if any.
    steps:    (seeds, 2) to the early and the late loss; where one is not reached, ten times as many
              as other streams took, and all of a run.
    decayed:  (seeds,) excess loss after `late` steps with a rate that falls to 0, over that of the
              start; no numbers for k-means and NMF, which have many optima.
    variance: (seeds, 2) of a batch's gradient over that of uniform batches, at the start and at the
              optimum; no numbers where there are no gradients.
    """

    problem: str
    k: int
    arm: str
    rates: FloatArray
    steps: FloatArray
    decayed: FloatArray
    variance: FloatArray


@dataclass(frozen=True, eq=False)
class Fall:
    """How the variance of a batch's gradient falls with k: its ratio to uniform, (seeds, ks)."""

    problem: str
    arm: str
    ks: tuple[int, ...]
    ratio: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All ways on all problems."""

    config: Config
    outcomes: tuple[Outcome, ...]
    falls: tuple[Fall, ...]

    def cases(self) -> list[tuple[str, int]]:
        """Return the problems and batch sizes, in order."""
        return list(dict.fromkeys((each.problem, each.k) for each in self.outcomes))

    def arms(self, problem: str, k: int) -> dict[str, Outcome]:
        """Return what was compared on a problem, by name."""
        of = (each for each in self.outcomes if (each.problem, each.k) == (problem, k))
        return {each.arm: each for each in of}

    def seen(self, problem: str, k: int) -> list[str]:
        """Return what kernels and cells see of the items of a problem, by name."""
        apart = (name for name in self.arms(problem, k) if name not in (UNIFORM, SHUFFLED))
        return list(dict.fromkeys(name.split(" ", 2)[2] for name in apart))

    def logs(self, problem: str, k: int, arm: str, what: str) -> FloatArray:
        """Return log(arm / uniform) of "early" or "late" steps or the "decayed" loss, by seed."""
        arms = self.arms(problem, k)
        return np.asarray(np.log(measured(arms[arm], what) / measured(arms[UNIFORM], what)))


def measured(outcome: Outcome, what: str) -> FloatArray:
    """Return "early" or "late" steps or the "decayed" loss, by seed."""
    if what == "decayed":
        return outcome.decayed
    return np.asarray(outcome.steps[:, ("early", "late").index(what)])


def ratio(logs: FloatArray) -> tuple[float, float, float]:
    """Return the geometric mean of ratios over seeds and the ends of its 95 % interval."""
    mean, half = float(logs.mean()), margin(logs)
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))
