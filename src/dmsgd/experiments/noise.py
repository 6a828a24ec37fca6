"""The noise of gradients when every item is seen equally often: uniform target against plain SGD.

With the target "uniform" the mean gradient of a batch is unbiased without weights, so its variance
compares directly with that of a uniform batch. It is measured exactly, along a training with
uniform batches, on three real problems (`noise_problems`) with several kernels each, beside what
it depends on: how much of the gradients the kernel sees, how alike the gradients are of items that
keep each other out of a batch, and how strongly they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.diagnostics.variance import same_variance, uniform_variance
from dmsgd.experiments import noise_figures
from dmsgd.experiments.gradient_noise import Batches, reasons
from dmsgd.experiments.intervals import holds, margin, paired, show, shown
from dmsgd.experiments.noise_problems import Maker, digits, flowers, regression
from dmsgd.experiments.protocol import Claim, Progress
from dmsgd.experiments.trials import run_trials
from dmsgd.inputs.arrays import FloatArray

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers, Images

TITLE = "Gradient variance when every item is seen equally often (uniform target)"


@dataclass(frozen=True)
class Config:
    """What is run.

    problems:   of "regression", "flowers" and "digits".
    items, k:   drawn anew for every seed; the exact variance costs items² rank.
    steps:      of plain SGD after which gradients are taken.
    columns:    of the diabetes data, one regression for each, on `regression_items` of its 442.
    stretches:  RBF scales of the regression's kernels, as multiples of `suggest_scale`.
    directions: principal directions of the flowers' features in the kernel.
    rank:       leading eigenvectors that the digits' RBF kernels keep: 0.95 of the trace or more.
    ws:         label weights of the kernels of the two softmax problems.
    workers:    processes that share the seeds.
    """

    seeds: int = 5
    problems: tuple[str, ...] = ("regression", "flowers", "digits")
    items: int = 1000
    k: int = 40
    steps: tuple[int, ...] = (0, 10, 100, 1000)
    columns: tuple[int, ...] = (1, 3, 10)
    regression_items: int = 400
    stretches: tuple[float, ...] = (1.0, 3.0)
    directions: int = 198
    rank: int = 300
    ws: tuple[float, ...] = (0.0, 0.5, 0.9, 0.95)
    workers: int = 1


QUICK = Config(
    seeds=2, items=300, k=20, steps=(0, 10, 100), columns=(1, 10), regression_items=200,
    stretches=(3.0,), directions=64, rank=120, ws=(0.0, 0.9),
)  # fmt: skip


#: What is measured for every seed and step, in this order.
MEASURED = ("prescribed", "given", "reweighted", "worth", "seen", "likeness", "strength")


@dataclass(frozen=True, eq=False)
class Outcome:
    """One kernel on one problem; arrays are (seeds, steps).

    prescribed: variance with the uniform target over that of plain SGD.
    given:      the same for the k-DPP as the kernel gives it and plain averages, which follow
                another gradient.
    reweighted: the same for the k-DPP as the kernel gives it and weights 1/(N b_i).
    worth:      the size of a uniform batch as noisy as a prescribed one of k.
    seen, likeness, strength: see `gradient_noise.Reasons`; of the prescribed k-DPP.
    spread:     largest over smallest b_i as the kernel gives it, (seeds,).
    """

    problem: str
    kernel: str
    prescribed: FloatArray
    given: FloatArray
    reweighted: FloatArray
    worth: FloatArray
    seen: FloatArray
    likeness: FloatArray
    strength: FloatArray
    spread: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All kernels on all problems."""

    config: Config
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, eq=False)
class Data:
    """What the chosen problems need; the regression's data ships with scikit-learn."""

    flowers: Flowers | None
    images: Images | None


def load(config: Config, data_dir: str | None = None) -> Data:
    """Return the data of the problems."""
    from dmsgd import datasets

    unknown = set(config.problems) - {"regression", "flowers", "digits"}
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
    """One kernel, one seed: (steps, 7) numbers in the order of MEASURED, and its spread."""

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


def claims(result: Result) -> list[Claim]:
    """Return the ratio of variances for every kernel, and how well its reasons tell it."""
    steps, found = result.config.steps, []
    when = ", ".join(str(step) for step in steps)
    note = (
        f"prescribed / plain SGD, after {when} steps of plain SGD; in brackets the uniform batch "
        f"that one of {result.config.k} is worth"
    )
    for each in result.outcomes:
        cells = (
            f"{show(ratio, 2, 1)} ({worth.mean():.0f})"
            for ratio, worth in zip(each.prescribed.T, each.worth.T, strict=True)
        )
        statement = f"{each.problem}, kernel on {each.kernel}: variance ratio"
        found.append(Claim("beyond", statement, "", "; ".join(cells), note=note))
    return [*found, *_regimes(result), *_reasons(result)]


def _regimes(result: Result) -> list[Claim]:
    """Return how far above plain SGD the unbiased regimes get, and which of them is less noisy."""
    found = []
    for name, field in (
        ("the uniform target", "prescribed"),
        ("the kernel's own b_i and weights 1/(N b_i)", "reweighted"),
    ):
        values = _gathered(result, field)
        statement = f"less than 2 % noisier than plain SGD in all cases: {name}"
        ours = f"{values.min():.2f} to {values.max():.2f}"
        found.append(Claim("beyond", statement, "", ours, holds(1.02 - float(values.max()))))
    note = "mean over kernels and steps, paired by seed; it depends on the kernels that were chosen"
    for problem in dict.fromkeys(each.problem for each in result.outcomes):
        of = [each for each in result.outcomes if each.problem == problem]
        prescribed, reweighted = (
            np.mean([getattr(each, field) for each in of], axis=(0, 2))
            for field in ("prescribed", "reweighted")
        )
        less = paired(reweighted, prescribed)
        ours = (
            f"{shown(*less, 3, sign=True)} ({show(reweighted, 2, 1)} and {show(prescribed, 2, 1)})"
        )
        statement = f"{problem}: the uniform target is less noisy than weights 1/(N b_i)"
        found.append(Claim("beyond", statement, "", ours, holds(*less), note))
    return found


def _reasons(result: Result) -> list[Claim]:
    """Return how well the measured reasons tell the ratio, in every seed."""
    ratio, seen, likeness, strength = (
        np.array([getattr(each, field) for each in result.outcomes])
        for field in ("prescribed", "seen", "likeness", "strength")
    )
    told = {
        "what the kernel sees (R² on k eigenvectors) times its strength": 1 - seen * strength,
        "the likeness of gradients that exclude each other, times strength": 1
        - likeness * strength,
    }
    found = []
    for name, values in told.items():
        correlation = np.array(
            [
                np.corrcoef(ratio[:, seed].ravel(), values[:, seed].ravel())[0, 1]
                for seed in range(ratio.shape[1])
            ]
        )
        ours = (
            f"correlation {show(correlation, 3, 1)}, mean error {np.abs(ratio - values).mean():.3f}"
        )
        verdict = holds(float(correlation.mean()) - 0.9, margin(correlation))
        statement = f"the ratio correlates above 0.9 with one minus {name}"
        found.append(Claim("beyond", statement, "", ours, verdict))
    return found


def _gathered(result: Result, field: str) -> FloatArray:
    return np.concatenate([getattr(each, field).ravel() for each in result.outcomes])


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the ratios along training, and what they depend on."""
    return [
        *noise_figures.plot_ratios(result, folder),
        *noise_figures.plot_reasons(result, folder),
    ]
