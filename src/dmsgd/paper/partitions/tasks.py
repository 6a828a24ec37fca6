"""Linear models on real data: their items, what kernels see of them, gradients and losses.

2 columns, 10 columns  least squares on scikit-learn's diabetes data, outcome scaled
digits                 softmax on scikit-learn's 8 x 8 digits
mnist                  softmax on MNIST pixels
flowers                softmax on the features of Oxford-102, 256 directions, 102 unequal classes

Items that would be left over are left out, so that an epoch is all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.noise.problems import COLUMNS
from dmsgd.paper.repulsion.designs import rbf

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers, Images

#: Weight of the classes in the second kernel, and the scale of RBF kernels over `suggest_scale`.
W, STRETCH = 0.9, 3.0
#: Principal directions that kernels see at most, and those that the classifier sees of flowers.
SEEN, TRAINED = 128, 256
#: Of the weights of a softmax: without it, data that a plane separates has no optimum.
RIDGE = 1e-3
#: Items of the digits to train on; the others judge.
DIGITS = 1280


@dataclass(frozen=True, eq=False)
class Task:
    """A generalised linear model: the gradient of item i is A_i δ_iᵀ.

    A:       (n, d), inputs with a 1 for the bias.
    T:       (n, classes), one-hot; (n, 1) outcomes in regression.
    kernels: k-DPPs with b = k/n, by what they see.
    strata:  what can be spread evenly, by name; the first also along with a kernel.
    test:    inputs and classes that judge accuracy; None in regression.
    """

    k: int
    A: FloatArray
    T: FloatArray
    kernels: dict[str, dmsgd.KDPP]
    strata: dict[str, IntArray]
    test: tuple[FloatArray, IntArray] | None

    @property
    def n(self) -> int:
        """Items."""
        return len(self.A)

    @cached_property
    def curvature(self) -> float:
        """L, of which the inverse is the unit of rates: half of it bounds a softmax."""
        largest = float(np.linalg.eigvalsh(self.A.T @ self.A / self.n)[-1])
        return largest if self.test is None else largest / 2

    @property
    def ridge(self) -> float:
        """Of the weights; it is no part of an item's gradient and adds no noise."""
        return 0.0 if self.test is None else RIDGE

    def start(self) -> FloatArray:
        """Return weights of 0, shape (d, classes)."""
        return np.zeros((self.A.shape[1], self.T.shape[1]), dtype=self.A.dtype)

    def errors(self, weights: FloatArray, items: IntArray | slice) -> FloatArray:
        """Return δ of some items: predicted less true."""
        scores: FloatArray = self.A[items] @ weights
        if self.test is not None:
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=1, keepdims=True)
        scores -= self.T[items]
        return scores

    def loss(self, weights: FloatArray) -> float:
        """Return the mean loss of all items, with the ridge, less the least."""
        with np.errstate(over="ignore"):  # of weights that were lost
            return self._whole(weights) - self.least

    def _whole(self, weights: FloatArray) -> float:
        scores = self.A @ weights
        if self.test is None:
            return float(np.mean((scores - self.T) ** 2) / 2)
        scores -= scores.max(axis=1, keepdims=True)
        right = np.einsum("ij,ij->i", scores, self.T)
        loss = np.mean(np.log(np.exp(scores).sum(axis=1)) - right, dtype=np.float64)
        return float(loss + self.ridge / 2 * np.sum(weights * weights, dtype=np.float64))

    @cached_property
    def least(self) -> float:
        """The loss of the optimum; of a softmax by L-BFGS."""
        if self.test is None:
            return self._whole(
                np.asarray(np.linalg.lstsq(self.A, self.T, rcond=None)[0], np.float64)
            )
        from scipy.optimize import minimize

        shape = self.start().shape

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            weights = flat.reshape(shape).astype(self.A.dtype)
            slope = self.A.T @ self.errors(weights, slice(None)) / self.n + self.ridge * weights
            return self._whole(weights), slope.ravel().astype(np.float64)

        options = {"maxiter": 1000, "maxcor": 30, "ftol": 1e-9}
        found = minimize(objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B",
                         options=options)  # fmt: skip
        return float(found.fun)

    def accuracy(self, weights: FloatArray) -> float:
        """Return the share of the test items whose class is right; NaN in regression."""
        if self.test is None:
            return float("nan")
        return float(np.mean((self.test[0] @ weights).argmax(axis=1) == self.test[1]))


#: What makes the task of a seed.
Maker = Callable[[int], Task]


def regression(columns: int, k: int, seed: int) -> Task:
    """Return least squares on the first of COLUMNS; kernels are RBF, on x and on x with y."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng([seed, 50]).permutation(y.size)[: y.size // k * k]
    X, y = X[rows][:, COLUMNS[:columns]], y[rows]
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    both = np.column_stack([X, y])
    kernels = {"x": rbf(X, k, STRETCH), "x and y": rbf(both, k, STRETCH)}
    strata = {"cells of x and y": dmsgd.cells(both, k).stratum}
    return Task(k, _with_one(X), y[:, None], kernels, strata, None)


def digits(k: int, seed: int) -> Task:
    """Return the softmax on the digits, split at random."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng([seed, 51]).permutation(y.size)
    X, y = _with_one(X[rows] / 16), y[rows].astype(np.int64)
    seen = unit_directions(X[:DIGITS, :-1], SEEN)
    return _classes(k, X[:DIGITS], y[:DIGITS], seen, (X[DIGITS:], y[DIGITS:]))


def mnist(data: Images, items: int, k: int, seed: int) -> Task:
    """Return the softmax on pixels of some images of MNIST; kernels see leading directions."""
    rows = np.random.default_rng([seed, 52]).permutation(len(data.y_train))[: items // k * k]
    X, test = (
        _with_one(x.reshape(len(x), -1) / np.float32(255))
        for x in (data.x_train[rows], data.x_test)
    )
    seen = unit_directions(X[:, :-1].astype(np.float64), SEEN)
    y, judge = (np.asarray(each, dtype=np.int64) for each in (data.y_train[rows], data.y_test))
    return _classes(k, X, y, seen, (test, judge))


def flowers(data: Flowers, k: int, seed: int) -> Task:
    """Return the softmax on leading directions of the flowers: the long-tailed split is trained."""
    X = np.asarray(dmsgd.normalize(data.X))
    train, test = np.flatnonzero(data.split == "test"), np.flatnonzero(data.split == "train")
    rows = np.random.default_rng([seed, 53]).permutation(train)[: train.size // k * k]
    centred = X - X[train].mean(axis=0)
    _, vectors = np.linalg.eigh(centred[train].T @ centred[train])
    F = centred @ vectors[:, -TRAINED:]
    inputs = _with_one((10 * F).astype(np.float32))
    seen = unit(F[rows][:, -SEEN:])
    return _classes(k, inputs[rows], data.y[rows], seen, (inputs[test], data.y[test]))


def _classes(
    k: int, A: FloatArray, y: IntArray, seen: FloatArray, test: tuple[FloatArray, IntArray]
) -> Task:
    """Return a softmax whose kernels are linear: on `seen`, and on it with the classes."""
    kernels = {
        "x": dmsgd.diversify(seen, k, target="uniform"),
        "x and y": dmsgd.diversify(seen, k, y, W, target="uniform"),
    }
    targets = np.eye(int(max(y.max(), test[1].max())) + 1, dtype=A.dtype)[y]
    mixed = dmsgd.cells(dmsgd.concat(seen, y, W), k).stratum
    return Task(k, A, targets, kernels, {"classes": y, "cells of x and y": mixed}, test)


def unit_directions(X: FloatArray, count: int) -> FloatArray:
    """Return X on its leading principal directions, rows of length 1."""
    X = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(X.T @ X)
    kept = vectors[:, -count:][:, values[-count:] > 1e-9 * values[-1]]
    return unit(X @ kept)


def unit(X: FloatArray) -> FloatArray:
    """Return rows of length 1."""
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _with_one(X: FloatArray) -> FloatArray:
    return np.column_stack([X, np.ones(len(X), dtype=X.dtype)])
