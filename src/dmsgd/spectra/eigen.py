"""The symmetric eigenproblem, and what of it is to be believed.

Rounding disturbs every eigenvalue of a matrix by about eps times the largest. What is smaller than
`noise` times the largest cannot be told from zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from dmsgd.inputs.apart import apart
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.progress import EIGH, expected

EPS = float(np.finfo(float).eps)


def noise(size: int) -> float:
    """Return how far rounding moves an eigenvalue or singular value, as a share of the largest.

    A bound for matrices with `size` rows or columns, whichever are fewer: spurious values of
    matrices of deficient rank were 0.2 to 10 eps, for sizes from 8 to 4,000.
    """
    return 4 * EPS * float(np.sqrt(size))


def eigh(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, largest first, and eigenvectors; the matrix is overwritten.

    By divide and conquer: R8 takes four fifths of the time of "evr", for twice the matrix of
    scratch. The signs are turned so that vectors come in order: products copy reversed columns.
    """
    np.negative(symmetric, out=symmetric)
    driver = "evd" if len(symmetric) > 1 else "ev"  # older SciPy asks too little scratch for one
    values, vectors = _solved(symmetric, driver=driver)
    return -values, vectors


def eigenvalues(symmetric: FloatArray) -> FloatArray:
    """Return the eigenvalues that rounding can tell from zero; the matrix is overwritten."""
    values, _ = _solved(symmetric, eigvals_only=True)
    return np.asarray(values[values > noise(values.size) * values[-1]])


def _solved(symmetric: FloatArray, **options: Any) -> tuple[FloatArray, FloatArray]:
    """Return what scipy.linalg.eigh finds, eigenvectors last; where it takes long, Ctrl-C ends it.

    LAPACK wants columns; the transpose of a symmetric matrix costs nothing.
    """
    matrix = symmetric if symmetric.flags.f_contiguous else symmetric.T
    if seconds := expected(EIGH * len(matrix) ** 3):
        what = f"the eigendecomposition of {len(matrix):,} rows and columns"
        if (found := apart("eigh", matrix, seconds, what, **options)) is not None:
            return found
    found = linalg.eigh(matrix, overwrite_a=True, check_finite=False, **options)
    return found if isinstance(found, tuple) else (found, matrix)
