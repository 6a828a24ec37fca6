"""Feature maps for users: `one_hot`, `anneal`, `normalize`, `standardize`, `concat`.

An array gives an array, CSR gives CSR and a tensor a tensor. Features in blocks give features that
are mapped when their blocks are read. What a map does to rows is in map_types.py.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from dmsgd.features.contract import Features, RowMap
from dmsgd.features.convert import as_features
from dmsgd.features.map_types import Anneal, ConcatLabels, Normalize, Standardize, indicators
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import TINY, FloatArray, Matrix, as_array, is_sparse
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.scalars import as_fraction, as_positive

#: Number of rows, means of their columns, and roots of the summed squared distances from them.
Moments = tuple[int, FloatArray, FloatArray]


def one_hot(labels: Any) -> Matrix:
    """Return H, the (n, classes) sparse matrix of one-hot labels, classes in sorted order.

    >>> one_hot(["cat", "ant", "cat"]).toarray()
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    classes, codes = as_classes(labels)
    return indicators(codes, classes.size)


def anneal(X: Any, rho: float) -> Matrix | Features:
    """Return X with every entry raised to the power rho; zeros stay zero, so sparse stays sparse.

    The paper's annealed kernel is Linear(anneal(tfidf, 0.1)): a small rho makes every shared word
    count almost alike. Raises ValueError for negative entries, unless rho is a whole number.

    >>> anneal(np.array([[0.0, 4.0]]), 0.5)
    array([[0., 2.]])
    """
    return _applied(X, Anneal(as_positive(rho, "rho")))


def normalize(X: Any) -> Matrix | Features:
    """Return X with rows of Euclidean length 1; zero rows stay zero.

    A linear kernel favours items in proportion to their squared norm. Normalize rows whose length
    means nothing (embeddings, counts); keep the length where it is importance. See also `Linear`.

    >>> normalize(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return _applied(X, Normalize())


def standardize(X: Any) -> Matrix | Features:
    """Return X with columns of mean 0 and standard deviation 1; constant columns become 0.

    For columns in different units: a linear kernel is otherwise dominated by those with the largest
    numbers. Sparse X is scaled and not centred, so that it stays sparse: its columns have standard
    deviation 1 and keep their zeros.

    >>> standardize(np.array([[1.0, 500.0, 7.0], [3.0, 100.0, 7.0]]))
    array([[-1.,  1.,  0.],
           [ 1., -1.,  0.]])
    """
    F = as_features(X, allow_tiny=True)
    return F.mapped(standardize_map(F)).unwrap()


def standardize_map(F: Features) -> Standardize:
    """Return the map that makes columns of mean 0 and standard deviation 1 of these features."""
    origin, means, deviations = column_moments(F)
    small = np.flatnonzero((deviations > 0) & (deviations < TINY))
    if small.size:
        raise ValueError(
            f"column {small[0]} of X has a standard deviation of {deviations[small[0]]:.0e}, of "
            f"which too few digits are known to divide by it; rescale the column, or leave it out"
        )
    return Standardize(origin, means, np.where(deviations > 0, deviations, np.inf))


def concat(X: Any, labels: Any, w: float) -> Matrix | Features:
    """Return F = [(1-w)X, wH]: features and one-hot labels side by side (the paper's eq. for F).

    w = 0 uses the features alone, w = 1 the labels alone (stratified sampling); a part of weight
    zero is left out, not stored as zeros. The shape is (n, d + classes); O(stored entries).

    >>> concat(np.array([[2.0], [4.0]]), ["a", "b"], 0.5)
    array([[1. , 0.5, 0. ],
           [2. , 0. , 0.5]])
    """
    labels = aligned(labels, X, "labels")
    return concat_labels(as_features(X), labels, as_fraction(w, "w")).unwrap()


def concat_labels(F: Features, labels: Any, w: float) -> Features:
    """Return the features [(1-w)X, wH]; for w = 0 those that were given."""
    classes, codes = as_classes(labels, F.n)
    return F.mapped(ConcatLabels(codes, classes.size, w)) if w > 0 else F


def _applied(X: Any, map: RowMap) -> Matrix | Features:
    return as_features(X, allow_tiny=True).mapped(map).unwrap()


def column_moments(F: Features) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the first row, and means and standard deviations of all rows less that one.

    So a column far from 0 keeps its digits, and a constant column has deviation exactly 0.
    """
    origin = as_array(F.take(np.zeros(1, dtype=np.int64)))[0].astype(np.float64)
    parts = F.map_blocks(partial(_moments, origin=origin), "moments")
    count, means, spread = reduce(_merged, parts)
    return origin, means, spread / np.sqrt(count)


def _merged(one: Moments, other: Moments) -> Moments:
    """Return the moments of two parts of the rows together."""
    (n, means, spread), (m, others, another) = one, other
    apart = others - means
    between = np.abs(apart) * np.sqrt(n * (m / (n + m)))
    spread = np.hypot(np.hypot(spread, another), between)  # neither overflows nor vanishes
    return n + m, means + apart * (m / (n + m)), spread


def _moments(rows: Matrix, origin: FloatArray) -> Moments:
    """Return the moments of a block of rows less `origin`."""
    if is_sparse(rows):
        return _sparse_moments(rows, origin)
    shifted = rows - origin
    means = shifted.mean(axis=0)
    shifted -= means
    size = np.abs(shifted).max(axis=0)
    shifted /= np.where(size > 0, size, 1.0)
    return len(rows), means, size * np.sqrt(np.einsum("ij,ij->j", shifted, shifted))


def _sparse_moments(rows: Matrix, origin: FloatArray) -> Moments:
    n, d = rows.shape
    entries, columns = rows.data - origin[rows.indices], rows.indices
    empty = n - np.bincount(columns, minlength=d)
    means = (np.bincount(columns, weights=entries, minlength=d) - empty * origin) / n
    entries -= means[columns]
    apart = np.where(empty > 0, np.abs(origin + means), 0.0)  # of the zeros that are not stored
    size = apart.copy()
    np.maximum.at(size, columns, np.abs(entries))
    scale = np.where(size > 0, size, 1.0)
    squares = np.bincount(columns, weights=(entries / scale[columns]) ** 2, minlength=d)
    return n, means, size * np.sqrt(squares + empty * (apart / scale) ** 2)
