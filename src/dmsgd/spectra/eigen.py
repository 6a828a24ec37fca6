"""The symmetric eigenproblem, and which of its eigenvalues are to be believed."""

from __future__ import annotations

from scipy import linalg

from dmsgd.arrays import FloatArray

#: Eigenvalues below this fraction of the largest are too small for a squared matrix to resolve.
SQUARED_LIMIT = 1e-6

#: Eigenvalues up to this fraction of the largest are taken for zero, unless `tol` says otherwise.
DEFAULT_TOL = 1e-12


def eigh(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, largest first, and eigenvectors; the matrix is overwritten."""
    values, vectors = linalg.eigh(
        symmetric.T,  # LAPACK wants columns; the transpose of a symmetric matrix costs nothing
        driver="evr",
        overwrite_a=True,
        check_finite=False,
    )
    return values[::-1], vectors[:, ::-1]
