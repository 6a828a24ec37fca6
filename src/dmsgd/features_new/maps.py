"""Feature maps: what the paper's kernels do to data before the inner product.

Each takes the data and returns a new matrix; dense stays dense and sparse stays sparse. Features
that are read in blocks (`dmsgd.streams`) are mapped block by block, when they are read.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from dmsgd.inputs.arrays import FloatArray, Matrix, as_fraction, as_labels, as_matrix, as_positive
from dmsgd.streams.recognise import as_rows
from dmsgd.streams.transforms import EachBlock, WithLabels

#: Rows shorter than this are stretched by a power of two before their entries are squared.
SHORT, STRETCH = 1e-140, 2.0**900


def one_hot(y: Any) -> Matrix:
    """Return H, the (n, classes) CSR indicator matrix of the labels, classes in sorted order.

    >>> one_hot(["cat", "ant", "cat"]).toarray()
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    labels = as_labels(y)
    classes, codes = np.unique(labels, return_inverse=True)
    rows = np.arange(labels.size + 1)
    return sparse.csr_array(
        (np.ones(labels.size), codes.astype(np.int64), rows), shape=(labels.size, classes.size)
    )


def anneal(X: Any, rho: float) -> Matrix:
    """Return x^rho element-wise; zeros stay zero, so sparse stays sparse.

    The paper's annealed kernel is Linear(anneal(tfidf, 0.1)): a small rho makes every shared word
    count almost alike.
    """
    rho = as_positive(rho, "rho")
    if (rows := as_rows(X)) is not None:
        return rows.mapped(EachBlock(partial(anneal, rho=rho)))
    X = as_matrix(X)
    values = X.data if sparse.issparse(X) else X
    if rho != int(rho) and values.min(initial=0.0) < 0:
        raise ValueError(f"X has negative entries, whose power {rho} is not real; shift X first")
    if not sparse.issparse(X):
        return np.power(X, rho)
    X = X.copy()
    X.data **= rho
    return X


def normalize(X: Any) -> Matrix:
    """Return X with rows of Euclidean length 1; zero rows stay zero.

    A linear kernel favours items in proportion to their squared norm. Normalise when the length of
    a row means nothing (embeddings, counts), keep it when it is importance.
    """
    if (rows := as_rows(X)) is not None:
        return rows.mapped(EachBlock(normalize))
    X = as_matrix(X, part=True)
    lengths = _lengths(X)
    lengths[lengths == 0] = 1.0
    if not sparse.issparse(X):
        return X / lengths[:, None]
    X = X.copy()
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    return X


def row_squares(X: Matrix) -> FloatArray:
    """Return |x_i|² for each row, shape (n,)."""
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.asarray(squares).ravel()


def _lengths(X: Matrix) -> FloatArray:
    """Return |x_i| for each row, also where squares are too small to be told from zero."""
    lengths = np.sqrt(row_squares(X))
    short = np.flatnonzero(lengths < SHORT)
    if short.size:
        lengths[short] = np.sqrt(row_squares(X[short] * STRETCH)) / STRETCH
    return lengths


def scaled_rows(X: Matrix, factors: FloatArray) -> Matrix:
    """Return X with row i times factors[i]; dense stays dense and sparse stays sparse."""
    if sparse.issparse(X):
        return sparse.csr_array(sparse.diags_array(factors) @ X)
    return X * factors[:, None]


def concat(X: Any, y: Any, w: float) -> Matrix:
    """Return F = [(1-w)X, wH]: features and one-hot labels side by side (the paper's eq. for F).

    w = 0 looks at the features alone, w = 1 at the labels alone (stratified sampling); a part of
    weight zero is left out rather than stored as zeros.
    """
    w = as_fraction(w, "w")
    rows = as_rows(X)
    X = as_matrix(X) if rows is None else rows
    labels = as_labels(y, X.shape[0])
    if w == 0:
        return X
    if rows is not None:
        classes, codes = np.unique(labels, return_inverse=True)
        return rows.mapped(WithLabels(codes.astype(np.int64), classes.size, w))
    H = one_hot(labels)
    if w == 1:
        return H
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([(1 - w) * X, w * H], format="csr"))
    F = np.empty((X.shape[0], X.shape[1] + H.shape[1]))
    np.multiply(X, 1 - w, out=F[:, : X.shape[1]])
    F[:, X.shape[1] :] = (w * H).toarray()
    return F
