"""Noise, training and cost of every way to batch, on every task."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.partitions import tasks
from dmsgd.paper.partitions.arms import Drawn, Ways, arms
from dmsgd.paper.partitions.result import (
    LARGE,
    REGRESSIONS,
    SHUFFLED,
    TASKS,
    Config,
    Outcome,
    Result,
)  # fmt: skip
from dmsgd.paper.partitions.tasks import Maker
from dmsgd.paper.partitions.training import bounded, deviations, train
from dmsgd.paper.protocol import Progress
from dmsgd.paper.timing import timed
from dmsgd.paper.trials import run_trials

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers, Images

#: Added to a seed: for those that choose rates, and for the training that ends where gradients are
#: measured.
UNREPORTED, ASIDE = 10**6, 2 * 10**6
#: Added for every further stream of batches of a seed.
STREAM = 10**4
#: What is measured for every seed, in the order of an `Outcome`.
MEASURED = ("variance", "quarter", "half", "loss", "accuracy", "curve", "seconds")


def load(config: Config, data_dir: str | None = None) -> tuple[Images | None, Flowers | None]:
    """Return MNIST and the flowers, if they are asked for; all else ships with scikit-learn."""
    from dmsgd import datasets

    unknown = set(config.tasks) - set(TASKS)
    if unknown:
        raise ValueError(f"unknown task {unknown.pop()!r}; use {', '.join(TASKS)}")
    return (
        datasets.mnist(data_dir) if "mnist" in config.tasks else None,
        datasets.flowers(data_dir) if "flowers" in config.tasks else None,
    )


def run(
    config: Config,
    data: tuple[Images | None, Flowers | None],
    progress: Progress | None = None,
    ways: Ways = arms,
) -> Result:
    """Return what came of every arm on every task; rates are chosen first, on other seeds."""
    makers = _makers(config, data)
    others = [(name, number) for name in makers for number in range(config.unreported(name))]
    seeds = [(name, seed) for name in makers for seed in range(config.reported(name))]
    tuning = [(config, name, makers[name], ways, UNREPORTED + number) for name, number in others]
    work = len(tuning) + len(seeds)

    def told(done: int, jobs: int, share: float) -> None:
        if progress is not None:
            progress((done + share * jobs) / work)

    tried = run_trials(_tune, tuning, partial(told, 0, len(tuning)), config.workers)
    losses: dict[str, list[dict[str, FloatArray]]] = defaultdict(list)
    for (name, _), of_rates in zip(others, tried, strict=True):
        losses[name].append(of_rates)
    rates = {name: _best(np.array(config.grid(name)), of) for name, of in losses.items()}
    jobs = [(config, name, makers[name], ways, rates[name], seed) for name, seed in seeds]
    found = run_trials(_trial, jobs, partial(told, len(tuning), len(seeds)), config.workers)
    gathered: dict[tuple[str, str], list[dict[str, FloatArray]]] = defaultdict(list)
    updates: dict[str, list[float]] = defaultdict(list)
    sizes = {}
    for (name, _), (size, update, of_arms) in zip(seeds, found, strict=True):
        sizes[name] = size
        updates[name].append(update)
        for arm, of in of_arms.items():
            gathered[name, arm].append(of)
    outcomes = (
        Outcome(
            name,
            arm,
            rates[name][arm],
            *(np.array([each[what] for each in of]) for what in MEASURED),
        )
        for (name, arm), of in gathered.items()
    )
    median = {name: float(np.median(of)) for name, of in updates.items()}
    return Result(config, sizes, median, tuple(outcomes))


def _makers(config: Config, data: tuple[Images | None, Flowers | None]) -> dict[str, Maker]:
    images, plants = data
    makers: dict[str, Maker] = {
        "2 columns": partial(tasks.regression, 2, config.k),
        "10 columns": partial(tasks.regression, 10, config.k),
        "digits": partial(tasks.digits, config.k),
    }
    if images is not None:
        makers["mnist"] = partial(tasks.mnist, images, config.items, config.large_k)
    if plants is not None:
        makers["flowers"] = partial(tasks.flowers, plants, config.large_k)
    return {name: makers[name] for name in config.tasks}


def _tune(config: Config, name: str, make: Maker, ways: Ways, seed: int) -> dict[str, FloatArray]:
    """Return the losses of a seed after a short and a long training, (2, rates), by arm."""
    task, rates, found = make(seed), config.grid(name), {}
    for called, arm in ways(task).items():
        losses = []
        for stream in _streams(config, name, seed):
            epochs = arm(stream)
            for length in (config.early, config.late):
                for rate in rates:
                    ended, _ = train(task, epochs.again(), length, rate)
                    losses.append(bounded(task.loss(ended)))
        found[called] = np.mean(np.reshape(losses, (-1, 2, len(rates))), axis=0)
    return found


def _streams(config: Config, name: str, seed: int) -> list[int]:
    """Return the seeds of the streams of batches over which losses are averaged."""
    count = config.streams if name in REGRESSIONS else 1
    return [seed + STREAM * number for number in range(count)]


def _best(rates: FloatArray, tried: list[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    """Return the rates of the least loss, the geometric mean over seeds, by arm."""
    return {
        arm: rates[np.mean([np.log(each[arm]) for each in tried], axis=0).argmin(axis=1)]
        for arm in tried[0]
    }


def _trial(
    config: Config,
    called: str,
    make: Maker,
    ways: Ways,
    rates: dict[str, FloatArray],
    seed: int,
) -> tuple[tuple[int, int], float, dict[str, dict[str, FloatArray]]]:
    """Return items and k, the seconds of an update, and all that is measured, by arm."""
    task, found = make(seed), {}
    made = ways(task)
    aside = made[SHUFFLED](seed + ASIDE)
    aside.epoch(0, None)
    (begun, _), seconds = timed(lambda: train(task, aside, config.early, float(rates[SHUFFLED][0])))
    for name, arm in made.items():
        arm(seed + ASIDE).epoch(0, None)  # sets up what is made once, so that costs are of draws
        short, long = rates[name].tolist()
        ends, losses, curves = [], [], []
        for epochs in map(arm, _streams(config, called, seed)):
            used = epochs.again()
            ended, curve = train(task, used, config.late, long, config.looks)
            ends.append((train(task, epochs.again(), config.early, short)[0], ended))
            losses.append([bounded(task.loss(weights)) for weights in ends[-1]])
            curves.append(curve)
        accuracy = [] if task.test is None else [task.accuracy(weights) for weights in ends[0]]
        measured = config.large_measured if called in LARGE else config.measured
        settled = 0 if isinstance(epochs, Drawn) else config.settled
        away = [
            deviations(task, epochs.again(), weights, settled, measured)
            for weights in (task.start(), begun)
        ]
        values = (
            *np.transpose(away), np.mean(losses, axis=0), np.array(accuracy),
            np.mean(curves, axis=0), np.array(used.seconds / used.drawn),
        )  # fmt: skip
        found[name] = dict(zip(MEASURED, values, strict=True))
    return (task.n, task.k), seconds / (config.early * (task.n // task.k)), found
