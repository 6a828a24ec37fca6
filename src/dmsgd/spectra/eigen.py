"""The symmetric eigenproblem, what of it is to be believed, and one basis where it leaves a choice.

Rounding disturbs every eigenvalue of a matrix by about eps times the largest. What is smaller than
`noise` times the largest cannot be told from zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from dmsgd.inputs.apart import apart
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.effort import EIGH, Progress, expected

EPS = float(np.finfo(float).eps)

#: A pivot of a tied eigenspace is the first row this close to the largest, on every processor.
ALIKE = 1e-6


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


def settle_ties(values: FloatArray, vectors: FloatArray, spread: float) -> None:
    """Replace the vectors of eigenvalues within `spread` of each other by one basis of their span.

    LAPACK's choice of that basis is rounding, and differs between processors; draws would too.
    O(n m²) for m tied values; nothing where there are none.
    """
    bounds = np.flatnonzero(-np.diff(values) > spread) + 1
    starts, stops = np.r_[0, bounds], np.r_[bounds, values.size]
    for tie in np.flatnonzero(stops - starts > 1):
        span = slice(starts[tie], stops[tie])
        vectors[:, span] = _settled(vectors[:, span])


def _settled(basis: FloatArray) -> FloatArray:
    """Return the basis whose first vector is longest at a row, the second at another, and so on.

    Vector c is the unit vector of what is left of the span that is largest at row i, where i is
    the first row with (almost) the largest part in that rest.
    """
    rest, out, m = basis.copy(), np.empty_like(basis), basis.shape[1]
    tell = Progress(f"the basis of {m:,} equal eigenvalues")
    for c in range(m):
        squares = np.einsum("ij,ij->i", rest, rest)
        x = rest[np.argmax(squares >= (1 - ALIKE) * squares.max())].copy()
        x[0] += np.copysign(np.linalg.norm(x), x[0])  # the reflection of x onto the first axis
        rest -= np.outer(rest @ x, 2 / (x @ x) * x)
        out[:, c] = rest[:, 0]
        rest = rest[:, 1:]
        tell(1 - (1 - (c + 1) / m) ** 2)  # later ones are shorter
    return out
