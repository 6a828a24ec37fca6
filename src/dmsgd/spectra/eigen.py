"""The symmetric eigenproblem, what of it is to be believed, and one basis where it leaves a choice.

Rounding disturbs every eigenvalue of a matrix by about eps times the largest. What is smaller than
`noise` times the largest cannot be told from zero.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dmsgd.inputs.arrays import FloatArray

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
    values, vectors = linalg.eigh(
        _by_columns(symmetric), driver=driver, overwrite_a=True, check_finite=False
    )
    return -values, vectors


def eigenvalues(symmetric: FloatArray) -> FloatArray:
    """Return the eigenvalues that rounding can tell from zero; the matrix is overwritten."""
    values = linalg.eigh(
        _by_columns(symmetric), eigvals_only=True, overwrite_a=True, check_finite=False
    )
    return np.asarray(values[values > noise(values.size) * values[-1]])


def _by_columns(symmetric: FloatArray) -> FloatArray:
    """Return the matrix as LAPACK wants it; the transpose of a symmetric one costs nothing."""
    return symmetric if symmetric.flags.f_contiguous else symmetric.T


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
    rest, out = basis.copy(), np.empty_like(basis)
    for c in range(basis.shape[1]):
        squares = np.einsum("ij,ij->i", rest, rest)
        x = rest[np.argmax(squares >= (1 - ALIKE) * squares.max())].copy()
        x[0] += np.copysign(np.linalg.norm(x), x[0])  # the reflection of x onto the first axis
        rest -= np.outer(rest @ x, 2 / (x @ x) * x)
        out[:, c] = rest[:, 0]
        rest = rest[:, 1:]
    return out
