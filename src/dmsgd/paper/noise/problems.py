"""Three real problems on which the noise of gradients is measured, and kernels for each.

regression  scikit-learn's diabetes data: linear least squares on 1, 3 or 10 of its columns; the
            kernel is RBF on the columns with or without the outcome y, which the gradient
            (xᵀθ - y) x depends on as much as on x; or on numbers that mean nothing
flowers     the 102-class softmax on Oxford-102; linear kernels on [(1-w)X, wH], X of unit rows
digits      a softmax on MNIST pixels; RBF kernels on [(1-w)X, wH], as in the paper
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.models import softmax
from dmsgd.paper.models.softmax import softmax_gradients

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers, Images

#: Columns of the diabetes data, those first that predict most: bmi, s5, bp, then the others.
COLUMNS = (2, 8, 3, 0, 1, 4, 5, 6, 7, 9)
#: Rate of plain SGD along which the noise is measured, by problem.
RATES = {"regression": 0.05, "flowers": 1.0, "digits": 0.1}


@dataclass(frozen=True, eq=False)
class Problem:
    """What is trained and what is compared.

    kernels:   by name.
    gradients: for each of some numbers of steps, rows with the inner products of the gradients of
               all items.
    """

    name: str
    kernels: dict[str, dmsgd.Kernel]
    gradients: tuple[FloatArray, ...]


def regression(
    items: int,
    k: int,
    columns: int,
    stretches: tuple[float, ...],
    steps: tuple[int, ...],
    seed: int,
) -> Problem:
    """Return least squares on the first of COLUMNS; the data ships with scikit-learn.

    RBF scales are `stretches` times that of `suggest_scale`: more is a stronger k-DPP.
    """
    from sklearn.datasets import load_diabetes

    rng = np.random.default_rng([seed, 10])
    X, y = load_diabetes(return_X_y=True)
    rows = rng.permutation(y.size)[:items]
    X, y = X[rows][:, COLUMNS[:columns]], y[rows]
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    A = np.column_stack([X, np.ones(y.size)])
    theta, gradients, done = 0.1 * rng.standard_normal(A.shape[1]), [], 0
    for last in steps:
        for batch in dmsgd.Uniform(y.size, k).sample(last, seed)[done:]:
            slope = A[batch].T @ (A[batch] @ theta - y[batch]) / k
            theta = theta - RATES["regression"] * slope
        gradients.append((A @ theta - y)[:, None] * A)
        done = last
    called = f"{columns} column{'s' if columns > 1 else ''}"
    seen = {f"{called} and y": np.column_stack([X, y])}
    if columns > 1:
        seen[called] = X
    if columns == len(COLUMNS):
        seen["3 random numbers"] = rng.standard_normal((y.size, 3))
    kernels: dict[str, dmsgd.Kernel] = {}
    for name, F in seen.items():
        scale = dmsgd.suggest_scale(F, k)
        kernels |= {f"{name}, scale x {s:g}": dmsgd.RBF(F, s * scale) for s in stretches}
    return Problem("regression", kernels, tuple(gradients))


def flowers(
    data: Flowers, items: int, k: int, directions: int, ws: tuple[float, ...],
    steps: tuple[int, ...], seed: int,
) -> Problem:  # fmt: skip
    """Return the softmax on a part of Oxford-102's long-tailed split; kernels see `directions`."""
    X, y = data.part("test")
    rows = np.random.default_rng([seed, 11]).permutation(y.size)[:items]
    X, y = np.asarray(dmsgd.normalize(X[rows])), y[rows]
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    F = U[:, :directions] * s[:directions]
    kernels: dict[str, dmsgd.Kernel] = {f"w={w:g}": dmsgd.Linear(dmsgd.concat(F, y, w)) for w in ws}
    gradients = _along_training(10 * X, y, int(data.y.max()) + 1, k, steps, "flowers", seed)
    return Problem("flowers", kernels, gradients)


def digits(
    data: Images, items: int, k: int, rank: int, ws: tuple[float, ...],
    steps: tuple[int, ...], seed: int,
) -> Problem:  # fmt: skip
    """Return the softmax on a part of MNIST; kernels keep `rank` leading eigenvectors."""
    rows = np.random.default_rng([seed, 12]).permutation(len(data.y_train))[:items]
    X, y = data.x_train[rows].reshape(rows.size, -1) / 255, data.y_train[rows]
    kernels = {f"w={w:g}": _leading(dmsgd.RBF(dmsgd.concat(X, y, w)), rank) for w in ws}
    gradients = _along_training(X, y, 10, k, steps, "digits", seed)
    return Problem("digits", kernels, gradients)


def _leading(kernel: dmsgd.Kernel, rank: int) -> dmsgd.Kernel:
    spectrum = dmsgd.exact(kernel)
    return dmsgd.Linear(spectrum.vectors[:, :rank] * np.sqrt(spectrum.values[:rank]))


def _along_training(
    X: FloatArray, y: IntArray, classes: int, k: int, steps: tuple[int, ...], name: str, seed: int
) -> tuple[FloatArray, ...]:
    """Return the items' gradients after each of `steps` of plain SGD."""
    targets = np.eye(classes)[y]
    batches = dmsgd.Uniform(y.size, k).sample(steps[-1], seed)
    weights = softmax.initial_weights(X.shape[1], classes, np.random.default_rng([seed, 1]))
    found, first = [], 0
    for last in steps:
        weights = softmax.train(weights, X, targets, batches[first:last], RATES[name])
        found.append(softmax_gradients(X, softmax.probabilities(weights, X) - targets))
        first = last
    return tuple(found)


#: What makes a problem for a seed.
Maker = Callable[[int], Problem]
