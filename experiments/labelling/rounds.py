"""Rounds of labelling: data, what an arm sees, and the loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import dmsgd
from experiments import datasets
from experiments.models import dense, few_labels


@dataclass(frozen=True, eq=False)
class Task:
    """Embeddings and classes of a pool, and of items to test on; the random start."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: int
    start: np.ndarray


@dataclass(frozen=True, eq=False)
class Round:
    """What an arm sees: embeddings, a model, its class probabilities, labelled items."""

    X: np.ndarray
    model: dense.Layers
    P: np.ndarray
    labelled: np.ndarray
    k: int
    rng: np.random.Generator

    @property
    def u(self) -> np.ndarray:
        """1 less the margin between the two likeliest classes."""
        return dmsgd.uncertainty(self.P)

    @property
    def free(self) -> np.ndarray:
        """The items without a label."""
        return np.setdiff1d(np.arange(len(self.X)), self.labelled)


Choose = Callable[[Round], np.ndarray]


@cache
def embeddings(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings and classes of all items."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
    elif name == "MNIST":
        data = datasets.mnist()
        some = np.random.default_rng(0).permutation(len(data.y_train))[:12000]
        X, y = _components(data.x_train[some].reshape(12000, -1) / 255.0, 50), data.y_train[some]
    elif name == "Oxford-102":
        flowers = datasets.flowers()
        X, y = _components(flowers.X.astype(float), 100), flowers.y
    elif name == "robot sonar":
        sonar = datasets.stream("sonar")
        X, y = (sonar.X - sonar.X.mean(0)) / sonar.X.std(0), sonar.y
    else:
        corpus = datasets.r8() if name == "R8" else datasets.debian()
        texts = (*corpus.train, *corpus.test) if name == "R8" else corpus.texts
        y = np.r_[corpus.y_train, corpus.y_test] if name == "R8" else corpus.y
        X = _text_components(texts, 100)
    return X / np.sqrt((X**2).mean()), y.astype(np.int64)


def _components(X: np.ndarray, count: int) -> np.ndarray:
    """Return the principal components, largest first."""
    centred = X - X.mean(0)
    vectors = np.linalg.eigh(centred.T @ centred)[1][:, : -count - 1 : -1]
    return np.asarray(centred @ vectors)


def _text_components(texts: Any, count: int) -> np.ndarray:
    """Return singular vectors of tf-idf, rows of length 1."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(sublinear_tf=True, min_df=3).fit_transform(texts)
    X = TruncatedSVD(count, random_state=0).fit_transform(weights)
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9))


def task(seed: int, data: str, k: int, pool: int, tested: int, unit: bool = False) -> Task:
    """Return a random pool, other items to test on, and k items that are labelled.

    unit: whether rows are scaled to one length.
    """
    X, y = embeddings(data)
    if unit:
        X = X * np.sqrt(X.shape[1] / (X**2).sum(1, keepdims=True))
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(y))
    tested = min(tested, len(y) // 4)
    test, rest = order[:tested], order[tested : tested + pool]
    start = rng.choice(rest.size, k, replace=False)
    return Task(X[rest], y[rest], X[test], y[test], int(y.max()) + 1, start)


def run(
    task: Task, choose: Choose, seed: int, rate: float, rounds: int, units: int, decay: float = 1.0
) -> Iterator[tuple[int, str, float]]:
    """Yield the test accuracy by the number of labels, its mean over rounds, and the CPU time."""
    k, labelled, spent = task.start.size, task.start, 0.0
    rng, found = np.random.default_rng([seed, 2]), []
    for at in range(rounds + 1):
        model = few_labels.fit(task.X[labelled], task.y[labelled], task.classes, units, seed, decay)
        right = few_labels.probabilities(model, task.X_test).argmax(1) == task.y_test
        found.append(100 * float(right.mean()))
        yield labelled.size, "accuracy", found[-1]
        if at < rounds:
            P, began = few_labels.probabilities(model, task.X), time.process_time()
            chosen = choose(Round(task.X, model, P, labelled, k, rng))
            spent += time.process_time() - began
            labelled = np.concatenate([labelled, chosen])
    yield labelled.size, "mean accuracy", float(np.mean(found[1:]))
    yield labelled.size, "milliseconds per round", 1000 * spent / rounds
