"""Six ways to draw batches: shares, accuracies and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import SAME_B
from dmsgd.paper.longtail.result import Config, Outcome, Result
from dmsgd.paper.longtail.task import Task, class_sizes, make_task
from dmsgd.paper.models import softmax
from dmsgd.paper.protocol import Progress


def methods(config: Config) -> dict[str, Callable[[Task, int], dmsgd.ClosedForm]]:
    """Return the six ways to draw batches: name -> (task, seed) -> design."""
    k = config.k

    def kdpp(w: float) -> Callable[[Task, int], dmsgd.KDPP]:
        return lambda task, seed: dmsgd.diversify(
            task.X, k, task.y if w > 0 else None, w, normalize=True
        )

    plain, aware = (kdpp(w) for w in config.weights)
    names = [f"k-DPP w={w:g}" for w in config.weights]
    return {
        "uniform": lambda task, seed: dmsgd.Uniform(task.y.size, k),
        "stratified": lambda task, seed: dmsgd.Stratified(task.y, k),
        "clustered": lambda task, seed: dmsgd.clustered(task.X, k, seed=seed),
        names[0]: plain,
        f"{SAME_B}, w={config.weights[1]:g}": lambda task, seed: aware(
            task, seed
        ).without_repulsion(),
        names[1]: aware,
    }


def run(config: Config, progress: Progress | None = None) -> Result:
    """Return shares, accuracies and times of all methods; `progress` is told the fraction done.

    Everything runs on one thread: matrices this small gain nothing from more, and the idle threads
    of one method's set-up would spin through the next one's timing.
    """
    from threadpoolctl import threadpool_limits

    builders = methods(config)
    trials: dict[str, list[_Trial]] = {name: [] for name in builders}
    _warm_up(config, builders)  # first: the limit binds only libraries that are loaded
    with threadpool_limits(1):
        for seed in range(config.seeds):
            task = make_task(config, seed)
            for name, build in builders.items():
                trials[name].append(_trial(config, task, build, seed))
            if progress is not None:
                progress((seed + 1) / config.seeds)
    outcomes = tuple(_summary(name, of_name) for name, of_name in trials.items())
    return Result(config, class_sizes(config), outcomes)


@dataclass(frozen=True, eq=False)
class _Trial:
    shares: FloatArray
    accuracy: FloatArray
    times: tuple[float, float, float]


def _warm_up(config: Config, builders: dict[str, Callable[[Task, int], dmsgd.ClosedForm]]) -> None:
    """Draw once from every design, so that no compilation or import is timed later."""
    task = make_task(config, 0)
    for build in builders.values():
        build(task, 0).sample(1, seed=0)


def _trial(
    config: Config, task: Task, build: Callable[[Task, int], dmsgd.ClosedForm], seed: int
) -> _Trial:
    steps, rng = config.checkpoints[-1], np.random.default_rng([seed, 1])
    started = perf_counter()
    design = build(task, seed)
    design.sample(0, seed)  # the sampler's tables are made at the first call
    built = perf_counter()
    batches = design.sample(steps, seed)
    sampled = perf_counter()
    shares = np.bincount(task.y, design.inclusion(), minlength=10) / config.k
    targets = np.eye(10)[task.y]
    weights = softmax.initial_weights(task.X.shape[1], 10, rng)
    accuracy, training = [], 0.0
    for first, last in zip((0, *config.checkpoints), config.checkpoints, strict=False):
        begun = perf_counter()
        weights = softmax.train(weights, task.X, targets, batches[first:last], config.rate)
        training += perf_counter() - begun
        accuracy.append(np.mean(softmax.predict(weights, task.test_X) == task.test_y))
    times = (built - started, (sampled - built) / steps, training / steps)
    return _Trial(shares, np.array(accuracy), times)


def _summary(name: str, trials: list[_Trial]) -> Outcome:
    # The median: on a shared machine a mean is mostly other people's load.
    setup, sample, step = np.median([trial.times for trial in trials], axis=0)
    shares = np.mean([trial.shares for trial in trials], axis=0)
    accuracy = np.array([trial.accuracy for trial in trials])
    return Outcome(name, shares, accuracy, float(setup), float(sample), float(step))
