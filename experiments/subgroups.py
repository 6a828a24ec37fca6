"""Hidden subgroups: even or odd, with digits that are rare inside each class and named to nobody.

MNIST, halved to 14 x 14 pixels, with the parity of the digit as the label. Inside each class the
sizes of the five digits fall geometrically, and which digit is rare is drawn anew for every seed.
Arms see pixels and parity, never the digit (except the oracle, which shows what there is to gain).
A network with one hidden layer is tested by digit: the worst of the ten, their mean, and the mean
of the rarest of each class. Rates are chosen by parity, on items drawn as those for training are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments import datasets
from experiments.core import Case, Claim, Decomposition, training
from experiments.core.compare import Column
from experiments.core.figures import differences
from experiments.core.markdown import arm_rows
from experiments.models import mlp

TITLE = "Hidden subgroups: parity of digits that are rare inside each class"
MEASURES = ("worst digit", "rarest digits", "mean digit")
EARLY, LATE = 300, 3000
DENSITY = "k-DPP linear, density target"
ORACLE = "stratified by digit (oracle)"


@dataclass(frozen=True)
class Size:
    """What is run; odd items are half as many as even ones, so that the classes differ too."""

    data: Callable[[], datasets.Images]
    k: int = 50
    largest: int = 1500  # items of the commonest digit
    ratio: float = 100.0  # times those of the rarest
    rank: int = 400  # of the factor of the RBF kernel
    units: int = 128
    steps: tuple[int, ...] = (100, EARLY, 1000, LATE)
    tested: int = 500  # items of each digit

    def sizes(self) -> np.ndarray:
        """Return the training items of each digit: even from the commonest, then odd."""
        even = self.largest * self.ratio ** (-np.arange(5) / 4)
        return np.rint(np.concatenate([even, 0.5 * even])).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Task:
    """Pixels in 0..1; digits numbered by rank, 0..4 even, 5..9 odd, rarest last; y is parity."""

    X: np.ndarray
    digit: np.ndarray
    valid: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    @property
    def y(self) -> np.ndarray:
        """Even (0) or odd (1)."""
        return self.digit // 5


def make_task(size: Size, seed: int) -> Task:
    """Return the items of a seed; validation items are as rare as training items."""
    data, rng = size.data(), np.random.default_rng([seed, 20])
    digits = np.concatenate([rng.permutation([0, 2, 4, 6, 8]), rng.permutation([1, 3, 5, 7, 9])])
    train, spare, test = [], [], []
    for digit, count in zip(digits, size.sizes(), strict=True):
        items = rng.permutation(np.flatnonzero(data.y_train == digit))
        train.append(items[:count])
        spare.append(items[count : 2 * count])
        test.append(rng.permutation(np.flatnonzero(data.y_test == digit))[: size.tested])

    def part(images: np.ndarray, parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        pooled = images[np.concatenate(parts)].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
        pixels = (pooled.reshape(len(pooled), -1) / 255).astype(np.float32)
        return pixels, np.repeat(np.arange(10), [each.size for each in parts])

    judges = part(data.x_train, spare), part(data.x_test, test)
    return Task(*part(data.x_train, train), *judges)


def arms(size: Size) -> dict[str, Callable[[Task, int], Any]]:
    """Return what makes a design, or a design and the weights of items in the sum of losses."""
    n, k = int(size.sizes().sum()), size.k

    def linear(task: Task, seed: int, target: Any = None) -> dmsgd.KDPP:
        labels = task.y if target == "balanced" else None
        return dmsgd.diversify(task.X, k, labels, kernel="linear", normalize=True, target=target)

    def strong(task: Task, seed: int) -> dmsgd.KDPP:
        X = dmsgd.features.normalize(task.X)
        b = dmsgd.targets.density(X, k, 1.0)
        return dmsgd.diversify(X, k, kernel="linear", normalize=False, target=b)

    def rbf(task: Task, seed: int, target: Any = None, w: float = 0.0) -> dmsgd.KDPP:
        X = dmsgd.features.concat(task.X, task.y, w) if w > 0 else task.X
        kernel, rank = dmsgd.kernels.RBF(X), size.rank
        spectrum = dmsgd.kernels.pivoted_cholesky(kernel, rank=rank, oversampling=1.0)
        b = dmsgd.targets.density(X, k) if target == "density" else target
        return dmsgd.KDPP(spectrum if b is None else dmsgd.targets.prescribe(spectrum, k, b), k)

    def matched(make: Callable[[Task, int], dmsgd.KDPP]) -> Callable[[Task, int], Any]:
        return lambda task, seed: dmsgd.Weighted.like(make(task, seed))

    def class_weighted(task: Task, seed: int) -> Any:
        return dmsgd.Uniform(n, k), n / (2 * np.bincount(task.y)[task.y]) / k

    return training(n, k, {
        "stratified by parity": lambda task, seed: dmsgd.Stratified(task.y, k),
        "class-weighted loss": class_weighted,
        "clustered": lambda task, seed: dmsgd.designs.clustered(task.X, k, seed=seed),
        "k-DPP linear": linear,
        "k-DPP linear, frequency-matched": matched(linear),
        "k-DPP rbf": rbf,
        "k-DPP rbf, frequency-matched": matched(rbf),
        "k-DPP rbf, w=0.5": partial(rbf, w=0.5),
        "k-DPP linear, uniform frequency": partial(linear, target="uniform"),
        "k-DPP linear, balanced target": partial(linear, target="balanced"),
        DENSITY: partial(linear, target="density"),
        f"{DENSITY}, strength 1": strong,
        f"{DENSITY}, strength 1, frequency-matched": matched(strong),
        "k-DPP rbf, uniform frequency": partial(rbf, target="uniform"),
        "k-DPP rbf, density target": partial(rbf, target="density"),
        ORACLE: lambda task, seed: dmsgd.Stratified(task.digit, k),
    })  # fmt: skip


def run(
    size: Size, task: Task, arm: Any, seed: int, rate: float
) -> Iterator[tuple[int, str, float]]:
    """Yield what the rarest digits make of a batch, and accuracies at some of the steps."""
    design, weights = arm if isinstance(arm, tuple) else (arm, None)
    rare = np.isin(task.digit, (4, 9))
    yield 0, "rarest digits in a batch", 100 * design.inclusion()[rare].sum() / size.k
    network = mlp.initial(task.X.shape[1], size.units, 2, np.random.default_rng([seed, 21]))
    batches, targets = design.sample(size.steps[-1], seed), np.eye(2, dtype=np.float32)[task.y]
    digit, first = task.test[1], 0
    for last in size.steps:
        network = mlp.train(network, task.X, targets, batches[first:last], rate, weights)
        right = network.predict(task.test[0]) == digit // 5
        by_digit = 100 * np.bincount(digit, right) / np.bincount(digit)
        found = by_digit.min(), by_digit[[4, 9]].mean(), by_digit.mean()
        yield from ((last, *each) for each in zip(MEASURES, found, strict=True))
        chosen = network.predict(task.valid[0]) == task.valid[1] // 5
        yield last, "validation accuracy", 100 * chosen.mean()
        first = last


@cache
def mnist() -> datasets.Images:
    """Return MNIST, read once."""
    return datasets.mnist()


def cases(quick: bool = False, size: Size | None = None) -> list[Case]:
    """Return all arms; `quick` are two seeds at the rate that serves uniform batches."""
    seeds, rates = (2, (1.0,)) if quick else (40, (0.25, 0.5, 1.0, 2.0, 4.0))
    size = size or Size(mnist)
    task, loop = partial(make_task, size), partial(run, size)
    return [Case("subgroups", task, arms(size), loop, seeds, rates)]


def tiny() -> list[Case]:
    """Return all arms on few images whose rows of ink tell the digit."""

    def images() -> datasets.Images:
        y = np.repeat(np.arange(10), 90)
        x = np.random.default_rng(1).integers(0, 60, size=(y.size, 28, 28))
        x[np.arange(y.size), 2 * y + 4] += 150
        return datasets.Images(x.astype(np.uint8), y, x.astype(np.uint8), y)

    return cases(True, Size(images, 12, 45, 15.0, 60, 16, (20, EARLY), 10))


RARE: Column = ("subgroups", "rarest digits in a batch", None)
COLUMNS: dict[str, Column] = {
    f"{measure}, {step or LATE} updates": ("subgroups", measure, step)
    for measure in MEASURES
    for step in (EARLY, None)
}
CLAIMS = [
    *(
        Claim("beyond", f"{title}: {arm} ahead of uniform batches", where, arm, measure,
              "uniform", step=step)
        for arm in ("k-DPP linear", DENSITY)
        for title, (where, measure, step) in COLUMNS.items()
    ),
    Claim("beyond", f"worst digit, {LATE} updates: {ORACLE} ahead of uniform batches", "subgroups",
          ORACLE, "worst digit", "uniform"),
    Claim("beyond", "rarest digits in a batch, %: density target above k-DPP", "subgroups", DENSITY,
          RARE[1], "k-DPP linear"),
]  # fmt: skip
DECOMPOSED = [
    Decomposition(f"{title}, {arm}: accuracy, points", where, arm, measure, step)
    for arm in ("k-DPP linear", "k-DPP rbf", f"{DENSITY}, strength 1")
    for title, (where, measure, step) in COLUMNS.items()
    if measure != "rarest digits"
]
TABLES = {
    "subgroups": lambda table: arm_rows(table, {"rarest in a batch, %": RARE} | COLUMNS, "uniform")
}


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write differences of the worst and the mean digit from uniform batches."""
    shown = {title: column for title, column in COLUMNS.items() if column[1] != "rarest digits"}
    path = folder / "subgroups.png"
    return [differences(table, path, shown, "uniform", "points ahead of uniform batches")]
