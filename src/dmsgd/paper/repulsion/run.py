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
from dmsgd.paper.repulsion.result import (
    SETTINGS,
    SHUFFLED,
    SLOW,
    UNIFORM,
    Config,
    Fall,
    Outcome,
    Result,
)  # fmt: skip
from dmsgd.paper.repulsion.settings import Maker
from dmsgd.paper.repulsion.training import best, descend, looks, smooth, steps_to
from dmsgd.paper.trials import run_trials

#: What is measured for every seed, in the order of an `Outcome`.
MEASURED = ("rates", "steps", "decayed", "variance")
#: Images of MNIST that items are drawn from.
IMAGES = 6000
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
    jobs = _jobs(config, data, range(config.seeds))
    found: dict[tuple[str, int, str], list[_Run]] = defaultdict(list)
    ratios: dict[tuple[str, str], dict[tuple[int, int], float]] = defaultdict(dict)
    for job, runs in zip(jobs, run_trials(_trial, jobs, progress, config.workers), strict=True):
        for each in runs:
            if job[-1]:
                found[each.problem, each.k, each.arm].append(each)
            if each.problem.startswith("density") and each.problem.endswith("-d"):
                ratios[each.problem, each.arm][each.seed, each.k] = float(each.variance[0])
    outcomes = (
        Outcome(*key, *(np.array([getattr(each, name) for each in of]) for name in MEASURED))
        for key, of in found.items()
    )
    return Result(config, tuple(outcomes), _falls(config, ratios))


@dataclass(frozen=True, eq=False)
class _Run:
    """One problem, arm and seed; the measured numbers are those of an `Outcome`."""

    problem: str
    k: int
    arm: str
    seed: int
    rates: FloatArray
    steps: FloatArray
    decayed: FloatArray
    variance: FloatArray


def _jobs(
    config: Config, data: FloatArray | None, seeds: range
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
    none = np.empty(0)
    if not train:
        return [
            _Run(problem, k, arm, seed, none, none, none, noise[arm][number])
            for number, problem in enumerate(models)
            for arm in drawn
        ]
    streams, rates = config.slow_streams if name in SLOW else config.streams, np.array(config.rates)
    at, when = looks(config.steps), (config.early, config.late)
    others = drawn[UNIFORM].batches(config.steps, 2 * streams, seed + OTHERS)
    batches = {arm: of.batches(config.steps, 2 * streams, seed) for arm, of in drawn.items()}
    found = []
    for number, (problem, model) in enumerate(models.items()):
        levels = _levels(smooth(descend(model, others, rates).mean(axis=1)), at, when)
        for arm, of_arm in batches.items():
            halves = _halves(descend(model, of_arm, rates))
            tried, told = (_steps(levels, smooth(half), at, when) for half in halves)
            chosen = best(tried)
            steps, decayed = told[[0, 1], chosen], none
            if not isinstance(model, Quantiser):
                tried, told = _halves(descend(model, of_arm[: config.late], rates, True)[-1:])
                chosen = np.append(chosen, best(tried[0]))
                decayed = told[0, chosen[2]]
            found.append(
                _Run(problem, k, arm, seed, rates[chosen], steps, decayed, noise[arm][number])
            )
    return found


def _nmf(config: Config, X: FloatArray, drawn: dict[str, Arm], seed: int) -> list[_Run]:
    factors, when = np.array(config.forgetting), (config.nmf_early, config.nmf_late)

    def curves(batches: IntArray) -> tuple[IntArray, FloatArray]:
        at, found = nmf.errors(X, batches, config.forgetting, seed)
        return at, smooth(found)

    others = drawn[UNIFORM].batches(config.nmf_steps, 1, seed + OTHERS)
    at, level = curves(others[:, 0])
    levels, found = _levels(level, at, when), []
    for name, arm in drawn.items():
        both = arm.batches(config.nmf_steps, 2, seed)
        tried, told = (_steps(levels, curves(both[:, half])[1], at, when) for half in (0, 1))
        chosen, none = best(tried), np.empty(0)
        steps = told[[0, 1], chosen]
        found.append(
            _Run("NMF, digits", config.nmf_k, name, seed, factors[chosen], steps, none, none)
        )
    return found


def _halves(curves: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means over the first half of the streams and over the others."""
    half = curves.shape[1] // 2
    return curves[:, :half].mean(axis=1), curves[:, half:].mean(axis=1)


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


def _falls(
    config: Config, ratios: dict[tuple[str, str], dict[tuple[int, int], float]]
) -> tuple[Fall, ...]:
    """Return the ratios of variances at those of `fall_ks` at which there is an arm."""
    found, seeds = [], range(min(config.fall_seeds, config.seeds))
    for (problem, arm), of in ratios.items():
        ks = tuple(k for k in config.fall_ks if (0, k) in of)
        if arm not in (UNIFORM, SHUFFLED) and len(ks) > 1:
            ratio = np.array([[of[seed, k] for k in ks] for seed in seeds])
            found.append(Fall(problem, arm, ks, ratio))
    return tuple(found)
