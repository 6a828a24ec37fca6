"""Long-tailed digits: what five ways of drawing batches do for the rare classes, and at what cost.

scikit-learn's 8 x 8 digits, thinned so that class sizes fall geometrically (120 down to 5); the
test set is balanced. Every seed draws anew which digit is rare, the split, the initial weights and
the batches; within a seed all methods share the split and the initial weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.experiments import softmax
from dmsgd.experiments.intervals import margin
from dmsgd.inputs.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: How a method is drawn: colour (Okabe and Ito's, safe for the colour-blind), marker, line.
STYLES = (
    ("#777777", "o", "-"),
    ("#009E73", "s", "-"),
    ("#E69F00", "^", "-"),
    ("#56B4E9", "v", "--"),
    ("#0072B2", "D", "-"),
)


@dataclass(frozen=True)
class Config:
    """What is run.

    `weights` are the label weights w of the two k-DPPs; class c has largest · decay^c items.
    Accuracy is measured after each of `checkpoints` steps; `early` is one of them, and the last
    ends the run.
    """

    seeds: int = 10
    k: int = 20
    weights: tuple[float, float] = (0.0, 0.7)
    rate: float = 0.5
    checkpoints: tuple[int, ...] = (5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 400, 600, 800)
    early: int = 50
    largest: int = 120
    decay: float = 0.7
    test_per_class: int = 50


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did.

    shares:   (classes,) expected share of a batch by class, commonest first; from `inclusion()`.
    accuracy: (seeds, checkpoints) on the balanced test set.
    setup, sample, step: seconds (median over seeds) to build the design, to draw one batch and to
    take one training step with it.
    """

    name: str
    shares: FloatArray
    accuracy: FloatArray
    setup: float
    sample: float
    step: float


@dataclass(frozen=True, eq=False)
class Result:
    """All methods on the same data; `sizes` are the class sizes in training, commonest first."""

    config: Config
    sizes: IntArray
    outcomes: tuple[Outcome, ...]

    def __getitem__(self, name: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.name == name)

    def accuracy(self, name: str, step: int) -> FloatArray:
        """Return the accuracy of a method after `step` steps, one value per seed."""
        return self[name].accuracy[:, self.config.checkpoints.index(step)]


@dataclass(frozen=True, eq=False)
class Task:
    """One draw of the data: features in [0, 1], labels numbered from the commonest class."""

    X: FloatArray
    y: IntArray
    test_X: FloatArray
    test_y: IntArray


def class_sizes(config: Config, classes: int = 10) -> IntArray:
    """Return the number of training items of each class, commonest first."""
    sizes = config.largest * config.decay ** np.arange(classes)
    return np.asarray(np.rint(sizes), dtype=np.int64)


def methods(config: Config) -> dict[str, Callable[[Task, int], dmsgd.Design]]:
    """Return the five ways to draw batches: name -> (task, seed) -> design."""
    k = config.k

    def kdpp(w: float) -> Callable[[Task, int], dmsgd.Design]:
        return lambda task, seed: dmsgd.diversify(task.X, k, labels=task.y, w=w, normalize=True)

    return {
        "uniform": lambda task, seed: dmsgd.Uniform(task.y.size, k),
        "stratified": lambda task, seed: dmsgd.Stratified(task.y, k),
        "clustered": lambda task, seed: dmsgd.clustered(task.X, k, seed=seed),
        **{f"k-DPP w={w:g}": kdpp(w) for w in config.weights},
    }


def run(config: Config, progress: Callable[[float], None] | None = None) -> Result:
    """Return shares, accuracies and times of all methods; `progress` is told the fraction done.

    Everything runs on one thread: matrices this small gain nothing from more, and the idle threads
    of one method's set-up would spin through the next one's timing.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

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


def make_task(config: Config, seed: int) -> Task:
    """Return the long-tailed training set and the balanced test set of this seed."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng([seed, 0])
    train, test = [], []
    for size, digit in zip(class_sizes(config), rng.permutation(10), strict=True):
        items = rng.permutation(np.flatnonzero(digits == digit))
        test.append(items[: config.test_per_class])
        train.append(items[config.test_per_class :][:size])
    y, test_y = (
        np.repeat(np.arange(10), [part.size for part in parts]).astype(np.int64)
        for parts in (train, test)
    )
    X, test_X = (pixels[np.concatenate(parts)] / 16 for parts in (train, test))
    return Task(X, y, test_X, test_y)


@dataclass(frozen=True, eq=False)
class _Trial:
    shares: FloatArray
    accuracy: FloatArray
    times: tuple[float, float, float]


def _warm_up(config: Config, builders: dict[str, Callable[[Task, int], dmsgd.Design]]) -> None:
    """Draw once from every design, so that no compilation or import is timed later."""
    task = make_task(config, 0)
    for build in builders.values():
        build(task, 0).sample(1, seed=0)


def _trial(
    config: Config, task: Task, build: Callable[[Task, int], dmsgd.Design], seed: int
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


def plot_shares(result: Result, path: Path) -> None:
    """Write a picture of the expected share of each class in a batch."""
    figure, axes = _figure()
    classes = np.arange(1, result.sizes.size + 1)
    for outcome, (colour, marker, line) in zip(result.outcomes, STYLES, strict=True):
        axes.plot(
            classes, 100 * outcome.shares, line, color=colour, marker=marker, label=outcome.name
        )
    axes.set_yscale("log")
    axes.set_yticks(ticks := [1, 2, 5, 10, 20, 30], [f"{tick} %" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_xticks(classes, [str(size) for size in result.sizes])
    axes.set_xlabel("training items of the class")
    axes.set_ylabel("expected share of a batch")
    axes.set_title(f"Who is in a batch of {result.config.k}? (long-tailed digits, ten classes)")
    _save(figure, axes, path)


def plot_accuracy(result: Result, path: Path) -> None:
    """Write a picture of balanced test accuracy over training steps: mean and 95 % interval."""
    figure, axes = _figure()
    steps = np.array(result.config.checkpoints)
    for outcome, (colour, marker, line) in zip(result.outcomes, STYLES, strict=True):
        mean = 100 * outcome.accuracy.mean(axis=0)
        half = 100 * np.array([margin(column) for column in outcome.accuracy.T])
        axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
        axes.plot(steps, mean, line, color=colour, marker=marker, label=outcome.name)
    axes.set_xscale("log")
    ticks = [step for step in steps if step in (5, 10, 20, 50, 100, 200, 400, 800)]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:.0f} %")
    axes.set_xlabel(f"training steps (batches of {result.config.k})")
    axes.set_ylabel("accuracy on the balanced test set")
    axes.set_title(
        f"Learning long-tailed digits (mean of {result.config.seeds} seeds, 95 % interval)"
    )
    _save(figure, axes, path)


def _figure() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Figure, axes: Axes, path: Path) -> None:
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
