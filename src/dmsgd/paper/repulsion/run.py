"""Steps to a loss of every way to draw batches, each at its own best rate."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.protocol import Progress
from dmsgd.paper.repulsion import nmf, settings
from dmsgd.paper.repulsion.designs import Arm, arms
from dmsgd.paper.repulsion.models import Quantiser
from dmsgd.paper.repulsion.result import SETTINGS, SLOW, UNIFORM, Config, Fall, Outcome, Result
from dmsgd.paper.repulsion.settings import Maker
from dmsgd.paper.repulsion.training import descend, looks, smooth, steps_to
from dmsgd.paper.trials import run_trials

#: The first of the seeds on which rates are chosen, and images of MNIST that items are drawn from.
TUNING, IMAGES = 1000, 6000
#: Added to a seed for the streams that set the losses to reach.
OTHERS = 10**6
#: How far above the least loss of these streams the loss to reach is.
SLACK = 0.1
#: The early loss is waited for so many times as long as other streams took.
PATIENCE = 10


def load(config: Config, data_dir: str | None = None) -> FloatArray | None:
    """Return images of MNIST if they are asked for; all else is made or ships with scikit-learn."""
    from dmsgd import datasets

    unknown = set(config.settings) - set(SETTINGS)
    if unknown:
        raise ValueError(f"unknown setting {unknown.pop()!r}; use {', '.join(SETTINGS)}")
    if "mnist" not in config.settings:
        return None
    return np.asarray(datasets.mnist(data_dir).x_train[:IMAGES].reshape(-1, 784) / np.float32(255))


def run(config: Config, data: FloatArray | None, progress: Progress | None = None) -> Result:
    """Return steps, losses and variances of every way to draw batches."""
    seeds = [*range(config.seeds), *range(TUNING, TUNING + config.tuning)]
    jobs = _jobs(config, data, seeds)
    found: dict[tuple[str, int, str], dict[int, _Run]] = defaultdict(dict)
    ratios: dict[tuple[str, str], dict[tuple[int, int], float]] = defaultdict(dict)
    for job, runs in zip(jobs, run_trials(_trial, jobs, progress, config.workers), strict=True):
        for each in runs:
            if job[-1]:
                found[each.problem, each.k, each.arm][each.seed] = each
            if each.problem.startswith("density") and each.problem.endswith("-d"):
                ratios[each.problem, each.arm][each.seed, each.k] = float(each.variance[0])
    outcomes = tuple(_outcome(config, *key, of) for key, of in found.items())
    return Result(config, outcomes, _falls(config, ratios))


@dataclass(frozen=True, eq=False)
class _Run:
    """One problem, arm and seed at all rates.

    steps: (2, rates) to the early and the late loss.
    """

    problem: str
    k: int
    arm: str
    seed: int
    steps: FloatArray
    decayed: FloatArray
    variance: FloatArray


def _jobs(
    config: Config, data: FloatArray | None, seeds: list[int]
) -> list[tuple[Config, str, Maker, int, int, bool]]:
    """Return (config, setting, its maker, k, seed, whether to train)."""
    makers: dict[str, Maker] = {
        **{f"{d}-d": partial(settings.low_dimension, d) for d in (1, 2, 3)},
        "many items": partial(settings.low_dimension, 2, among=" (many items)"),
        "copies": partial(settings.copies, False),
        "skewed copies": partial(settings.copies, True),
        "2 columns": partial(settings.gradients, 2),
        "10 columns": partial(settings.gradients, 10),
        "softmax": settings.classes,
        "blobs": settings.blobs,
        "digits": settings.digits,
        "nmf": settings.parts,
    }
    if data is not None:
        makers["mnist"] = partial(settings.mnist, data)
    jobs = []
    for name in config.settings:
        ks = (config.nmf_k,) if name == "nmf" else config.slow_ks if name in SLOW else config.ks
        jobs += [(config, name, makers[name], k, seed, True) for k in ks for seed in seeds]
        if name in ("1-d", "2-d", "3-d"):
            more, few = set(config.fall_ks) - set(ks), seeds[: config.fall_seeds]
            jobs += [(config, name, makers[name], k, s, False) for k in sorted(more) for s in few]
    return jobs


def _trial(config: Config, name: str, maker: Maker, k: int, seed: int, train: bool) -> list[_Run]:
    """Return what came out of every arm and problem of a setting."""
    setting = maker(config.many if name == "many items" else config.items, seed)
    drawn = arms(setting.features, setting.polynomials, k, config.stretch)
    if name == "nmf":
        return _nmf(config, setting.features["x"], drawn, seed)
    models = setting.models
    points = [g for m in models.values() for g in map(m.item_gradients, (m.start, m.optimum))]
    noise = {arm: of.variance(points).reshape(-1, 2) for arm, of in drawn.items()}
    if not train:
        return [
            _Run(problem, k, arm, seed, np.empty((2, 0)), np.empty(0), noise[arm][number])
            for number, problem in enumerate(models)
            for arm in drawn
        ]
    streams, rates = config.slow_streams if name in SLOW else config.streams, np.array(config.rates)
    at, when = looks(config.steps), (config.early, config.late)
    others = drawn[UNIFORM].batches(config.steps, 2 * streams, seed + OTHERS)
    batches = {arm: of.batches(config.steps, streams, seed) for arm, of in drawn.items()}
    found = []
    for number, (problem, model) in enumerate(models.items()):
        levels = _levels(smooth(descend(model, others, rates)), at, when)
        for arm, drawn_by in batches.items():
            steps = _steps(levels, smooth(descend(model, drawn_by, rates)), at, when)
            decayed = np.empty(0)
            if not isinstance(model, Quantiser):
                decayed = descend(model, drawn_by[: config.late], rates, decayed=True)[-1]
            found.append(_Run(problem, k, arm, seed, steps, decayed, noise[arm][number]))
    return found


def _nmf(config: Config, X: FloatArray, drawn: dict[str, Arm], seed: int) -> list[_Run]:
    def curves(arm: Arm, key: int) -> tuple[IntArray, FloatArray]:
        batches = arm.batches(config.nmf_steps, 1, key)[:, 0]
        at, found = nmf.errors(X, batches, config.forgetting, seed)
        return at, smooth(found)

    at, others = curves(drawn[UNIFORM], seed + OTHERS)
    when, none = (config.nmf_early, config.nmf_late), np.empty(0)
    levels, found = _levels(others, at, when), []
    for name, arm in drawn.items():
        steps = _steps(levels, curves(arm, seed)[1], at, when)
        found.append(_Run("NMF, digits", config.nmf_k, name, seed, steps, none, none))
    return found


def _levels(curves: FloatArray, at: IntArray, when: tuple[int, int]) -> list[float]:
    """Return the least losses after `when` steps, each at the rate that is best for it, and SLACK.

    The least of many is lower than what is to be expected again.
    """
    least = [float(curves[np.searchsorted(at, step)].min()) for step in when]
    return [loss + SLACK * abs(loss) for loss in least]


def _steps(
    levels: list[float], curves: FloatArray, at: IntArray, when: tuple[int, int]
) -> FloatArray:
    """Return the steps to both levels, to the first of them within PATIENCE times its steps."""
    soon = at <= PATIENCE * when[0]
    early = steps_to(levels[0], curves[soon], at[soon])
    return np.stack([early, steps_to(levels[1], curves, at)])


def _outcome(config: Config, problem: str, k: int, arm: str, runs: dict[int, _Run]) -> Outcome:
    """Return what came out at the rates that are best on the tuning seeds."""
    grid = np.array(config.forgetting if problem.startswith("NMF") else config.rates)
    tuned, told = (
        [each for seed, each in sorted(runs.items()) if (seed >= TUNING) == wanted]
        for wanted in (True, False)
    )
    best = np.log([each.steps for each in tuned]).mean(axis=0).argmin(axis=1)
    steps = np.array([each.steps[[0, 1], best] for each in told])
    decayed = np.empty(0)
    if told[0].decayed.size:
        last = int(np.log([each.decayed for each in tuned]).mean(axis=0).argmin())
        decayed = np.array([each.decayed[last] for each in told])
        best = np.append(best, last)
    return Outcome(
        problem, k, arm,
        rates=grid[best],
        edge=np.isin(best, (0, grid.size - 1)).astype(np.int64),
        steps=steps,
        decayed=decayed,
        variance=np.array([each.variance for each in told]),
    )  # fmt: skip


def _falls(
    config: Config, ratios: dict[tuple[str, str], dict[tuple[int, int], float]]
) -> tuple[Fall, ...]:
    """Return the ratios of variances at all of `fall_ks`, for arms that have all of them."""
    found = []
    for (problem, arm), of in ratios.items():
        seeds = range(min(config.fall_seeds, config.seeds))
        keys = [[(seed, k) for k in config.fall_ks] for seed in seeds]
        if arm != UNIFORM and all(key in of for row in keys for key in row):
            found.append(Fall(problem, arm, np.array([[of[key] for key in row] for row in keys])))
    return tuple(found)
