"""The variance of every kernel's batch gradients along training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.diagnostics.variance import gradient_variance, same_variance, uniform_variance
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.noise.problems import Maker, digits, flowers, regression
from dmsgd.paper.noise.result import PROBLEMS, Config, Outcome, Result
from dmsgd.paper.noise.variance import Batches, reasons
from dmsgd.paper.protocol import Progress
from dmsgd.paper.trials import run_trials

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers, Images

#: What is measured for every seed and step, in this order.
MEASURED = ("prescribed", "given", "reweighted", "same_b", "worth", "seen", "likeness", "strength")


@dataclass(frozen=True, eq=False)
class Data:
    """What the chosen problems need; the regression's data ships with scikit-learn."""

    flowers: Flowers | None
    images: Images | None


def load(config: Config, data_dir: str | None = None) -> Data:
    """Return the data of the problems."""
    from dmsgd import datasets

    unknown = set(config.problems) - set(PROBLEMS)
    if unknown:
        raise ValueError(f"unknown problem {unknown.pop()!r}; use regression, flowers or digits")
    return Data(
        datasets.flowers(data_dir) if "flowers" in config.problems else None,
        datasets.mnist(data_dir) if "digits" in config.problems else None,
    )


def run(config: Config, data: Data, progress: Progress | None = None) -> Result:
    """Return the ratios of variances at every point of training."""
    jobs = [
        (config, maker, seed) for maker in _makers(config, data) for seed in range(config.seeds)
    ]
    trials = run_trials(_trial, jobs, progress, config.workers)
    by_kernel: dict[tuple[str, str], list[_Measured]] = {}
    for measured in (each for trial in trials for each in trial):
        by_kernel.setdefault((measured.problem, measured.kernel), []).append(measured)
    outcomes = tuple(_outcome(*names, of_kernel) for names, of_kernel in by_kernel.items())
    return Result(config, outcomes)


def _makers(config: Config, data: Data) -> list[Maker]:
    made: list[Maker] = []
    size, steps = (config.items, config.k), config.steps
    if "regression" in config.problems:
        shape = config.regression_items, config.k
        made += [partial(regression, *shape, d, config.stretches, steps) for d in config.columns]
    if data.flowers is not None:
        made.append(partial(flowers, data.flowers, *size, config.directions, config.ws, steps))
    if data.images is not None:
        made.append(partial(digits, data.images, *size, config.rank, config.ws, steps))
    return made


@dataclass(frozen=True, eq=False)
class _Measured:
    """One kernel, one seed: (steps, 8) numbers in the order of MEASURED, and its spread."""

    problem: str
    kernel: str
    numbers: FloatArray
    spread: float


def _trial(config: Config, maker: Maker, seed: int) -> list[_Measured]:
    problem = maker(seed)
    found = []
    for name, kernel in problem.kernels.items():
        as_given = dmsgd.KDPP(dmsgd.exact(kernel), config.k)
        tilted = dmsgd.prescribe(kernel, config.k, "uniform")
        prescribed = dmsgd.KDPP(dmsgd.exact(tilted), config.k)
        laws, weights = (Batches(prescribed), Batches(as_given)), dmsgd.unbiased_weights(as_given)
        same_b = as_given.without_repulsion()
        rows = []
        for gradients in problem.gradients:
            uniform = uniform_variance(gradients, config.k)
            variance = laws[0].variance(gradients)
            why = reasons(prescribed, gradients)
            rows.append(
                (
                    variance / uniform,
                    laws[1].variance(gradients) / uniform,
                    laws[1].variance(gradients, weights) / uniform,
                    gradient_variance(same_b, gradients, weights).variance / uniform,
                    same_variance(prescribed.n, config.k, uniform, variance),
                    why.seen,
                    why.likeness,
                    why.strength,
                )
            )
        b = as_given.inclusion()
        found.append(_Measured(problem.name, name, np.array(rows), float(b.max() / b.min())))
    return found


def _outcome(problem: str, kernel: str, measured: list[_Measured]) -> Outcome:
    columns = np.moveaxis(np.array([each.numbers for each in measured]), 2, 0)
    spread = np.array([each.spread for each in measured])
    return Outcome(problem, kernel, **dict(zip(MEASURED, columns, strict=True)), spread=spread)
