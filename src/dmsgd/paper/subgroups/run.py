"""Accuracy by digit of every method and seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.models import mlp
from dmsgd.paper.protocol import Progress
from dmsgd.paper.subgroups.methods import METHODS, Method
from dmsgd.paper.subgroups.result import Config, Outcome, Result
from dmsgd.paper.subgroups.task import Task, make_task, sizes
from dmsgd.paper.trials import run_trials

if TYPE_CHECKING:
    from dmsgd.datasets import Images


def load(config: Config, data_dir: str | None = None) -> Images:
    """Return MNIST."""
    from dmsgd import datasets

    return datasets.mnist(data_dir)


def run(config: Config, data: Images, progress: Progress | None = None) -> Result:
    """Return accuracy by digit of all methods; every training on one thread."""
    tasks = [make_task(config, data, seed) for seed in range(config.seeds)]
    rate = _tune(config, make_task(config, data, 1000))
    jobs = [
        (config, task, method, rate, seed) for method in METHODS for seed, task in enumerate(tasks)
    ]
    found = run_trials(_trial, jobs, progress, config.workers)
    outcomes = []
    for number, method in enumerate(METHODS):
        of_method = found[number * config.seeds : (number + 1) * config.seeds]
        accuracy, shares = (np.array([trial[part] for trial in of_method]) for part in (0, 1))
        outcomes.append(Outcome(method.name, accuracy, shares))
    return Result(config, rate, sizes(config), tuple(outcomes))


def _tune(config: Config, task: Task) -> float:
    """Return the rate with the best mean validation accuracy of uniform batches, by parity."""
    batches, scores = dmsgd.Uniform(task.y.size, config.k).sample(config.checkpoints[-1], 1000), []
    for rate in config.rates:
        networks = _train(config, task, batches, rate, None, 1000)
        scores.append(np.mean([net.predict(task.valid_X) == task.valid_y for net in networks]))
    return config.rates[int(np.argmax(scores))]


def _trial(
    config: Config, task: Task, method: Method, rate: float, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return accuracy by checkpoint and digit, and the expected share of each digit."""
    design = method.design(task, config, seed)
    weights = None if method.weights is None else method.weights(task, config)
    batches = design.sample(config.checkpoints[-1], seed)
    accuracy, counts = [], np.bincount(task.test_digit)
    for network in _train(config, task, batches, rate, weights, seed):
        right = network.predict(task.test_X) == task.test_digit // 5
        accuracy.append(np.bincount(task.test_digit, right) / counts)
    return np.array(accuracy), np.bincount(task.digit, design.inclusion()) / config.k


def _train(
    config: Config, task: Task, batches: IntArray, rate: float, weights: FloatArray | None,
    seed: int,
) -> list[mlp.Network]:  # fmt: skip
    """Return the network at every checkpoint."""
    rng = np.random.default_rng([seed, 21])
    network = mlp.initial(task.X.shape[1], config.units, 2, rng)
    targets: FloatArray = np.asarray(np.eye(2)[task.y], dtype=np.float32)
    found, first = [], 0
    for last in config.checkpoints:
        network = mlp.train(network, task.X, targets, batches[first:last], rate, weights)
        found.append(network)
        first = last
    return found
