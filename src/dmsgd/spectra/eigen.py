"""The symmetric eigenproblem, and what of it is to be believed.

Rounding disturbs every eigenvalue of a matrix by about eps times the largest. What is smaller than
`noise` times the largest cannot be told from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.progress import EIGH, run_interruptible

EPS = float(np.finfo(float).eps)


def noise(size: int) -> float:
    """Return how far rounding moves an eigenvalue or singular value, as a share of the largest.

    A bound for matrices with `size` rows or columns, whichever are fewer: spurious values of
    matrices of deficient rank were 0.2 to 10 eps, for sizes from 8 to 4,000.
    """
    return 4 * EPS * float(np.sqrt(size))


def eigh(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, largest first, and eigenvectors; the matrix is overwritten.

    By divide and conquer, in five times the memory of the matrix. The signs are turned so that
    vectors come in order: products copy reversed columns.
    """
    np.negative(symmetric, out=symmetric)
    values, vectors = _interruptible(np.linalg.eigh, symmetric)
    return -values, vectors


def eigenvalues(symmetric: FloatArray) -> FloatArray:
    """Return the eigenvalues that rounding can tell from zero."""
    values = _interruptible(np.linalg.eigvalsh, symmetric)
    return np.asarray(values[values > noise(values.size) * values[-1]])


def _interruptible(solve: Callable[[FloatArray], Any], symmetric: FloatArray) -> Any:
    """Return solve(symmetric); np.linalg releases the GIL, which scipy.linalg does not."""
    n = len(symmetric)
    what = f"the eigendecomposition of {n:,} rows and columns"
    return run_interruptible(lambda: solve(symmetric), EIGH * n**3, what)
