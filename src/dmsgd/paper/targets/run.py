"""The accuracy of every method on both tasks, and the regimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.flowers.training import Task, steps_at, train
from dmsgd.paper.protocol import Progress
from dmsgd.paper.targets.methods import METHODS, Method
from dmsgd.paper.targets.regimes import regimes_of
from dmsgd.paper.targets.result import Config, Outcome, Result
from dmsgd.paper.targets.tasks import digits_task, flowers_task
from dmsgd.paper.trials import run_trials

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers


def load(config: Config, data_dir: str | None = None) -> Flowers | None:
    """Return the features of Oxford-102, if they are asked for; the digits ship with sklearn."""
    from dmsgd import datasets

    unknown = set(config.tasks) - {"flowers", "digits"}
    if unknown:
        raise ValueError(f"unknown task {unknown.pop()!r}; use flowers or digits")
    return datasets.flowers(data_dir) if "flowers" in config.tasks else None


def run(config: Config, data: Flowers | None, progress: Progress | None = None) -> Result:
    """Return the accuracy of all methods, and the three regimes in numbers."""
    tasks: dict[str, tuple[Task, ...]] = {}
    sizes, rates = {}, {"flowers": float("nan"), "digits": config.digits_rate}
    if data is not None:
        task = flowers_task(config, data)
        rates["flowers"] = _tune(config, task)
        sizes["flowers"] = np.sort(np.bincount(task.y))[::-1]
        tasks["flowers"] = (task,) * config.seeds
    if "digits" in config.tasks:
        tasks["digits"] = tuple(digits_task(seed) for seed in range(config.seeds))
        sizes["digits"] = np.bincount(tasks["digits"][0].y)
    jobs = [
        (config, name, task, method, rates[name], seed)
        for name, of_name in tasks.items()
        for method in METHODS
        for seed, task in enumerate(of_name)
    ]
    found = run_trials(_trial, jobs, progress, config.workers)
    outcomes = []
    for first in range(0, len(jobs), config.seeds):
        curves, shares = zip(*found[first : first + config.seeds], strict=True)
        _, name, _, method, *_ = jobs[first]
        outcomes.append(Outcome(name, method.name, np.array(curves), np.mean(shares, axis=0)))
    example = digits_task(0)
    regimes = regimes_of(config, example)
    return Result(config, rates["flowers"], sizes, tuple(outcomes), example.y, regimes)


def _tune(config: Config, task: Task) -> float:
    """Return the rate at which uniform batches are best on the validation part, over all epochs."""
    checkpoints, seed = steps_at(config.epochs, task, config.k), 1000
    batches = dmsgd.Uniform(task.y.size, config.k).sample(int(checkpoints[-1]), seed)
    scores = []
    for rate in config.rates:
        rates = np.full(int(checkpoints[-1]), rate)
        curve, _ = train(task, batches, checkpoints, rates, None, seed, task.valid)
        scores.append(curve.mean())
    return config.rates[int(np.argmax(scores))]


def _trial(
    config: Config, name: str, task: Task, method: Method, rate: float, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the accuracies of one training, and the expected class shares of a batch."""
    k, epochs = (
        (config.k, config.epochs) if name == "flowers" else (config.digits_k, config.digits_epochs)
    )
    design = method.design(task.X, task.y, k)
    checkpoints = steps_at(epochs, task, k)
    weights = None if method.weights is None else method.weights(design, task.y)
    batches = design.sample(int(checkpoints[-1]), seed)
    rates = np.full(int(checkpoints[-1]), rate)
    curve, _ = train(task, batches, checkpoints, rates, weights, seed, task.test)
    by_size = np.argsort(-np.bincount(task.y), kind="stable")
    return curve, (np.bincount(task.y, design.inclusion()) / k)[by_size]
