"""Squares of rows and distances between them, for arrays and CSR."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dmsgd.inputs.arrays import FloatArray, Matrix, as_array
from dmsgd.inputs.progress import run_interruptible

#: Multiplications of arrays in the time of one with an entry of a sparse matrix.
SPARSE = 20


def product(A: Matrix, B: Matrix) -> FloatArray:
    """Return A B as an array."""
    entries = SPARSE * A.nnz if sparse.issparse(A) else A.shape[0] * A.shape[1]
    products = 0.0 if sparse.issparse(B) else entries * float(B.shape[1])
    what = f"a product of {A.shape[0]:,} x {A.shape[1]:,} and {B.shape[1]:,} columns"
    return as_array(run_interruptible(lambda: A @ B, products, what))


def row_squares(X: Matrix) -> FloatArray:
    """Return |x_i|² for each row, shape (n,)."""
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.asarray(squares).ravel()


def similarity(A: Matrix, B: Matrix, scale: float) -> FloatArray:
    """Return exp(-|a - b|² / (2 scale²)) for the rows a of A and b of B."""
    L = squared_distances(A, B)
    L *= -0.5 / scale**2
    return np.exp(L, out=L)


def squared_distances(A: Matrix, B: Matrix) -> FloatArray:
    """Return |a - b|² for the rows a of A and b of B."""
    if isinstance(A, np.ndarray) and isinstance(B, np.ndarray) and len(B):
        centre = B.mean(axis=0)  # distances are the same, and less is lost to rounding
        A, B = A - centre, B - centre
    distances = product(A, B.T)
    distances *= -2.0
    distances += row_squares(A)[:, None]
    distances += row_squares(B)[None, :]
    return np.maximum(distances, 0.0, out=distances)
