"""Rounds of labelling: a task, what an arm sees, and the loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dmsgd
from experiments.labelling.data import embeddings
from experiments.models import dense, few_labels

#: How strongly the softmax is regularised where that is better for random labels than 1,
#: of 1 and 10, on other seeds; and units of a hidden layer, where a softmax learns little.
DECAY = {"MNIST": 10.0, "Debian": 10.0, "Spambase": 10.0}
UNITS = {"EEG": 64}


@dataclass(frozen=True, eq=False)
class Task:
    """Embeddings and classes of a pool, and of items to test on; the random start."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: int
    start: np.ndarray
    units: int = 0
    decay: float = 1.0


class Softmax:
    """A softmax, or one hidden layer before it, that has learned from labelled items.

    X, X_test:  features by which items are chosen, here those of the task.
    inputs:     of the last layer, and scores, its outputs, for all of the pool.
    """

    def __init__(self, task: Task, labelled: np.ndarray, seed: int) -> None:
        self.task, self.seed, self.X = task, seed, task.X
        self.layers = self._fit(labelled)
        *_, self.inputs, self.scores = dense.forward(self.layers, task.X)

    def _fit(self, labelled: np.ndarray) -> dense.Layers:
        task, X = self.task, self.X[labelled].astype(float)
        return few_labels.fit(X, task.y[labelled], task.classes, task.units, self.seed, task.decay)

    def scores_of(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of other features."""
        return dense.forward(self.layers, X)[-1]

    def accuracy(self) -> float:
        """Return the percentage of test items whose class is right."""
        return dense.accuracy(self.layers, self.task.X_test, self.task.y_test)

    def held_out(self, train: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return the scores of some items by a model that has learned from others."""
        return dense.forward(self._fit(train), self.X[rest])[-1]


@dataclass(frozen=True, eq=False)
class Round:
    """What an arm sees: embeddings, class probabilities, labelled items, a model.

    labels: the classes of labelled items.
    kept:   what an arm keeps for later rounds, as long as embeddings stay the same.
    """

    X: np.ndarray
    P: np.ndarray
    labelled: np.ndarray
    k: int
    rng: np.random.Generator
    model: Any = None
    labels: np.ndarray | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def u(self) -> np.ndarray:
        """1 less the margin between the two likeliest classes."""
        return dmsgd.uncertainty(self.P)

    @property
    def free(self) -> np.ndarray:
        """The items without a label."""
        return np.setdiff1d(np.arange(len(self.X)), self.labelled)


Choose = Callable[[Round], np.ndarray]


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return class probabilities."""
    P = np.exp(scores - scores.max(1, keepdims=True), dtype=float)
    return np.asarray(P / P.sum(1, keepdims=True))


def split(seed: int, n: int, pool: int, tested: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the items of a random pool, other ones to test on, and the generator."""
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(n)
    tested = min(tested, n // 4)
    return order[tested : tested + pool], order[:tested], rng


def task(seed: int, data: str, k: int, pool: int, tested: int) -> Task:
    """Return a random pool, other items to test on, and k items that are labelled."""
    X, y = embeddings(data)
    rest, test, rng = split(seed, len(y), pool, tested)
    start = rng.choice(rest.size, k, replace=False)
    return Task(X[rest], y[rest], X[test], y[test], int(y.max()) + 1, start,
                UNITS.get(data, 0), DECAY.get(data, 1.0))  # fmt: skip


def run(
    task: Task, choose: Choose, seed: int, rate: float, rounds: int, learn: Any = Softmax
) -> Iterator[tuple[int, str, float]]:
    """Yield the test accuracy by the number of labels, its mean over rounds, and the CPU time."""
    k, labelled, spent = task.start.size, task.start, 0.0
    rng, found, kept = np.random.default_rng([seed, 2]), [], {}
    X = None
    for at in range(rounds + 1):
        model = learn(task, labelled, seed)
        found.append(model.accuracy())
        yield labelled.size, "accuracy", found[-1]
        if at < rounds:
            P, began = softmax(model.scores), time.process_time()
            X, kept = model.X, kept if model.X is X else {}
            now = Round(X, P, labelled, k, rng, model, task.y[labelled], kept)
            labelled = np.concatenate([labelled, choose(now)])
            spent += time.process_time() - began
    yield labelled.size, "mean accuracy", float(np.mean(found[1:]))
    yield labelled.size, "milliseconds per round", 1000 * spent / rounds


def run_all(task: Task, choose: Any, seed: int, rate: float) -> Iterator[tuple[int, str, float]]:
    """Yield the accuracy of the model that has learned from all labels of the pool."""
    model = Softmax(task, np.arange(len(task.y)), seed)
    yield len(task.y), "accuracy", model.accuracy()
