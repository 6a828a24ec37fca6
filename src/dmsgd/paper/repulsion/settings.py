"""Where theory expects something of repulsion: items, what kernels see of them, what is trained.

low dimension   x in one to three dimensions: a density, and regressions whose error at the optimum
                is a smooth function of x or noise
copies          all items are near-copies of 16, equally many of each or in proportion 1, 1/2, 1/3
gradients       linear regression on two and on ten columns; kernels that see x, x and y, the
                items' gradients after a fit to an eighth of them, and those at the optimum, which
                nobody has
k-means         ten centres in two dimensions, on scikit-learn's digits, on MNIST
softmax         scikit-learn's digits, kernels as under `gradients`
NMF             scikit-learn's digits
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.repulsion.designs import legendre
from dmsgd.paper.repulsion.models import Density, LeastSquares, Model, Quantiser, Softmax

#: By dimension: the polynomials that are fitted (with the constant), and quadrature nodes an axis.
POLYNOMIALS, NODES = {1: 5, 2: 10, 3: 10}, {1: 32, 2: 16, 3: 7}
#: Different items in the data of copies, and how far a copy is from its item.
DIFFERENT, AWAY = 16, 0.05
#: A fit to one item in so many tells the gradients that kernels see.
PILOT = 8
#: Centres of k-means, and principal directions of MNIST that it sees.
CENTRES, DIRECTIONS = 10, 50


@dataclass(frozen=True, eq=False)
class Setting:
    """The items of one seed.

    features:    what kernels and cells see, by name.
    models:      what is trained, by name.
    polynomials: points in [-1, 1]^d of which polynomials are made, if any.
    """

    features: dict[str, FloatArray]
    models: dict[str, Model]
    polynomials: FloatArray | None = None


#: (items, seed) -> the setting.
Maker = Callable[[int, int], Setting]


def low_dimension(d: int, n: int, seed: int, among: str = "") -> Setting:
    """Return problems on x in [-1, 1]^d, denser towards 1; `among` ends their names.

    A regression with noise is one of them if d = 1.
    """
    rng = np.random.default_rng([seed, 31, d])
    X = 2 * rng.uniform(size=(n, d)) ** 0.7 - 1
    phi = legendre(X, POLYNOMIALS[d])
    nodes, weights = _quadrature(d)
    smooth = np.sin(3 * X.sum(axis=1))
    models: dict[str, Model] = {
        f"density, {d}-d{among}": Density(
            phi[:, 1:], legendre(nodes, POLYNOMIALS[d])[:, 1:], weights
        ),
        f"regression without noise, {d}-d{among}": LeastSquares(phi, smooth),
    }
    if d == 1:
        noisy = smooth + 0.5 * rng.standard_normal(n)
        models[f"noisy regression, {d}-d{among}"] = LeastSquares(phi, noisy)
    return Setting({"x": X}, models, X)


def _quadrature(d: int) -> tuple[FloatArray, FloatArray]:
    points, weights = np.polynomial.legendre.leggauss(NODES[d])
    grid = np.meshgrid(*[points] * d, indexing="ij")
    shares = np.prod(np.meshgrid(*[weights / 2] * d, indexing="ij"), axis=0)
    return np.column_stack([each.ravel() for each in grid]), shares.ravel()


def copies(skewed: bool, n: int, seed: int) -> Setting:
    """Return linear regression on ten columns, near-copies of DIFFERENT items."""
    rng = np.random.default_rng([seed, 32])
    shares = 1 / np.arange(1, DIFFERENT + 1) if skewed else np.ones(DIFFERENT)
    ends = np.round(n * np.cumsum(shares) / shares.sum()).astype(np.int64)
    of = np.searchsorted(ends, np.arange(n), side="right")
    originals = rng.standard_normal((DIFFERENT, 10))
    answers = originals @ rng.choice([-1.0, 1.0], 10) + rng.standard_normal(DIFFERENT)
    X = originals[of] + AWAY * rng.standard_normal((n, 10))
    y = answers[of] + AWAY * rng.standard_normal(n)
    name = "near-copies, skewed" if skewed else "near-copies, equally many"
    return Setting({"x": X}, {name: LeastSquares(X, y)})


def gradients(d: int, n: int, seed: int) -> Setting:
    """Return linear regression on d columns with noise as large as the signal of one."""
    rng = np.random.default_rng([seed, 33, d])
    X = rng.standard_normal((n, d))
    y = X @ rng.choice([-1.0, 1.0], d) + rng.standard_normal(n)
    model = LeastSquares(X, y)
    few = rng.permutation(n)[: n // PILOT]
    pilot = LeastSquares(X[few], y[few]).optimum
    features = {
        "x": X,
        "x and y": np.column_stack([X, y / y.std()]),
        "gradients": model.item_gradients(pilot),
        "final gradients": model.item_gradients(model.optimum),
    }
    return Setting(features, {f"linear regression, {d} columns": model})


def blobs(n: int, seed: int) -> Setting:
    """Return k-means on ten round clusters in the plane."""
    rng = np.random.default_rng([seed, 34])
    centres = rng.uniform(-1, 1, size=(CENTRES, 2))
    X = centres[rng.integers(CENTRES, size=n)] + 0.15 * rng.standard_normal((n, 2))
    return Setting({"x": X}, {"k-means, 2-d": Quantiser(X, CENTRES, seed)})


def digits(n: int, seed: int) -> Setting:
    """Return k-means on some of scikit-learn's digits."""
    X, _ = some_digits(n, seed)
    return Setting({"x": X}, {"k-means, digits": Quantiser(X, CENTRES, seed)})


def mnist(images: FloatArray, n: int, seed: int) -> Setting:
    """Return k-means on principal directions of some of the images, which are rows."""
    rows = np.random.default_rng([seed, 36]).permutation(len(images))[:n]
    X = images[rows].astype(np.float64)
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    X = U[:, :DIRECTIONS] * s[:DIRECTIONS]
    return Setting({"x": X}, {"k-means, MNIST": Quantiser(X, CENTRES, seed)})


def classes(n: int, seed: int) -> Setting:
    """Return the softmax on some of scikit-learn's digits."""
    X, y = some_digits(n, seed)
    model = Softmax(X, y, 10)
    pilot = Softmax(X[: n // PILOT], y[: n // PILOT], 10, ridge=1e-2).optimum
    features = {
        "x and class": np.column_stack([X / np.linalg.norm(X, axis=1).mean(), np.eye(10)[y]]),
        "gradients": model.item_gradients(pilot),
    }
    return Setting(features, {"softmax, digits": model})


def parts(n: int, seed: int) -> Setting:
    """Return digits for NMF, which is no descent: see `repulsion.nmf`."""
    return Setting({"x": some_digits(n, seed)[0]}, {})


def some_digits(n: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Return n of scikit-learn's digits, pixels from 0 to 1, and what they show."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng([seed, 35]).permutation(y.size)[:n]
    return X[rows] / 16, y[rows].astype(np.int64)
