"""Feature maps: what the paper's kernels do to data before the inner product.

`anneal`, `standardize`, `normalize` and `concat` are for users: an array gives an array and CSR
gives CSR, while features that are read in blocks give features that are mapped block by block, when
they are read. What a map does to rows is in mapped_rows.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.features.convert import as_features
from dmsgd.features.interface import Features, Map
from dmsgd.features.mapped_rows import Power, UnitColumns, UnitRows, WithLabels, indicators
from dmsgd.features.moments import column_moments
from dmsgd.features.resident import Resident
from dmsgd.inputs.arrays import TINY, Matrix
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.scalars import as_fraction, as_positive


def one_hot(labels: Any) -> Matrix:
    """Return H, the (n, classes) CSR indicator matrix of the labels, classes in sorted order.

    O(n log n), and n stored numbers.

    >>> one_hot(["cat", "ant", "cat"]).toarray()
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    classes, codes = as_classes(labels)
    return indicators(codes, classes.size)


def anneal(X: Any, rho: float) -> Matrix | Features:
    """Return x^rho element-wise; zeros stay zero, so sparse stays sparse.

    The paper's annealed kernel is Linear(anneal(tfidf, 0.1)): a small rho makes every shared word
    count almost alike. X has shape (n, d), and so has the result; O(stored entries).

    >>> anneal(np.array([[0.0, 4.0]]), 0.5)
    array([[0., 2.]])
    """
    return _applied(X, Power(as_positive(rho, "rho")))


def normalize(X: Any) -> Matrix | Features:
    """Return X with rows of Euclidean length 1; zero rows stay zero.

    A linear kernel favours items in proportion to their squared norm. Normalise when the length of
    a row means nothing (embeddings, counts), keep it when it is importance. X has shape (n, d), and
    so has the result; O(stored entries).

    >>> normalize(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return _applied(X, UnitRows())


def standardize(X: Any) -> Matrix | Features:
    """Return X with columns of mean 0 and standard deviation 1; constant columns become 0.

    For columns in different units: a linear kernel otherwise sees those with the largest numbers
    alone. Sparse X is scaled and not centred, so that it stays sparse: its columns have standard
    deviation 1 and keep their zeros. The means and deviations take one pass over X, shape (n, d),
    and the result has its shape.

    >>> standardize(np.array([[1.0, 500.0, 7.0], [3.0, 100.0, 7.0]]))
    array([[-1.,  1.,  0.],
           [ 1., -1.,  0.]])
    """
    F = as_features(X, allow_tiny=True)
    return _native(F.mapped(unit_columns(F)))


def unit_columns(F: Features) -> UnitColumns:
    """Return the map that makes columns of mean 0 and standard deviation 1 of these features."""
    origin, found = column_moments(F)
    deviations = found.deviations
    small = np.flatnonzero((deviations > 0) & (deviations < TINY))
    if small.size:
        raise ValueError(
            f"column {small[0]} of X has a standard deviation of {deviations[small[0]]:.0e}, of "
            f"which too few digits are known to divide by it; rescale the column, or leave it out"
        )
    return UnitColumns(origin, found.means, np.where(deviations > 0, deviations, np.inf))


def concat(X: Any, labels: Any, w: float) -> Matrix | Features:
    """Return F = [(1-w)X, wH]: features and one-hot labels side by side (the paper's eq. for F).

    w = 0 looks at the features alone, w = 1 at the labels alone (stratified sampling); a part of
    weight zero is left out rather than stored as zeros. The shape is (n, d + classes); O(stored
    entries).

    >>> concat(np.array([[2.0], [4.0]]), ["a", "b"], 0.5)
    array([[1. , 0.5, 0. ],
           [2. , 0. , 0.5]])
    """
    F = as_features(X)
    return _native(with_labels(F, labels, as_fraction(w, "w")))


def with_labels(F: Features, labels: Any, w: float) -> Features:
    """Return the features [(1-w)X, wH]; for w = 0 those that were given."""
    classes, codes = as_classes(labels, F.n)
    return F.mapped(WithLabels(codes, classes.size, w)) if w > 0 else F


def _applied(X: Any, map: Map) -> Matrix | Features:
    return _native(as_features(X, allow_tiny=True).mapped(map))


def _native(F: Features) -> Matrix | Features:
    """Return features in memory, or on a card, as the array, CSR array or tensor they are."""
    if (there := F.device()) is not None:
        return there.tensor
    return F.matrix if isinstance(F, Resident) else F
