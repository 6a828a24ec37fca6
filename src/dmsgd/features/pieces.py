"""Long products in pieces: Ctrl-C is heard between them, and it is told how far they are."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dmsgd.inputs.arrays import FloatArray, Matrix, as_array
from dmsgd.inputs.progress import Progress, expected

#: Multiplications in a piece, half a second or so, and the fewest rows that BLAS is fast with.
PIECE, ROWS = 2**34, 512

#: Multiplications of arrays in the time of one with an entry of a sparse matrix.
SPARSE = 20


def product(A: Matrix, B: Matrix) -> FloatArray:
    """Return A B as an array."""
    scattered = sparse.issparse(A)
    products = (SPARSE * A.nnz if scattered else A.shape[0] * A.shape[1]) * float(B.shape[1])
    if sparse.issparse(B) or not expected(products):
        return as_array(A @ B)
    A, out = A.tocsr() if scattered else A, np.empty((A.shape[0], B.shape[1]))
    tell = Progress(f"a product of {A.shape[0]:,} x {A.shape[1]:,} and {B.shape[1]:,} columns")
    step = max(ROWS, int(PIECE * A.shape[0] / products))
    for first in range(0, A.shape[0], step):
        out[first : first + step] = A[first : first + step] @ B
        tell(min(1.0, (first + step) / A.shape[0]))
    return out


def gram(X: FloatArray) -> FloatArray:
    """Return XᵀX of an array."""
    n, d = X.shape
    if not expected(float(n) * d**2):
        return np.asarray(X.T @ X)
    total, tell = np.zeros((d, d)), Progress(f"the Gram matrix of {n:,} items x {d:,} features")
    step = max(ROWS, PIECE // d**2)
    for first in range(0, n, step):
        rows = X[first : first + step]
        total += rows.T @ rows
        tell(min(1.0, (first + step) / n))
    return total
