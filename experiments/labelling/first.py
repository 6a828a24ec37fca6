"""The first set, chosen without any label: ways to choose it, and what a model learns from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dmsgd
from experiments.labelling.arms import medoids
from experiments.labelling.coverage import active_ft, max_herding, prob_cover, typiclust
from experiments.labelling.rounds import Choose, Round, Softmax, Task

#: Random sets whose mean is the baseline of a seed.
DRAWN = 5
#: A set without labels: (task, k, generator) -> items.
Way = Callable[[Task, int, Any], np.ndarray]


def unlabelled(choose: Choose) -> Way:
    """Return the first set of an arm that needs no model."""

    def chosen(task: Task, k: int, rng: Any) -> np.ndarray:
        P = np.full((len(task.X), task.classes), 1 / task.classes)
        return choose(Round(task.X, P, np.empty(0, dtype=np.int64), k, rng))

    return chosen


FIRST: dict[str, Way] = {
    "random": lambda task, k, rng: rng.permutation(len(task.X))[:k],
    "k-means medoids": lambda task, k, rng: np.array(medoids(task.X, k, None, rng)),
    "TypiClust": unlabelled(typiclust),
    "MaxHerding": unlabelled(max_herding),
    "ProbCover": unlabelled(prob_cover),
    "ActiveFT": lambda task, k, rng: active_ft(task.X, k, rng),
    "select": lambda task, k, rng: dmsgd.select(task.X, k),
    "select, medoids": lambda task, k, rng: dmsgd.select(task.X, k, how="medoids"),
}
#: A prefix of these sets is the set of a smaller k.
PREFIX = tuple(FIRST[arm] for arm in ("MaxHerding", "ProbCover"))


def run_first(
    task: Task, choose: Way, seed: int, rate: float, budgets: tuple[int, ...]
) -> Iterator[tuple[int, str, float]]:
    """Yield the accuracy, and its mean over classes, of a model that learns from each set."""
    rng, items = np.random.default_rng([seed, 2]), np.empty(0, dtype=np.int64)
    for k in sorted(budgets, reverse=True):
        began = time.process_time()
        if choose not in PREFIX or not items.size:
            items = choose(task, k, rng)
        spent = time.process_time() - began
        sets = [items[:k]]
        while choose is FIRST["random"] and len(sets) < DRAWN:
            sets.append(choose(task, k, rng))
        found = np.mean([accuracies(task, each, seed) for each in sets], axis=0)
        yield k, "accuracy", float(found[0])
        yield k, "mean over classes", float(found[1])
        if choose not in PREFIX or k == max(budgets):
            yield k, "milliseconds", 1000 * spent


def accuracies(task: Task, items: np.ndarray, seed: int) -> tuple[float, float]:
    """Return the accuracy of a model that learns from items, and its mean over classes."""
    model = Softmax(task, items, seed)
    right = model.scores_of(task.X_test).argmax(1) == task.y_test
    counts = np.bincount(task.y_test, minlength=task.classes)
    shares = np.bincount(task.y_test, right, task.classes)[counts > 0] / counts[counts > 0]
    return 100 * float(right.mean()), 100 * float(shares.mean())
