"""Linear models on real data: their items, what kernels see of them, gradients and losses.

2 columns, 10 columns  least squares on scikit-learn's diabetes data, outcome scaled
digits                 softmax on scikit-learn's 8 x 8 digits
mnist                  softmax on MNIST pixels
flowers                softmax on the features of Oxford-102, 256 directions, 102 unequal classes

Items that would be left over are left out, so that an epoch is all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

import dmsgd
from experiments import datasets
from experiments.models.uniform_rbf import uniform_rbf

#: Columns of the diabetes data, those that tell most first.
COLUMNS = (2, 8, 3, 0, 1, 4, 5, 6, 7, 9)
#: Weight of the classes in the second kernel.
W = 0.9
#: Principal directions that kernels see at most, and those that the classifier sees of flowers.
SEEN, TRAINED = 128, 256
#: Added to a seed for every further stream of batches.
STREAM = 10**4
#: Of the weights of a softmax: data that a plane separates has no optimum without it.
RIDGE = 1e-3


class Task:
    """A generalised linear model: the gradient of item i is A_i δ_iᵀ, δ being predicted less true.

    A:       (n, d), inputs with a 1 for the bias.
    T:       (n, classes), one-hot; (n, 1) outcomes in regression.
    kernels: k-DPPs with b = k/n, by what they see.
    strata:  what can be spread evenly over batches, by name.
    test:    inputs and classes that judge accuracy; None in regression.
    """

    def __init__(self, k: int, A: np.ndarray, T: np.ndarray, kernels: dict[str, Any],
                 strata: dict[str, np.ndarray], test: Any = None) -> None:  # fmt: skip
        self.n, self.k, self.A, self.T, self.test = len(A), k, A, T, test
        self.kernels, self.strata = kernels, strata
        self.ridge = 0.0 if test is None else RIDGE  # no part of an item's gradient
        self.start = np.zeros((A.shape[1], T.shape[1]), dtype=A.dtype)
        largest = float(np.linalg.eigvalsh(A.T @ A / self.n)[-1])
        self.curvature = largest if test is None else largest / 2  # 1/L is the unit of rates

    def streams(self, seed: int) -> list[int]:
        """Return the seeds of streams of batches; losses of a regression are means over four."""
        return [seed + STREAM * number for number in range(4 if self.test is None else 1)]

    def errors(self, weights: np.ndarray, items: Any = slice(None)) -> np.ndarray:
        """Return δ of some items."""
        scores = self.A[items] @ weights
        if self.test is not None:
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=1, keepdims=True)
        scores -= self.T[items]
        return scores

    def slope(self, weights: np.ndarray, items: Any = slice(None)) -> np.ndarray:
        """Return the gradient of the mean loss of some items, with the ridge."""
        errors = self.errors(weights, items)
        return self.A[items].T @ (errors / len(errors)) + self.ridge * weights

    def loss(self, weights: np.ndarray) -> float:
        """Return the mean loss of all items, with the ridge, less the least; inf if lost."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._whole(weights) - self._least
        return found if found < 1e6 else np.inf

    def _whole(self, weights: np.ndarray) -> float:
        scores = self.A @ weights
        if self.test is None:
            return float(np.mean((scores - self.T) ** 2) / 2)
        scores -= scores.max(axis=1, keepdims=True)
        right = np.einsum("ij,ij->i", scores, self.T)
        loss = np.mean(np.log(np.exp(scores).sum(axis=1)) - right, dtype=np.float64)
        return float(loss + self.ridge / 2 * np.sum(weights * weights, dtype=np.float64))

    @cached_property
    def _least(self) -> float:
        """The loss of the optimum; of a softmax by L-BFGS."""
        if self.test is None:
            return self._whole(np.linalg.lstsq(self.A, self.T, rcond=None)[0])
        from scipy.optimize import minimize

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            weights = flat.reshape(self.start.shape).astype(self.A.dtype)
            return self._whole(weights), self.slope(weights).ravel().astype(np.float64)

        options = {"maxiter": 1000, "maxcor": 30, "ftol": 1e-9}
        start = np.zeros(self.start.size)
        return float(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).fun)

    def accuracy(self, weights: np.ndarray) -> float:
        """Return the percentage of the test items whose class is right."""
        X, y = self.test
        return float(100 * np.mean((X @ weights).argmax(axis=1) == y))


def regression(columns: int, items: int, k: int, seed: int) -> Task:
    """Return least squares on the first of COLUMNS; kernels are RBF, on x and on x with y."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng([seed, 50]).permutation(y.size)[: items // k * k]
    X, y = X[rows][:, COLUMNS[:columns]], y[rows]
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    both = np.column_stack([X, y])
    kernels = {"x": uniform_rbf(X, k), "x and y": uniform_rbf(both, k)}
    strata = {"cells of x and y": dmsgd.cells(both, k).stratum}
    return Task(k, with_one(X), y[:, None], kernels, strata)


def digits(items: int, k: int, seed: int) -> Task:
    """Return the softmax on the digits, split at random."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng([seed, 51]).permutation(y.size)
    X, y = with_one(X[rows] / 16), y[rows].astype(np.int64)
    seen = directions(X[:items, :-1], SEEN)
    return classes(k, X[:items], y[:items], seen, (X[items:], y[items:]))


def mnist(items: int, k: int, seed: int) -> Task:
    """Return the softmax on pixels of some images of MNIST; kernels see leading directions."""
    X, y, *test = mnist_files()
    rows = np.random.default_rng([seed, 52]).permutation(len(y))[: items // k * k]
    seen = directions(X[rows, :-1].astype(np.float64), SEEN)
    return classes(k, X[rows], y[rows], seen, test)


@cache
def mnist_files() -> tuple[np.ndarray, ...]:
    """Return inputs and classes to train on and to judge by."""
    data = datasets.mnist()
    X, test = (
        with_one(x.reshape(len(x), -1) / np.float32(255)) for x in (data.x_train, data.x_test)
    )
    return X, data.y_train, test, data.y_test


def flowers(items: int, k: int, seed: int) -> Task:
    """Return the softmax on leading directions of the flowers: the long-tailed split is trained."""
    F, inputs, y, train, test = flower_files()
    rows = np.random.default_rng([seed, 53]).permutation(train)[: items // k * k]
    seen = F[rows][:, -SEEN:]
    seen = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    return classes(k, inputs[rows], y[rows], seen, (inputs[test], y[test]))


@cache
def flower_files() -> tuple[np.ndarray, ...]:
    """Return leading directions, inputs, classes, and the rows to train on and to judge by."""
    data = datasets.flowers()
    X = np.asarray(dmsgd.features.normalize(data.X))
    train, test = np.flatnonzero(data.split == "test"), np.flatnonzero(data.split == "train")
    centred = X - X[train].mean(axis=0)
    _, vectors = np.linalg.eigh(centred[train].T @ centred[train])
    F = centred @ vectors[:, -TRAINED:]
    return F, with_one((10 * F).astype(np.float32)), data.y, train, test


def classes(k: int, A: np.ndarray, y: np.ndarray, seen: np.ndarray, test: Any) -> Task:
    """Return a softmax whose kernels are linear: on `seen`, and on it with the classes."""
    options: dict[str, Any] = {"kernel": "linear", "normalize": False, "target": "uniform"}
    kernels = {"x": dmsgd.diversify(seen, k, **options),
               "x and y": dmsgd.diversify(seen, k, y, W, **options)}  # fmt: skip
    targets = np.eye(int(max(y.max(), test[1].max())) + 1, dtype=A.dtype)[y]
    both = dmsgd.features.concat(seen, y, W)
    strata = {"classes": y, "cells of x and y": dmsgd.cells(both, k).stratum}
    return Task(k, A, targets, kernels, strata, test)


def directions(X: np.ndarray, count: int) -> np.ndarray:
    """Return X on its leading principal directions, rows of length 1."""
    X = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(X.T @ X)
    X = X @ vectors[:, -count:][:, values[-count:] > 1e-9 * values[-1]]
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def with_one(X: np.ndarray) -> np.ndarray:
    """Return X with a column of ones."""
    return np.column_stack([X, np.ones(len(X), dtype=X.dtype)])


class Kind(NamedTuple):
    """What makes a task, its items and k, and what can be spread evenly over batches.

    first: the rate of the shuffled epoch after which gradients are measured.
    """

    make: Callable[[int, int, int], Task]
    items: int
    k: int
    first: float
    spread: tuple[str, ...] = ("classes", "cells of x and y")


TASKS = {
    "2 columns": Kind(partial(regression, 2), 442, 16, 0.25, ("cells of x and y",)),
    "10 columns": Kind(partial(regression, 10), 442, 16, 1.0, ("cells of x and y",)),
    "digits": Kind(digits, 1280, 16, 16.0),
    "mnist": Kind(mnist, 6400, 64, 32.0),
    "flowers": Kind(flowers, 6149, 64, 2**3.5),
}
