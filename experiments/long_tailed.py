"""Long-tailed labels: which batches give the best balanced accuracy?

MNIST, whose class sizes fall geometrically from 5,000 to 25, with a small CNN; and Oxford-102
embeddings, from 40 down to 2 items per class, with a linear model. Which class is rare is drawn
anew for every seed. Validation and test items are balanced, and rates are chosen on the former.

The arms are what people use today: shuffled epochs, torch's WeightedRandomSampler (independent
draws with replacement), weighted losses, sampling by the square root of class sizes, by their
effective number (Cui et al. 2019, beta = 0.999), decoupled training (Kang et al. 2020: shuffled
epochs, then a new last layer with balanced batches for the last fifth of the updates); and ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments import datasets
from experiments.core import Case, Claim, lines, training
from experiments.core.compare import Column
from experiments.core.figures import differences
from experiments.core.markdown import arm_rows
from experiments.models import softmax
from experiments.models.softmax import Task

TITLE = "Long-tailed labels: what people use today, stratified batches and k-DPPs"
NAMES, K, BETA, REFIT = ("mnist", "flowers"), 64, 0.999, 0.2
RATES = (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)  # of Adam, for the CNN
SAMPLER = "WeightedRandomSampler"
STRATIFIED, PARTITION, KDPP = "stratified", "partition of stratified", "k-DPP w=0.9"
Rows = Iterator[tuple[int, str, float]]


@dataclass(frozen=True)
class WithReplacement:
    """Independent draws with replacement in proportion to weights: WeightedRandomSampler's."""

    weights: np.ndarray
    k: int

    def sample(self, size: int, seed: int) -> np.ndarray:
        """Return (size, k) item numbers."""
        p = self.weights / self.weights.sum()
        return np.random.default_rng([seed, 70]).choice(p.size, (size, self.k), p=p)


@dataclass(frozen=True)
class Arm:
    """Batches, weights of items in the sum of losses, and batches for a new last layer."""

    design: Any
    weights: np.ndarray | None = None
    refit: Any = None


def long_tail(
    y: np.ndarray, largest: float, smallest: float, spare: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training items, `spare` others of each class, and the classes, largest first.

    Sizes fall geometrically; a class that has fewer items keeps what it has.
    """
    classes = rng.permutation(np.unique(y))
    sizes = np.rint(np.geomspace(largest, smallest, classes.size)).astype(int)
    items = [rng.permutation(np.flatnonzero(y == each)) for each in classes]
    train = [own[spare:][:size] for own, size in zip(items, sizes, strict=True)]
    return np.concatenate(train), np.concatenate([own[:spare] for own in items]), classes


def mnist_task(
    data: Callable[[], datasets.Images], sizes: tuple[int, int], tested: int, seed: int
) -> Task:
    """Return images as inputs and pixels of unit length for kernels; rarest class last."""
    images, rng = data(), np.random.default_rng([seed, 71])
    train, valid, classes = long_tail(images.y_train, *sizes, tested // 8, rng)
    test = np.concatenate([np.flatnonzero(images.y_test == each)[:tested] for each in classes])
    rank = np.argsort(classes)
    x, y = images.x_train[train], rank[images.y_train[train]]
    X = np.asarray(dmsgd.features.normalize(x.reshape(len(x), -1) / 255.0))
    judges = (
        (images.x_test[test], rank[images.y_test[test]]),
        (images.x_train[valid], rank[images.y_train[valid]]),
    )
    return Task(X, y, x, np.eye(classes.size, dtype=np.float32)[y], *judges)


def flowers_task(data: Callable[[], datasets.Flowers], sizes: tuple[int, int], seed: int) -> Task:
    """Return embeddings of unit length; the official parts for training and testing are swapped."""
    flowers = data()
    (X, y), test, valid = (flowers.part(each) for each in ("test", "train", "valid"))
    train, _, classes = long_tail(y, *sizes, 0, np.random.default_rng([seed, 72]))
    rank = np.argsort(classes)
    rows = np.asarray(dmsgd.features.normalize(X[train]), dtype=np.float64)
    targets = np.eye(classes.size, dtype=np.float32)[rank[y[train]]]
    judges = [(scaled(part), rank[own]) for part, own in (test, valid)]
    return Task(rows, rank[y[train]], scaled(X[train]), targets, *judges)


def scaled(X: np.ndarray) -> np.ndarray:
    """Return rows of length 10, near that of the raw features, for the classifier."""
    return (10 * np.asarray(dmsgd.features.normalize(X))).astype(np.float32)


@lru_cache(2)
def kdpp(task: Task, k: int, w: float) -> dmsgd.KDPP:
    """Return the k-DPP on [(1-w)X, wH]."""
    labels = task.y if w else None
    return dmsgd.diversify(task.X, k, labels, w, kernel="linear", normalize=False)


def arms(k: int, deep: bool) -> dict[str, Callable[[Task, int], Any]]:
    """Return all arms; a linear model has no layers to train apart."""

    def by_class(weight: Callable[[np.ndarray], np.ndarray]) -> Callable[[Task, int], Any]:
        def weighted(task: Task, seed: int) -> dmsgd.Weighted:
            return dmsgd.Weighted(weights=weight(np.bincount(task.y))[task.y], k=k)

        return weighted

    def weighted_loss(task: Task, seed: int) -> Arm:
        sizes = np.bincount(task.y)
        weights = task.y.size / (sizes.size * sizes[task.y]) / k
        return Arm(shuffled(task, seed), weights)

    def shuffled(task: Task, seed: int) -> dmsgd.Partition:
        return dmsgd.Partition(dmsgd.Uniform(task.y.size, k))

    def stratified(task: Task, seed: int) -> dmsgd.Stratified:
        return dmsgd.Stratified(task.y, k)

    found = training(None, k, {
        SAMPLER: lambda task, seed: WithReplacement(1 / np.bincount(task.y)[task.y], k),
        STRATIFIED: stratified,
        "weighted by class": by_class(lambda sizes: 1 / sizes),
        "weighted by square root": by_class(lambda sizes: sizes**-0.5),
        "weighted by effective number": by_class(lambda sizes: 1 / (1 - BETA**sizes)),
        "shuffled, weighted loss": weighted_loss,
        KDPP: lambda task, seed: kdpp(task, k, 0.9),
        f"{KDPP}, frequency-matched": lambda task, seed: dmsgd.Weighted.like(kdpp(task, k, 0.9)),
        "k-DPP features alone": lambda task, seed: kdpp(task, k, 0.0),
        PARTITION: lambda task, seed: dmsgd.Partition(stratified(task, seed)),
    })  # fmt: skip
    if deep:
        found["decoupled"] = lambda task, seed: Arm(
            shuffled(task, seed), refit=stratified(task, seed)
        )
    return found


def scores(step: int, predict: Callable[[Any], np.ndarray], task: Task) -> Rows:
    """Yield accuracies on balanced items: of all, of the rarest and of the largest third."""
    right = 100.0 * (predict(task.test[0]) == task.test[1])
    third, count = max(1, task.targets.shape[1] // 3), task.targets.shape[1]
    yield step, "accuracy", right.mean()
    yield step, "accuracy of rare classes", right[task.test[1] >= count - third].mean()
    yield step, "accuracy of large classes", right[task.test[1] < third].mean()
    yield step, "validation accuracy", 100.0 * np.mean(predict(task.valid[0]) == task.valid[1])


def run_linear(task: Task, arm: Any, seed: int, rate: float, steps: Sequence[int]) -> Rows:
    """Yield accuracies of a softmax regression."""
    arm = arm if isinstance(arm, Arm) else Arm(arm)
    for step, weights in task.stages(arm.design, seed, rate, steps, arm.weights):
        yield from scores(step, partial(softmax.predict, weights), task)


def run_cnn(task: Task, arm: Any, seed: int, rate: float, steps: Sequence[int], units: int) -> Rows:
    """Yield accuracies of a CNN trained by Adam."""
    import torch

    from experiments.models import cnn

    arm, here = arm if isinstance(arm, Arm) else Arm(arm), cnn.device()
    images, labels = cnn.pixels(task.inputs, here), torch.from_numpy(task.y).to(here)
    batches, refit = arm.design.sample(steps[-1], seed), None
    if arm.refit is not None:
        refit = steps[-1] - round(REFIT * steps[-1])
        batches[refit:] = arm.refit.sample(steps[-1] - refit, seed)

    def predict(model: Any, inputs: np.ndarray) -> np.ndarray:
        return np.asarray(cnn.predict(model, cnn.pixels(inputs, here)).cpu())

    how = {"weights": arm.weights, "refit": refit}
    for step, model in cnn.stages(images, labels, batches, steps, rate, seed, units, **how):
        yield from scores(step, partial(predict, model), task)


@dataclass(frozen=True)
class Size:
    """What is run, by data set."""

    images: Callable[[], datasets.Images]
    embeddings: Callable[[], datasets.Flowers]
    k: int = K
    sizes: tuple[tuple[int, int], tuple[int, int]] = ((5000, 25), (40, 2))  # largest, smallest
    steps: tuple[Sequence[int], Sequence[int]] = ((150, 500, 1500), (20, 100, 400, 1000))
    rates: tuple[tuple[float, ...], ...] = (RATES, (0.3, 1.0, 3.0, 10.0))
    units: int = 128
    tested: int = 800  # images of each digit, and an eighth of it to choose a rate
    seeds: int = 20

    def cases(self) -> list[Case]:
        """Return both data sets."""
        tasks = (
            partial(mnist_task, self.images, self.sizes[0], self.tested),
            partial(flowers_task, self.embeddings, self.sizes[1]),
        )
        loops = (
            partial(run_cnn, steps=self.steps[0], units=self.units),
            partial(run_linear, steps=self.steps[1]),
        )
        return [
            Case(f"long_tailed/{name}", task, arms(self.k, deep=loop.func is run_cnn), loop,
                 self.seeds, rates)
            for name, task, loop, rates in zip(NAMES, tasks, loops, self.rates, strict=True)
        ]  # fmt: skip


load_mnist, load_flowers = cache(datasets.mnist), cache(datasets.flowers)


def cases(quick: bool = False) -> list[Case]:
    """Return both data sets; `quick` are two seeds, one rate and few updates."""
    size = Size(load_mnist, load_flowers)
    if quick:
        few = ((300, 10), (40, 2)), ((50, 100), (20, 100)), ((1e-3,), (3.0,))
        size = Size(load_mnist, load_flowers, K, *few, 32, 80, 2)
    else:
        from experiments.models import cnn

        cnn.device()
    return size.cases()


def tiny() -> list[Case]:
    """Return the same on small digits."""
    from experiments.mnist import digits

    def embeddings() -> datasets.Flowers:
        data = digits()
        X = data.x_train.reshape(len(data.x_train), -1).astype(np.float32)
        split = np.array(["test", "test", "test", "train", "valid"])[np.arange(len(X)) % 5]
        return datasets.Flowers(X, data.y_train, split, ())

    few = ((40, 4), (20, 2)), ((2, 5), (2, 5)), ((1e-3,), (1.0,))
    return Size(cache(digits), cache(embeddings), 12, *few, 8, 8, 2).cases()


COLUMNS: dict[str, Column] = {
    f"{name}, {what}": (f"long_tailed/{name}", measure, None)
    for name in NAMES
    for what, measure in (("balanced accuracy", "accuracy"),
                          ("rare classes", "accuracy of rare classes"))
}  # fmt: skip
PAIRS = [
    (STRATIFIED, "shuffled"), (STRATIFIED, SAMPLER), (STRATIFIED, KDPP), (SAMPLER, "shuffled"),
    ("weighted by class", "shuffled"), ("weighted by square root", "shuffled"),
    ("weighted by effective number", "shuffled"), ("shuffled, weighted loss", "shuffled"),
    (KDPP, "shuffled"), ("k-DPP features alone", "shuffled"), (PARTITION, "shuffled"),
]  # fmt: skip
CLAIMS = [
    Claim("beyond", f"{name}, balanced accuracy: {arm} ahead of {other}", f"long_tailed/{name}",
          arm, "accuracy", other)
    for name in NAMES
    for arm, other in [*PAIRS, *([("decoupled", "shuffled"), (STRATIFIED, "decoupled")]
                                 if name == "mnist" else [])]
]  # fmt: skip


def _arms(name: str, table: pl.DataFrame) -> list[list[str]]:
    own = {title: column for title, column in COLUMNS.items() if title.startswith(name)}
    return arm_rows(table.filter(experiment=f"long_tailed/{name}"), own, "shuffled")


TABLES = {f"long-tailed-{name}": partial(_arms, name) for name in NAMES}


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write differences from shuffled epochs, and accuracy over updates."""
    shown = ("shuffled", SAMPLER, STRATIFIED, KDPP, "k-DPP features alone", PARTITION)
    panels = {name: f"long_tailed/{name}" for name in NAMES}
    return [
        differences(table, folder / "long-tailed.png", COLUMNS, "shuffled", "points"),
        lines(table, folder / "long-tailed-curves.png", panels, shown, "accuracy",
              "balanced accuracy, %"),
    ]  # fmt: skip
