"""Accuracy on long-tailed classes: a balanced target against the other ways to balance.

Softmax regression on Oxford-102 (the paper's swapped split: 6,149 images to train on, 20 to 238 per
class, tested on 10 per class) and on scikit-learn's 8 x 8 digits, thinned so that class sizes fall
geometrically (120 down to 5; which digit is rare changes with the seed). Test sets are balanced.
All arms of a seed share the random start and the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments import datasets
from experiments.core import Case, Claim, Decomposition, training
from experiments.core.compare import Column
from experiments.core.figures import COLOURS, differences, dress, logarithmic, save
from experiments.core.markdown import arm_rows
from experiments.models import softmax
from experiments.models.softmax import Task

TITLE = "Long-tailed classes: balanced targets against mixing, strata and weighted losses"
N, K = {"flowers": 6149, "digits": 389}, {"flowers": 102, "digits": 20}
#: Updates of 1, 2, 3, 5, 10 and 15 epochs of flowers, and of 1, 2, 5, 10, 20 and 40 of digits.
STEPS = {"flowers": (60, 121, 181, 301, 603, 904), "digits": (19, 39, 97, 194, 389, 778)}
RATES = {"flowers": (0.3, 1.0, 3.0, 10.0, 30.0), "digits": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)}
BALANCED = "k-DPP w=0.5, balanced target"
COLUMNS: dict[str, Column] = {
    "flowers, 1 epoch": ("targets/flowers", "accuracy", STEPS["flowers"][0]),
    "flowers, 15 epochs": ("targets/flowers", "accuracy", None),
    "digits, 1 epoch": ("targets/digits", "accuracy", STEPS["digits"][0]),
    "digits, 40 epochs": ("targets/digits", "accuracy", None),
}


@cache
def flowers() -> Task:
    """Return the paper's task; the kernel sees 256 leading directions of the unit rows."""
    data = datasets.flowers()
    X = np.asarray(dmsgd.features.normalize(data.X))
    inputs = (10 * X).astype(np.float32)
    train, test, valid = (data.split == part for part in ("test", "train", "valid"))
    _, U = np.linalg.eigh(X[train].T @ X[train])
    targets = np.eye(102, dtype=np.float32)[data.y[train]]
    judges = [(inputs[part], data.y[part]) for part in (test, valid)]
    return Task(X[train] @ U[:, -256:], data.y[train], inputs[train], targets, *judges)


@cache
def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits, read once: pixels from 0 to 16, and what they show."""
    from sklearn import datasets

    return datasets.load_digits(return_X_y=True)


def digits(seed: int) -> Task:
    """Return the long-tailed digits of a seed, labels numbered from the commonest class.

    No items are left to choose a rate on: other seeds, with other splits, choose it.
    """
    pixels, digit = load_digits()
    rng, train, test = np.random.default_rng([seed, 0]), [], []
    sizes = np.rint(120 * 0.7 ** np.arange(10)).astype(np.int64)
    for size, each in zip(sizes, rng.permutation(10), strict=True):
        items = rng.permutation(np.flatnonzero(digit == each))
        test.append(items[:50])
        train.append(items[50:][:size])
    X, y = pixels[np.concatenate(train)] / 16, np.repeat(np.arange(10), sizes)
    judge = (pixels[np.concatenate(test)] / 16).astype(np.float32), np.repeat(np.arange(10), 50)
    targets = np.eye(10, dtype=np.float32)[y]
    rows = np.asarray(dmsgd.features.normalize(X))
    return Task(rows, y, X.astype(np.float32), targets, judge, judge)


@lru_cache(2)
def kdpp(task: Task, k: int, w: float, target: Any = None) -> dmsgd.KDPP:
    """Return the k-DPP on [(1-w)X, wH] with a target."""
    labels = task.y if w > 0 or target == "balanced" else None
    return dmsgd.diversify(task.X, k, labels, w, kernel="linear", normalize=False, target=target)


def arms(n: int, k: int) -> dict[str, Callable[[Task, int], Any]]:
    """Return what makes a design, or a design and the weights of items in the sum of losses."""

    def made(w: float, target: Any = None) -> Callable[[Task, int], Any]:
        return lambda task, seed: kdpp(task, k, w, target)

    def matched(*settings: Any) -> Callable[[Task, int], Any]:
        return lambda task, seed: dmsgd.Weighted.like(kdpp(task, k, *settings))

    def class_weighted(task: Task, seed: int) -> Any:
        sizes = np.bincount(task.y)
        return dmsgd.Uniform(n, k), n / (np.count_nonzero(sizes) * sizes[task.y]) / k

    def unbiased(task: Task, seed: int) -> Any:
        return kdpp(task, k, 0.9), dmsgd.unbiased_weights(kdpp(task, k, 0.9))

    return training(n, k, {
        "stratified": lambda task, seed: dmsgd.Stratified(task.y, k),
        "class-weighted loss": class_weighted,
        "k-DPP w=0": made(0.0),
        "k-DPP w=0, frequency-matched": matched(0.0),
        "k-DPP w=0.7": made(0.7),
        "k-DPP w=0.9": made(0.9),
        "k-DPP w=0.9, frequency-matched": matched(0.9),
        "k-DPP w=0.9, unbiased": unbiased,
        "k-DPP w=0, uniform frequency": made(0.0, "uniform"),
        "k-DPP w=0.9, uniform frequency": made(0.9, "uniform"),
        "k-DPP w=0, balanced target": made(0.0, "balanced"),
        BALANCED: made(0.5, "balanced"),
        "k-DPP w=0.9, balanced target": made(0.9, "balanced"),
        "k-DPP w=0.9, balanced target, frequency-matched": matched(0.9, "balanced"),
    })  # fmt: skip


def run(
    steps: tuple[int, ...], task: Task, arm: Any, seed: int, rate: float
) -> Iterator[tuple[int, str, float]]:
    """Yield how far class shares are from equal ones, and accuracies at some of the steps."""
    design, item_weights = arm if isinstance(arm, tuple) else (arm, None)
    shares = np.bincount(task.y, design.inclusion()) / design.k
    yield 0, "imbalance", 50 * np.abs(shares - 1 / shares.size).sum()
    batches, weights, first = design.sample(steps[-1], seed), task.start(seed), 0
    for last in steps:
        rows, first = batches[first:last], last
        weights = softmax.train(weights, task.inputs, task.targets, rows, rate, item_weights)
        for measure, (X, y) in (("validation accuracy", task.valid), ("accuracy", task.test)):
            yield last, measure, 100 * np.mean(softmax.predict(weights, X) == y)


def cases(quick: bool = False) -> list[Case]:
    """Return both tasks; `quick` are two seeds at the rates that serve uniform batches."""
    return [
        Case(f"targets/{name}", task, arms(N[name], K[name]), partial(run, STEPS[name]),
             seeds=2 if quick else 20, rates=RATES[name][2:3] if quick else RATES[name])
        for name, task in (("flowers", lambda seed: flowers()), ("digits", digits))
    ]  # fmt: skip


def tiny() -> list[Case]:
    """Return the digits as both tasks, with few updates."""
    return [
        Case(f"targets/{name}", digits, arms(N["digits"], 20), partial(run, (first, first + 5)), 2)
        for name, (first, *_) in STEPS.items()
    ]


CLAIMS = [
    Claim("beyond", f"{title}: balanced target, w = 0.5, ahead of {other}", where, BALANCED,
          measure, other, step=step)
    for title, (where, measure, step) in COLUMNS.items()
    for other in ("uniform", "stratified", "class-weighted loss", "k-DPP w=0.9")
]  # fmt: skip
DECOMPOSED = [
    Decomposition(f"{title}, {arm}: accuracy, points", where, arm, measure, step)
    for title, (where, measure, step) in COLUMNS.items()
    for arm in ("k-DPP w=0", "k-DPP w=0.9", "k-DPP w=0.9, balanced target")
]
SHARES: dict[str, Column] = {
    f"{name}: in the wrong class": (f"targets/{name}", "imbalance", None) for name in N
}
TABLES = {"targets": lambda table: arm_rows(table, COLUMNS | SHARES, "stratified")}


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write differences from uniform batches, and three ways to use one k-DPP."""
    path = folder / "targets-accuracy.png"
    differences(table, path, COLUMNS, "uniform", "points ahead of uniform batches")
    return [path, regimes(folder / "targets.png")]


def regimes(path: Path) -> Path:
    """Write how often a k-DPP on the digits of seed 0 draws items, and how noisy updates are.

    Noise is the variance of the batch gradient over that of uniform batches whose losses are
    weighted so that they follow the same gradient; before and after training with uniform batches.
    """
    from matplotlib.figure import Figure

    task, k = digits(0), K["digits"]
    n, X, begun = task.y.size, task.inputs.astype(np.float64), task.start(0).astype(np.float64)
    batches = dmsgd.Uniform(n, k).sample(STEPS["digits"][-1], 0)
    points = begun, softmax.train(begun, X, task.targets, batches, 0.5)
    every = [softmax.softmax_gradients(X, softmax.probabilities(weights, X) - task.targets)
             for weights in points]  # fmt: skip
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    drawn, noise = figure.subplots(1, 2)
    labels = ("as the kernel gives it", "target: uniform", "target: balanced", "weights 1/(n b)")
    for row, target in enumerate((None, "uniform", "balanced", None)):
        design, colour = kdpp(task, k, 0.0, target), COLOURS[(7, 0, 2, 5)[row]]
        if row < 3:  # the last has the batches of the first
            often = n / k * design.inclusion()
            drawn.scatter(np.arange(n), often, s=7, color=colour, linewidth=0, label=labels[row])
        weights = dmsgd.unbiased_weights(design) if row == 3 else None
        found = [dmsgd.diagnostics.gradient_variance(design, each, weights) for each in every]
        for at, each, alpha in zip((row - 0.2, row + 0.2), found, (0.45, 1.0), strict=True):
            bar = noise.barh(at, each.variance / each.reweighted, 0.36, color=colour, alpha=alpha)
            noise.bar_label(bar, fmt="%.2f", padding=3, fontsize=9)
    noise.set_yticks(range(4), labels)
    noise.invert_yaxis()
    noise.axvline(1, color="black", linewidth=0.8)
    noise.set(title="How noisy is the update?", xlim=(0, 1.1))
    noise.set_xlabel("variance / uniform batches of the same expected gradient\n"
                     "(pale: before training, full: after it)")  # fmt: skip
    drawn.set(title="How often is an item drawn?", ylabel="times as often as in a uniform batch")
    drawn.set_xlabel("items, from the commonest class to the rarest")
    logarithmic(drawn.yaxis)
    drawn.legend(frameon=False, loc="upper left", markerscale=2)
    dress(drawn)
    dress(noise, "x")
    return save(figure, path)
