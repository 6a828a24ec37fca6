"""Items, what kernels see of them, and what is trained: where theory expects much of repulsion.

Functions of (..., n, seed) return what kernels and cells see, by name, and the model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

from experiments.repulsion.models import CENTRES, Model, classifier, density, k_means, least_squares

#: By dimension: the polynomials that are fitted (with the constant), and quadrature nodes an axis.
POLYNOMIALS, NODES = {1: 5, 2: 10, 3: 10}, {1: 32, 2: 16, 3: 7}
#: Different items among the near-copies, and how far a copy is from its item.
DIFFERENT, AWAY = 16, 0.05
#: A fit to one item in so many gives the gradients that kernels see.
PILOT = 8

Made = tuple[dict[str, np.ndarray], Model]


def legendre(X: np.ndarray, count: int) -> np.ndarray:
    """Return the first products of Legendre polynomials on [-1, 1]^d, of mean square 1."""
    d, chosen, degree = X.shape[1], list[tuple[int, ...]](), 0
    while len(chosen) < count:
        chosen += combinations_with_replacement(range(d), degree)
        degree += 1
    tables = [legvander(column, degree) * np.sqrt(2 * np.arange(degree + 1) + 1) for column in X.T]
    powers = [np.bincount(np.array(each, dtype=int), minlength=d) for each in chosen[:count]]
    columns = [[tables[j][:, each[j]] for j in range(d)] for each in powers]
    return np.prod(columns, axis=1).T


def low_dimension(kind: str, d: int, n: int, seed: int) -> Made:
    """Return a density, or a regression with a smooth error or noise, on x in [-1, 1]^d."""
    rng = np.random.default_rng([seed, 31, d])
    X = 2 * rng.uniform(size=(n, d)) ** 0.7 - 1  # denser towards 1
    phi = legendre(X, POLYNOMIALS[d])
    if kind == "density":
        points, weights = leggauss(NODES[d])
        grid = np.reshape(np.meshgrid(*[points] * d, indexing="ij"), (d, -1)).T
        shares = np.prod(np.meshgrid(*[weights / 2] * d, indexing="ij"), axis=0).ravel()
        return {"x": X}, density(phi[:, 1:], legendre(grid, POLYNOMIALS[d])[:, 1:], shares)
    noise = 0.5 * rng.standard_normal(n) if kind == "noisy regression" else 0.0
    return {"x": X}, least_squares(phi, np.sin(3 * X.sum(axis=1)) + noise)


def near_copies(skewed: bool, n: int, seed: int) -> Made:
    """Return linear regression on ten columns; copies are equally many or as 1, 1/2, 1/3, ..."""
    rng = np.random.default_rng([seed, 32])
    shares = 1 / np.arange(1, DIFFERENT + 1) if skewed else np.ones(DIFFERENT)
    ends = np.round(n * np.cumsum(shares) / shares.sum()).astype(int)
    of = np.searchsorted(ends, np.arange(n), side="right")
    originals = rng.standard_normal((DIFFERENT, 10))
    answers = originals @ rng.choice([-1.0, 1.0], 10) + rng.standard_normal(DIFFERENT)
    X = originals[of] + AWAY * rng.standard_normal((n, 10))
    return {"x": X}, least_squares(X, answers[of] + AWAY * rng.standard_normal(n))


def regression(d: int, n: int, seed: int) -> Made:
    """Return linear regression on d columns with noise as large as the signal of one."""
    rng = np.random.default_rng([seed, 33, d])
    X = rng.standard_normal((n, d))
    y = X @ rng.choice([-1.0, 1.0], d) + rng.standard_normal(n)
    model, few = least_squares(X, y), rng.permutation(n)[: n // PILOT]
    features = {"x": X, "x and y": np.column_stack([X, y / y.std()])}
    features["gradients"] = model.item_gradients(least_squares(X[few], y[few]).optimum)
    features["final gradients"] = model.item_gradients(model.optimum)  # which nobody has
    return features, model


def digits(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n of scikit-learn's digits, pixels from 0 to 1, and what they show."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng([seed, 35]).permutation(y.size)[:n]
    return X[rows] / 16, y[rows]


def digit_classes(n: int, seed: int) -> Made:
    """Return the softmax on scikit-learn's digits."""
    X, y = digits(n, seed)
    model, few = classifier(X, y), slice(n // PILOT)
    both = np.column_stack([X / np.linalg.norm(X, axis=1).mean(), np.eye(10)[y]])
    pilot = classifier(X[few], y[few], ridge=1e-2).optimum
    return {"x and class": both, "gradients": model.item_gradients(pilot)}, model


def clusters(real: bool, n: int, seed: int) -> Made:
    """Return k-means on scikit-learn's digits, or on round clusters in the plane."""
    rng = np.random.default_rng([seed, 34])
    centres = rng.uniform(-1, 1, size=(CENTRES, 2))
    X = centres[rng.integers(CENTRES, size=n)] + 0.15 * rng.standard_normal((n, 2))
    X = digits(n, seed)[0] if real else X
    return {"x": X}, k_means(X, seed)


class Problem(NamedTuple):
    """How items are made, what kernels and cells see of them, and if they see polynomials of x, d.

    slow: a run takes seconds; it has fewer streams, and k = 16 alone.
    """

    make: Callable[[int, int], Made]
    seen: tuple[str, ...] = ("x",)
    dimension: int = 0
    slow: bool = False


SMOOTH, MANY = ("density", "regression without noise"), " (many items)"
COLUMNS = ("x", "x and y", "gradients", "final gradients")
PROBLEMS = {
    f"{kind}, {d}-d{many}": Problem(partial(low_dimension, kind, d), ("x",), d, many == MANY)
    for d, many, kinds in ((1, "", (*SMOOTH, "noisy regression")), (2, "", SMOOTH),
                           (3, "", SMOOTH), (2, MANY, SMOOTH))
    for kind in kinds
} | {
    "near-copies, equally many": Problem(partial(near_copies, False)),
    "near-copies, skewed": Problem(partial(near_copies, True)),
    "linear regression, 2 columns": Problem(partial(regression, 2), COLUMNS),
    "linear regression, 10 columns": Problem(partial(regression, 10), COLUMNS),
    "softmax, digits": Problem(digit_classes, ("x and class", "gradients"), slow=True),
    "k-means, 2-d": Problem(partial(clusters, False), slow=True),
    "k-means, digits": Problem(partial(clusters, True), slow=True),
}  # fmt: skip
