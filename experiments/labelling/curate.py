"""What to keep of a redundant set for training: ways to choose, and what a model learns from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import dmsgd
from experiments.labelling.arms import medoids
from experiments.labelling.data import embeddings
from experiments.labelling.first import accuracies
from experiments.labelling.rounds import DECAY, Task, split

#: How often the most frequent class is there for each item of the least frequent one.
UNEVEN = 100
#: Shares of exact and of near-duplicates that are added, and how long the noise of these is, of
#: their rows.
COPIES, NEAR, NOISE = 0.03, 0.10, 0.05
#: Items of a fold, and the similarity of duplicates.
FOLD, ALIKE = 400, 0.995


def redundant(seed: int, data: str, pool: int, tested: int) -> Task:
    """Return a pool with uneven classes and duplicates (Debian has both), and items to test on."""
    X, y = embeddings(data)
    rest, test, rng = split(seed, len(y), pool, tested)
    classes = int(y.max()) + 1
    if data != "Debian":
        shares = UNEVEN ** (-rng.permutation(classes) / (classes - 1))
        most = np.bincount(y[rest]).max()
        kept = [rest[y[rest] == c][: round(share * most)] for c, share in enumerate(shares)]
        rest = np.concatenate(kept)
        copies, near = (rng.choice(rest, round(s * rest.size)) for s in (COPIES, NEAR))
        noise = rng.normal(size=(near.size, X.shape[1]))
        noise *= NOISE * np.linalg.norm(X[near], axis=1, keepdims=True)
        rows = np.vstack([X[rest], X[copies], X[near] + noise / np.sqrt(X.shape[1])])
        order = rng.permutation(len(rows))
        own, own_y = rows[order].astype(np.float32), y[np.r_[rest, copies, near]][order]
    else:
        own, own_y = X[rest], y[rest]
    return Task(own, own_y, X[test], y[test], classes, rest[:0], 0, DECAY.get(data, 1.0))


def without_duplicates(task: Task, k: int, rng: Any) -> np.ndarray:
    """Return random items of which no two are near-duplicates, as long as there are such."""
    left = rng.permutation(dmsgd.near_duplicates(task.X, ALIKE).keep())
    rest = rng.permutation(np.setdiff1d(np.arange(len(task.y)), left))
    return np.concatenate([left, rest])[:k]


def farthest(task: Task, k: int, rng: Any) -> np.ndarray:
    """Return each time the item that is farthest from those before, from a random start."""
    X, near = task.X, np.full(len(task.X), np.inf)
    chosen = [int(rng.integers(len(X)))]
    while len(chosen) < k:
        near = np.minimum(near, ((X - X[chosen[-1]]) ** 2).sum(1))
        chosen.append(int(near.argmax()))
    return np.array(chosen)


def folds(task: Task, k: int, rng: Any) -> np.ndarray:
    """Return covering sets of random folds of 400, one after the other, as InstructLab does."""
    parts = np.array_split(rng.permutation(len(task.X)), -(-len(task.X) // FOLD))
    ends = np.round(k * np.cumsum([0, *map(len, parts)]) / len(task.X)).astype(int)
    return np.concatenate([part[dmsgd.select(task.X[part], count)]
                           for part, count in zip(parts, np.diff(ends), strict=True)])  # fmt: skip


def quotas(task: Task, k: int) -> dict[int, int]:
    """Return how many items of each class are asked for: an equal share, or all distinct ones."""
    distinct = {c: len(np.unique(task.X[task.y == c], axis=0)) for c in np.unique(task.y).tolist()}
    return {c: min(count, k // task.classes) for c, count in distinct.items()}


def random_quotas(task: Task, k: int, rng: Any) -> np.ndarray:
    """Return random items, first the share of each class."""
    order = rng.permutation(len(task.y))
    first = [order[task.y[order] == c][:count] for c, count in quotas(task, k).items()]
    shares = np.concatenate(first)
    return np.concatenate([shares, order[~np.isin(order, shares)]])[:k]


def by_select(task: Task, k: int, rng: Any, shared: bool = False, **options: Any) -> np.ndarray:
    """Return what `select` keeps; shared: with the share of each class."""
    if shared:
        options |= {"groups": task.y, "at_least": quotas(task, k)}
    return dmsgd.select(task.X, k, **options)


KEEP: dict[str, Callable[[Task, int, Any], np.ndarray]] = {
    "random": lambda task, k, rng: rng.permutation(len(task.y))[:k],
    "near-duplicates removed, random": without_duplicates,
    "k-means medoids": lambda task, k, rng: np.array(medoids(task.X, k, None, rng)),
    "farthest point": farthest,
    "folds of 400": folds,
    "select": by_select,
    "select, duplicates=0.995": partial(by_select, duplicates=ALIKE),
    "random, quotas": random_quotas,
    "select, quotas": partial(by_select, shared=True),
}


def run_keep(
    task: Task, choose: Any, seed: int, rate: float, percents: tuple[int, ...]
) -> Iterator[tuple[int, str, float]]:
    """Yield accuracies of a model that learns from what is kept, its coverage, the CPU time."""
    square = dmsgd.select(task.X, 1, details=True).m
    for percent in percents:
        rng, began = np.random.default_rng([seed, 2, percent]), time.process_time()
        items = choose(task, round(percent * len(task.y) / 100), rng)
        yield percent, "milliseconds", 1000 * (time.process_time() - began)
        every, right = accuracies(task, items, seed)
        yield percent, "accuracy", every
        yield percent, "mean over classes", right
        near = nearest_squares(task.X, task.X[items])
        yield percent, "coverage", 100 * float(np.exp(-near / square).mean())


def nearest_squares(X: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the squared distance of each row to the nearest chosen one."""
    D = (X**2).sum(1)[:, None] - 2 * (X @ chosen.T) + (chosen**2).sum(1)
    return np.asarray(np.maximum(D.min(1), 0))
