"""One set, labelled at once: ways to choose it, and what a softmax learns from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dmsgd
from experiments.labelling.arms import COVER, medoids
from experiments.labelling.rounds import Task
from experiments.models import few_labels


def density(X: np.ndarray) -> np.ndarray:
    """Return how many of 2,000 random items are near, weighted by exp(-8 d² / median d²)."""
    some = X[np.random.default_rng(0).permutation(len(X))[:2000]]
    D = (X**2).sum(1)[:, None] + (some**2).sum(1) - 2 * (X @ some.T)
    return np.asarray(np.exp(-8 * D / np.median(D[:500])).sum(1))


def farthest(X: np.ndarray, k: int, rng: Any) -> np.ndarray:
    """Return each time the item that is farthest from those before, from a random start."""
    norms, near = (X**2).sum(1), np.full(len(X), np.inf)
    chosen = [int(rng.integers(len(X)))]
    while len(chosen) < k:
        last = chosen[-1]
        near = np.minimum(near, norms + norms[last] - 2 * (X @ X[last]))
        chosen.append(int(near.argmax()))
    return np.array(chosen)


def one_set(how: Any, dense: bool) -> Callable[[Task, int, Any], np.ndarray]:
    """Return the arm that `dmsgd.select` is; best first, so that one set serves all budgets."""

    def choose(task: Task, k: int, rng: Any) -> np.ndarray:
        quality = density(task.X) if dense else None
        return dmsgd.select(task.X, k, quality=quality, how=how, seed=int(rng.integers(2**31)))

    return choose


#: Arms of the one set: (task, k, generator) -> items. A prefix of those in PREFIX is a smaller set.
SETS: dict[str, Callable[[Task, int, Any], np.ndarray]] = {
    "random": lambda task, k, rng: rng.permutation(len(task.X))[:k],
    "k-means medoids": lambda task, k, rng: np.array(medoids(task.X, k, None, rng)),
    "farthest point": lambda task, k, rng: farthest(task.X, k, rng),
    "k-DPP draw": one_set("draw", False),
    "k-DPP draw, density": one_set("draw", True),
    "greedy": one_set("greedy", False),
    "greedy, density": one_set("greedy", True),
    COVER: one_set("cover", False),
}
PREFIX = ("random", "farthest point", "greedy", "greedy, density", COVER)


def run_set(
    task: Task, arm: str, seed: int, rate: float, budgets: tuple[int, ...]
) -> Iterator[tuple[int, str, float]]:
    """Yield the accuracy, and its mean over classes, of a softmax that learns from one set."""
    rng, spent = np.random.default_rng([seed, 2]), 0.0
    items: Any = None
    for k in budgets[::-1]:
        began = time.process_time()
        if items is None or arm not in PREFIX:
            items = SETS[arm](task, k, rng)
        spent = max(spent, time.process_time() - began)
        chosen = items[:k]
        model = few_labels.fit(task.X[chosen], task.y[chosen], task.classes, 0, seed)
        right = few_labels.probabilities(model, task.X_test).argmax(1) == task.y_test
        counts = np.bincount(task.y_test, minlength=task.classes)
        shares = np.bincount(task.y_test, right, task.classes)[counts > 0] / counts[counts > 0]
        yield k, "accuracy", 100 * float(right.mean())
        yield k, "mean over classes", 100 * float(shares.mean())
    yield budgets[-1], "milliseconds", 1000 * spent
