"""Hidden subgroups: even or odd, with digits that are rare inside each class and named to nobody.

MNIST, halved to 14 x 14 pixels, with the parity of the digit as the label. Inside each class the
sizes of the five digits fall geometrically, and which digit is rare is drawn anew for every seed.
Methods see pixels and parity, never the digit (but for the oracle, which shows what there is to
gain). Accuracy is reported by digit: the worst of the ten, their mean, and the rarest of each
class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.experiments import mlp, subgroups_figures
from dmsgd.experiments.intervals import holds, paired, show, shown
from dmsgd.experiments.protocol import Claim, Progress
from dmsgd.experiments.trials import run_trials
from dmsgd.inputs.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from dmsgd.datasets import Images

TITLE = "Hidden subgroups: parity of digits that are rare inside each class"


@dataclass(frozen=True)
class Config:
    """What is run.

    largest, ratio: sizes inside a class fall from `largest` to largest / ratio.
    minority:       odd items for each even one, so that the classes differ in size too.
    rank:           of the RBF kernel's factor; its scale is the median heuristic's.
    checkpoints:    steps after which accuracy is measured; the last ends the run.
    rates:          of plain SGD, the same for all methods: the best for uniform batches, by parity,
                    on items drawn as the training items are (nobody has balanced ones).
    test_per_digit: items of each digit in the test set.
    """

    seeds: int = 10
    k: int = 50
    largest: int = 1500
    ratio: float = 100.0
    minority: float = 0.5
    rank: int = 400
    units: int = 128
    checkpoints: tuple[int, ...] = (100, 300, 1000, 3000)
    rates: tuple[float, ...] = (0.3, 1.0, 3.0)
    test_per_digit: int = 500


QUICK = Config(
    seeds=2, k=30, largest=200, rank=200, checkpoints=(50, 100, 300), rates=(0.3,),
    test_per_digit=100,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did.

    accuracy: (seeds, checkpoints, 10) by digit, in the order of `Result.sizes`.
    shares:   (seeds, 10), expected share of a batch by digit in the same order.
    """

    method: str
    accuracy: FloatArray
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All methods. `sizes`: training items by digit: even from the commonest, then odd."""

    config: Config
    rate: float
    sizes: IntArray
    outcomes: tuple[Outcome, ...]

    def outcome(self, method: str) -> Outcome:
        """Return what a method did."""
        return next(each for each in self.outcomes if each.method == method)

    def accuracy(self, method: str, measure: str, checkpoint: int = -1) -> FloatArray:
        """Return "worst", "mean" or "rarest" digit accuracy, one value per seed."""
        by_digit = self.outcome(method).accuracy[:, checkpoint]
        return np.asarray(MEASURES[measure](by_digit))

    def gain(self, method: str, measure: str, checkpoint: int = -1) -> tuple[float, float]:
        """Return the mean lead over uniform batches in points, paired by seed, and its margin."""
        ours, uniform = (
            100 * self.accuracy(name, measure, checkpoint) for name in (method, "uniform")
        )
        return paired(ours, uniform)


#: The rarest digit of each class.
RAREST = [4, 9]
#: The checkpoint at which methods are compared besides the last.
EARLY = 1
#: (seeds, 10) accuracies by digit -> one number per seed.
MEASURES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "worst": lambda by_digit: by_digit.min(axis=1),
    "rarest": lambda by_digit: by_digit[:, RAREST].mean(axis=1),
    "mean": lambda by_digit: by_digit.mean(axis=1),
}


@dataclass(frozen=True, eq=False)
class Task:
    """Pixels in 0..1, parity y, and digits numbered by rank: 0..4 even, 5..9 odd, rarest last."""

    X: FloatArray
    y: IntArray
    digit: IntArray
    test_X: FloatArray
    test_digit: IntArray
    valid_X: FloatArray
    valid_y: IntArray


@dataclass(frozen=True)
class Method:
    """A design for a task, and the weights of items in the update (None: 1/k)."""

    name: str
    design: Callable[[Task, Config, int], dmsgd.Design]
    weights: Callable[[Task, Config], FloatArray] | None = None


def load(config: Config, data_dir: str | None = None) -> Images:
    """Return MNIST."""
    from dmsgd import datasets

    return datasets.mnist(data_dir)


def sizes(config: Config) -> IntArray:
    """Return the training items of each digit: even from the commonest, then odd."""
    even = config.largest * config.ratio ** (-np.arange(5) / 4)
    return np.asarray(np.rint(np.concatenate([even, config.minority * even])), dtype=np.int64)


def make_task(config: Config, data: Images, seed: int) -> Task:
    """Return the items of a seed; validation items are as rare as training items."""
    rng = np.random.default_rng([seed, 20])
    digits = np.concatenate([rng.permutation([0, 2, 4, 6, 8]), rng.permutation([1, 3, 5, 7, 9])])
    chosen, spare, test = [], [], []
    for digit, size in zip(digits, sizes(config), strict=True):
        items = rng.permutation(np.flatnonzero(data.y_train == digit))
        chosen.append(items[:size])
        spare.append(items[size : 2 * size])
        test.append(rng.permutation(np.flatnonzero(data.y_test == digit))[: config.test_per_digit])

    def ranks(parts: list[IntArray]) -> IntArray:
        return np.repeat(np.arange(10), [part.size for part in parts])

    def pixels(images: object, parts: list[IntArray]) -> FloatArray:
        rows = np.asarray(images)[np.concatenate(parts)]
        pooled = rows.reshape(len(rows), 14, 2, 14, 2).mean(axis=(2, 4))
        return np.asarray(pooled.reshape(len(rows), -1) / 255, dtype=np.float32)

    rank = ranks(chosen)
    return Task(
        pixels(data.x_train, chosen), rank // 5, rank,
        pixels(data.x_test, test), ranks(test),
        pixels(data.x_train, spare), ranks(spare) // 5,
    )  # fmt: skip


def linear(
    task: Task, config: Config, seed: int, target: str | None = None, strength: float | None = None
) -> dmsgd.Design:
    """Return the k-DPP that is linear in the pixels, rows of unit length."""
    if strength is not None:
        X = dmsgd.normalize(task.X)
        b = dmsgd.density_target(X, config.k, strength)
        return dmsgd.diversify(X, config.k, target=b)
    return dmsgd.diversify(task.X, config.k, labels=task.y, normalize=True, target=target)


def rbf(
    task: Task, config: Config, seed: int, target: str | None = None, w: float = 0.0
) -> dmsgd.Design:
    """Return the k-DPP with an RBF kernel on the pixels, by a factor of rank `config.rank`."""
    factor = partial(dmsgd.pivoted_cholesky, rank=config.rank, oversampling=1.0)
    return dmsgd.diversify(
        task.X, config.k, labels=task.y, w=w, kernel="rbf", target=target, spectrum=factor
    )


def parity_weights(task: Task, config: Config) -> FloatArray:
    """Return weights that give both classes the same weight in the loss."""
    of_class = np.bincount(task.y)
    return np.asarray(task.y.size / (2 * of_class[task.y]) / config.k)


ORACLE = "stratified by digit (oracle)"
METHODS = (
    Method("uniform", lambda task, config, seed: dmsgd.Uniform(task.y.size, config.k)),
    Method("stratified by parity", lambda task, config, seed: dmsgd.Stratified(task.y, config.k)),
    Method(
        "class-weighted loss",
        lambda task, config, seed: dmsgd.Uniform(task.y.size, config.k),
        parity_weights,
    ),
    Method(
        "clustered",
        lambda task, config, seed: dmsgd.clustered(task.X, config.k, seed=seed),
    ),
    Method("k-DPP linear", linear),
    Method("k-DPP rbf", rbf),
    Method("k-DPP rbf, w=0.5", partial(rbf, w=0.5)),
    Method("linear, uniform target", partial(linear, target="uniform")),
    Method("linear, balanced target", partial(linear, target="balanced")),
    Method("linear, density target", partial(linear, target="density")),
    Method("linear, density, strength 1", partial(linear, strength=1.0)),
    Method("rbf, density target", partial(rbf, target="density")),
    Method(ORACLE, lambda task, config, seed: dmsgd.Stratified(task.digit, config.k)),
)


def run(config: Config, data: Images, progress: Progress | None = None) -> Result:
    """Return accuracy by digit of all methods; everything on one thread."""
    tasks = [make_task(config, data, seed) for seed in range(config.seeds)]
    rate = _tune(config, make_task(config, data, 1000))
    jobs = [
        (config, task, method, rate, seed) for method in METHODS for seed, task in enumerate(tasks)
    ]
    found = run_trials(_trial, jobs, progress)
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


def claims(result: Result) -> list[Claim]:
    """Return accuracies, the share of rare digits, and paired differences from uniform."""
    found = []
    steps = result.config.checkpoints
    note = (
        f"worst / rarest / mean digit accuracy after {steps[-1]} steps, %, and what the rarest "
        f"digits make of a batch; the oracle is told the digits"
    )
    for outcome in result.outcomes:
        cells = [show(result.accuracy(outcome.method, measure)) for measure in MEASURES]
        rare = outcome.shares[:, RAREST].sum(axis=1)
        text = f"{' / '.join(cells)}; {show(rare)} of a batch"
        found.append(Claim("beyond", outcome.method, "", text, note=note))
    for outcome in result.outcomes[1:]:
        for measure in MEASURES:
            for checkpoint in (EARLY, -1):
                gain = result.gain(outcome.method, measure, checkpoint)
                statement = (
                    f"{outcome.method} ahead of uniform, {measure} digit, {steps[checkpoint]} steps"
                )
                ours = shown(*gain, sign=True)
                found.append(Claim("beyond", statement, "", ours, holds(*gain)))
    return found


def plot(result: Result, folder: Path) -> list[Path]:
    """Write accuracy by method, and accuracy against the share of rare digits in a batch."""
    return subgroups_figures.plot(result, folder)
