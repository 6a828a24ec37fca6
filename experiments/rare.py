"""Rare data without labels: which batches draw rare classes more often, and what is learned?

Batches know the features alone; classes only judge them. Three long-tailed data sets: Oxford-102
embeddings from 40 down to 2 items per class, Reuters R8 (200 directions of tf-idf; 2,300 down to 27
documents, four fifths of the training documents), and 8 x 8 digits from 120 down to 5. A softmax
regression learns the classes. "Rare" is the rarest third of the classes.

Frequency is how often their items are drawn; uniform batches have 100 %. Effective items is
(Σb)² / (n Σb²), the price of unequal frequencies: the share of the items that a batch rests on.
The oracle stratifies by the classes, and shows what there is to gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments import datasets, targets
from experiments.core import Case, Claim
from experiments.core.compare import Column
from experiments.core.figures import differences
from experiments.core.markdown import arm_rows
from experiments.core.protocol import training
from experiments.long_tailed import flowers_task, load_flowers, scaled
from experiments.models import softmax
from experiments.models.softmax import Task

TITLE = "Rare data without labels: how often it is drawn, and what is learned"
K = {"flowers": 64, "r8": 64, "digits": 20}
EPOCHS = {"flowers": (1, 5, 20, 50), "r8": (1, 3, 10), "digits": (1, 5, 20, 40)}
RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
DENSITY, LOSS, ORACLE = "weighted by density", "weighted by loss", "stratified by class (oracle)"
FREQUENCY, ITEMS = "frequency of rare classes", "effective items"
RARE, SHARES = "accuracy of rare classes", "accuracy, classes by size"


@cache
def r8() -> Task:
    """Return R8; a fifth of its training documents choose rates."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    data = datasets.r8()
    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    counts, test = words.fit_transform(data.train), words.transform(data.test)
    svd = TruncatedSVD(200, random_state=0).fit(counts)
    X, last = svd.transform(counts), np.arange(len(data.train)) % 5 == 4
    y, targets = data.y_train[~last], np.eye(8, dtype=np.float32)[data.y_train[~last]]
    judges = (scaled(svd.transform(test)), data.y_test), (scaled(X[last]), data.y_train[last])
    rows = np.asarray(dmsgd.features.normalize(X[~last]))
    return Task(rows, y, scaled(X[~last]), targets, *judges)


@lru_cache(2)
def density(task: Task, k: int, strength: float) -> np.ndarray:
    """Return inclusion probabilities that are larger where items are sparse."""
    return dmsgd.targets.density(task.X, k, strength)


# Arms are run one after the other; the task of R8 is the same for all seeds.
@lru_cache(2)
def kdpp(task: Task, k: int, kernel: str) -> dmsgd.KDPP:
    """Return the k-DPP of a linear kernel, also with the density as target, or of an RBF kernel."""
    if kernel == "rbf":
        origin, rank = dmsgd.kernels.RBF(task.X), min(task.y.size, 500)
        return dmsgd.KDPP(dmsgd.kernels.pivoted_cholesky(origin, rank=rank, oversampling=1.0), k)
    target = density(task, k, 0.5) if kernel == "density" else None
    return dmsgd.diversify(task.X, k, kernel="linear", normalize=False, target=target)


def leverage(task: Task) -> np.ndarray:
    """Return ridge leverage scores; the ridge is a tenth of the mean eigenvalue of XᵀX."""
    values, U = np.linalg.eigh(task.X.T @ task.X)
    scale = 1 / (np.maximum(values, 0) + 0.1 * values.mean())
    return np.asarray(((task.X @ U) ** 2) @ scale)


def arms(k: int) -> dict[str, Callable[[Task, int], Any]]:
    """Return the designs; by loss: of the first epoch, and how much of the mean loss is added."""
    return training(None, k, {
        "k-DPP linear": lambda task, seed: kdpp(task, k, "linear"),
        "k-DPP rbf": lambda task, seed: kdpp(task, k, "rbf"),
        "k-DPP linear, density target": lambda task, seed: kdpp(task, k, "density"),
        DENSITY: lambda task, seed: dmsgd.Weighted(density(task, k, 0.5), k),
        f"{DENSITY}, strength 1": lambda task, seed: dmsgd.Weighted(density(task, k, 1.0), k),
        "weighted by leverage": lambda task, seed: dmsgd.Weighted(weights=leverage(task), k=k),
        "clustered": lambda task, seed: dmsgd.designs.clustered(task.X, k, seed=seed),
        "cells": lambda task, seed: dmsgd.cells(task.X, k),
        LOSS: lambda task, seed: (dmsgd.Uniform(task.y.size, k), 0.01),
        f"{LOSS} and mean loss": lambda task, seed: (dmsgd.Uniform(task.y.size, k), 1.0),
        ORACLE: lambda task, seed: dmsgd.Stratified(task.y, k),
    })  # fmt: skip


def run(
    task: Task, arm: Any, seed: int, rate: float, epochs: Sequence[int]
) -> Iterator[tuple[int, str, float]]:
    """Yield accuracies, how often rare classes were drawn, and effective items."""
    design, mixed = arm if isinstance(arm, tuple) else (arm, None)
    weights, sizes, n = task.start(seed), np.bincount(task.y), task.y.size
    often, steps = np.zeros(n), n // design.k
    rare = sizes.size - max(1, sizes.size // 3)
    for epoch in range(epochs[-1]):
        if mixed is not None and epoch > 0:
            chance = softmax.probabilities(weights, task.inputs)[np.arange(n), task.y]
            loss = -np.log(np.maximum(chance, 1e-30))
            design = dmsgd.Weighted(weights=loss + mixed * loss.mean(), k=design.k)
        if mixed is not None or epoch == 0:
            b = design.inclusion()
        often += b / epochs[-1]
        batches = design.sample(steps, seed, start=epoch * steps)
        weights = softmax.train(weights, task.inputs, task.targets, batches, rate)
        if epoch + 1 in epochs:
            step, (X, y) = epoch + 1, task.test  # not updates: seeds differ in the number of items
            right = softmax.predict(weights, X) == y
            accuracy = 100 * np.bincount(y, right) / np.bincount(y)
            yield step, "accuracy", accuracy.mean()
            yield step, RARE, accuracy[rare:].mean()
            yield step, SHARES, accuracy @ sizes / n
            right = softmax.predict(weights, task.valid[0]) == task.valid[1]
            shown = np.bincount(task.valid[1])
            yield (
                step,
                "validation accuracy",
                100
                * np.mean((np.bincount(task.valid[1], right) / np.maximum(shown, 1))[shown > 0]),
            )
    yield 0, FREQUENCY, 100 * often[task.y >= rare].mean() / often.mean()
    yield 0, ITEMS, 100 * often.sum() ** 2 / (n * (often @ often))


def cases(quick: bool = False) -> list[Case]:
    """Return all data sets; `quick` are two seeds at one rate with few epochs."""
    tasks: dict[str, Callable[[int], Task]] = {
        "flowers": partial(flowers_task, load_flowers, (40, 2)),
        "r8": lambda seed: r8(),
        "digits": targets.digits,
    }
    return [
        Case(f"rare/{name}", task, arms(K[name]),
             partial(run, epochs=EPOCHS[name][:2] if quick else EPOCHS[name]),
             2 if quick else 20, RATES[2:3] if quick else RATES)
        for name, task in tasks.items()
    ]  # fmt: skip


def tiny() -> list[Case]:
    """Return the digits as all data sets."""
    return [
        Case(f"rare/{name}", targets.digits, arms(20), partial(run, epochs=(1, 2)), 2, RATES[2:3])
        for name in K
    ]


GAINS: dict[str, Column] = {
    f"{name}, {what}": (f"rare/{name}", measure, None)
    for name in K
    for what, measure in (("rare classes", RARE), ("classes by size", SHARES))
}
COLUMNS: dict[str, Column] = {
    what: (experiment, measure, step)
    for name in K
    for what, (experiment, measure, step) in {
        f"{name}: frequency, %": (f"rare/{name}", FREQUENCY, None),
        f"{name}: effective items, %": (f"rare/{name}", ITEMS, None),
        f"{name}: rare classes, %": (f"rare/{name}", RARE, None),
        f"{name}: classes by size, %": (f"rare/{name}", SHARES, None),
    }.items()
}
CLAIMS = [
    *(
        Claim("beyond", f"{name}: {arm} draws rare classes more often", f"rare/{name}", arm,
              FREQUENCY, "shuffled", digits=0)
        for name in K for arm in ("k-DPP linear", "k-DPP rbf", DENSITY, "clustered", LOSS)
    ),
    *(
        Claim("beyond", f"{title}: {arm} ahead of shuffled epochs", where, arm, measure, "shuffled",
              step=step)
        for arm in ("k-DPP linear", "k-DPP linear, density target", DENSITY, "clustered", LOSS,
                    ORACLE)
        for title, (where, measure, step) in GAINS.items()
    ),
]  # fmt: skip
TABLES = {
    f"rare-{name}": partial(
        lambda own, table: arm_rows(table, own, "shuffled"),
        {title: column for title, column in COLUMNS.items() if title.startswith(name)},
    )
    for name in K
}


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write accuracies minus those of shuffled epochs."""
    path = folder / "rare.png"
    return [differences(table, path, GAINS, "shuffled", "points ahead of shuffled epochs")]
