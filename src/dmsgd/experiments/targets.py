"""Accuracy on long-tailed classes: a balanced target against the other ways to balance.

Softmax regression on Oxford-102 (the paper's swapped split: 6149 images to train on, 20 to 238 a
class, tested on 10 a class) and on the long-tailed digits of `longtail`. All methods of a seed
share the random start, the rate and the number of steps. The test sets are balanced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dmsgd
from dmsgd.diagnostics import gradient_variance
from dmsgd.experiments import flowers, longtail, softmax, targets_figures, targets_findings
from dmsgd.experiments.flowers_methods import Task, start, train
from dmsgd.experiments.gradient_noise import softmax_gradients
from dmsgd.experiments.protocol import Claim, Progress
from dmsgd.experiments.trials import run_trials
from dmsgd.inputs.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers

TITLE = "Long-tailed classes: balanced targets against mixing, strata and weighted losses"


@dataclass(frozen=True)
class Config:
    """What is run.

    tasks:       of "flowers" and "digits".
    k, digits_k: batch sizes; 102 is one item a class.
    directions:  principal directions of the flowers' features in the kernel (the classifier sees
                 all): set-up is seconds.
    epochs:      at which accuracy is measured; the first is early, the last is late.
    rates:       on flowers the one that serves uniform batches best on the validation part.
    digits_rate: that of `longtail`.
    """

    seeds: int = 5
    tasks: tuple[str, ...] = ("flowers", "digits")
    k: int = 102
    digits_k: int = 20
    directions: int = 256
    epochs: tuple[float, ...] = (1, 2, 3, 5, 10, 15)
    rates: tuple[float, ...] = (1.0, 3.0, 10.0)
    digits_rate: float = 0.5
    digits_epochs: tuple[float, ...] = (1, 2, 5, 10, 20, 40)


QUICK = Config(
    seeds=2, directions=128, epochs=(1, 3), rates=(1.0,), digits_epochs=(1, 5, 20)
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did: accuracy (seeds, epochs), and the expected class shares of a batch.

    shares: (classes,), classes from the commonest to the rarest; mean over seeds.
    """

    task: str
    method: str
    accuracy: FloatArray
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Regime:
    """How one way to use a k-DPP treats each item, on the long-tailed digits of the first seed.

    seen:   n b_i / k, how often an item is in a batch, 1 on average.
    weight: n b_i a_i, its share of the expected update, times n; 1 for all is plain SGD's.
    noise:  variance of the batch gradient over that of uniform batches weighted so that they follow
            the same gradient; at the start of training, and after it.
    """

    name: str
    seen: FloatArray
    weight: FloatArray
    noise: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All methods on all tasks.

    rate:   chosen for the flowers (nan if they were left out).
    sizes:  by task, items per class in training, from the commonest.
    labels: classes of the items in `regimes`, 0 for the commonest.
    """

    config: Config
    rate: float
    sizes: dict[str, IntArray]
    outcomes: tuple[Outcome, ...]
    labels: IntArray
    regimes: tuple[Regime, ...]

    def accuracy(self, task: str, method: str, late: bool = True) -> FloatArray:
        """Return the last (or the first) accuracy of a method, one value per seed."""
        found = next(o for o in self.outcomes if (o.task, o.method) == (task, method))
        return found.accuracy[:, -1 if late else 0]


@dataclass(frozen=True)
class Method:
    """A design for features X, labels y and k, and the weights of its items (None: 1/k)."""

    name: str
    design: Callable[[FloatArray, IntArray, int], dmsgd.Design]
    weights: Callable[[dmsgd.Design, IntArray], FloatArray] | None = None


def kdpp(w: float, target: str | None = None) -> Callable[..., dmsgd.Design]:
    """Return what makes the k-DPP on [(1-w)X, wH] with this target."""
    return lambda X, y, k: dmsgd.diversify(X, k, labels=y, w=w, target=target)


def class_weights(design: dmsgd.Design, y: IntArray) -> FloatArray:
    """Return n / (C n_c) / k: the weighted loss gives every class the same weight."""
    sizes = np.bincount(y)
    return np.asarray(y.size / (np.count_nonzero(sizes) * sizes[y]) / design.k)


METHODS = (
    Method("uniform", lambda X, y, k: dmsgd.Uniform(y.size, k)),
    Method("stratified", lambda X, y, k: dmsgd.Stratified(y, k)),
    Method("class-weighted loss", lambda X, y, k: dmsgd.Uniform(y.size, k), class_weights),
    Method("w=0", kdpp(0.0)),
    Method("w=0.7", kdpp(0.7)),
    Method("w=0.9", kdpp(0.9)),
    Method("w=0.9 unbiased", kdpp(0.9), lambda design, y: dmsgd.unbiased_weights(design)),
    Method("w=0, uniform target", kdpp(0.0, "uniform")),
    Method("w=0, balanced target", kdpp(0.0, "balanced")),
    Method("w=0.5, balanced target", kdpp(0.5, "balanced")),
    Method("w=0.9, balanced target", kdpp(0.9, "balanced")),
)


def load(config: Config, data_dir: str | None = None) -> Flowers | None:
    """Return the features of Oxford-102, if they are asked for; the digits ship with sklearn."""
    from dmsgd import datasets

    unknown = set(config.tasks) - {"flowers", "digits"}
    if unknown:
        raise ValueError(f"unknown task {unknown.pop()!r}; use flowers or digits")
    return datasets.flowers(data_dir) if "flowers" in config.tasks else None


def run(config: Config, data: Flowers | None, progress: Progress | None = None) -> Result:
    """Return the accuracy of all methods, and the three regimes in numbers."""
    jobs: list[tuple[Any, ...]] = []
    sizes, rate = {}, float("nan")
    if data is not None:
        task = flowers_task(config, data)
        rate = _tune(config, task)
        sizes["flowers"] = np.sort(np.bincount(task.y))[::-1]
        seeds = tuple(range(config.seeds))
        jobs += [(config, "flowers", (task,), method, rate, seeds) for method in METHODS]
    if "digits" in config.tasks:
        tasks = tuple(digits_task(seed) for seed in range(config.seeds))
        sizes["digits"] = np.bincount(tasks[0].y)
        seeds = tuple(range(config.seeds))
        jobs += [(config, "digits", tasks, method, config.digits_rate, seeds) for method in METHODS]
    outcomes = run_trials(_outcome, jobs, progress)
    example = digits_task(0)
    regimes = regimes_of(config, example)
    return Result(config, rate, sizes, tuple(outcomes), example.y, regimes)


def flowers_task(config: Config, data: Flowers) -> Task:
    """Return the paper's task; the kernel sees the leading directions of the unit rows."""
    task = flowers.make_task(flowers.Config(), data)
    _, U = np.linalg.eigh(task.X.T @ task.X)
    return replace(task, X=task.X @ U[:, -config.directions :])


def digits_task(seed: int) -> Task:
    """Return the long-tailed digits of a seed."""
    task = longtail.make_task(longtail.Config(), seed)
    judge = _single(task.test_X), task.test_y
    X = np.asarray(dmsgd.normalize(task.X))
    return Task(X, task.y, _single(task.X), _single(np.eye(10)[task.y]), judge, judge)


def _single(array: FloatArray) -> FloatArray:
    """Return the numbers in float32: training is twice as fast."""
    return np.asarray(array, dtype=np.float32)


def _tune(config: Config, task: Task) -> float:
    """Return the rate at which uniform batches are best on the validation part, over all epochs."""
    checkpoints, seed = _steps(config.epochs, task, config.k), 1000
    batches = dmsgd.Uniform(task.y.size, config.k).sample(int(checkpoints[-1]), seed)
    scores = []
    for rate in config.rates:
        rates = np.full(int(checkpoints[-1]), rate)
        curve, _ = train(task, batches, checkpoints, rates, None, seed, task.valid)
        scores.append(curve.mean())
    return config.rates[int(np.argmax(scores))]


def _steps(epochs: tuple[float, ...], task: Task, k: int) -> IntArray:
    return np.maximum(1, np.rint(np.array(epochs) * task.y.size / k)).astype(np.int64)


def _outcome(
    config: Config, name: str, tasks: tuple[Task, ...], method: Method, rate: float,
    seeds: tuple[int, ...],
) -> Outcome:  # fmt: skip
    """Return one method on one task; `tasks` has one entry for all seeds, or one a seed."""
    k, epochs = (
        (config.k, config.epochs) if name == "flowers" else (config.digits_k, config.digits_epochs)
    )
    curves, shares, design = [], [], None
    for seed in seeds:
        task = tasks[seed % len(tasks)]
        if design is None or len(tasks) > 1:
            design = method.design(task.X, task.y, k)
        checkpoints = _steps(epochs, task, k)
        weights = None if method.weights is None else method.weights(design, task.y)
        batches = design.sample(int(checkpoints[-1]), seed)
        rates = np.full(int(checkpoints[-1]), rate)
        curves.append(train(task, batches, checkpoints, rates, weights, seed, task.test)[0])
        by_size = np.argsort(-np.bincount(task.y), kind="stable")
        shares.append((np.bincount(task.y, design.inclusion()) / k)[by_size])
    return Outcome(name, method.name, np.array(curves), np.mean(shares, axis=0))


def regimes_of(config: Config, task: Task) -> tuple[Regime, ...]:
    """Return the regimes of a k-DPP on the features alone."""
    k, n = config.digits_k, task.y.size
    X, targets = task.inputs.astype(np.float64), task.targets.astype(np.float64)
    begun = start(task, 0).astype(np.float64)
    steps = int(_steps(config.digits_epochs, task, k)[-1])
    batches = dmsgd.Uniform(n, k).sample(steps, 0)
    ended = softmax.train(begun, X, targets, batches, config.digits_rate)
    gradients = [
        softmax_gradients(X, softmax.probabilities(weights, X) - targets)
        for weights in (begun, ended)
    ]
    given = dmsgd.diversify(task.X, k)
    plain = np.full(n, 1 / k)
    ways: list[tuple[str, dmsgd.KDPP, FloatArray]] = [
        ("as the kernel gives it", given, plain),
        ("prescribed: uniform", dmsgd.diversify(task.X, k, target="uniform"), plain),
        (
            "prescribed: balanced",
            dmsgd.diversify(task.X, k, labels=task.y, target="balanced"),
            plain,
        ),
        ("re-weighted by 1/(N b)", given, dmsgd.unbiased_weights(given)),
    ]
    found = []
    for name, design, a in ways:
        b = design.inclusion()
        measured = [gradient_variance(design, g, a) for g in gradients]
        noise = np.array([each.variance / each.reweighted for each in measured])
        found.append(Regime(name, n * b / k, n * b * a, noise))
    return tuple(found)


def claims(result: Result) -> list[Claim]:
    """Return early and late accuracy of every method, and paired differences."""
    return targets_findings.claims(result)


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the accuracy of all methods, and the three regimes."""
    return [
        *targets_figures.plot_accuracy(result, folder),
        *targets_figures.plot_regimes(result, folder),
    ]
