"""The exact eigendecomposition of a kernel, by the cheapest route that is accurate.

For L = F Fᵀ with an (n, d) factor F:

- diagonal: the columns of a sparse F do not overlap (strata, identity): nothing to diagonalise.
- dual:     d < n. FᵀF = U Λ Uᵀ is d x d, and V = F U Λ^(-1/2); L itself is never formed.
- primal:   d >= n. L is n x n and V comes from it directly.

Forming a product squares the condition number: eigenvalues far below the largest, and the
directions that belong to them, drown in rounding. Where there are any, that part of the spectrum is
taken from a singular value decomposition of the features in the subspace concerned, and the route
says so ("dual+svd", "primal+svd"). Kernels without a factor are formed and diagonalised ("primal").
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg, sparse

from dmsgd.arrays import FloatArray, Matrix, as_fraction
from dmsgd.kernels import Kernel, Linear
from dmsgd.memory import reserve
from dmsgd.spectra.eigen import DEFAULT_TOL, SQUARED_LIMIT, eigh
from dmsgd.spectra.spectrum import Spectrum, truncated
from dmsgd.spectra.streamed import of_rows
from dmsgd.streams.rows import Rows

#: Eigenvalues above this fraction of the largest are right to 1e-12 as they come from the Gram.
NORMED_LIMIT = 1e-3


def exact(kernel: Kernel, tol: float | None = None) -> Spectrum:
    """Return the spectrum of `kernel`, without its eigenvalues up to `tol` times the largest.

    The default tolerance is 1e-12, or n times the machine precision if that is larger and the
    kernel is not given by features. O(n d min(n, d)) for linear kernels, O(n³) and n² memory
    otherwise.

    >>> exact(Linear([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])).values
    array([4., 2.])
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"exact needs a Kernel, got {type(kernel).__name__}; for features use exact(Linear(X))"
        )
    if tol is not None:
        tol = as_fraction(tol, "tol")
    if isinstance(kernel, Linear) and isinstance(kernel.features, Rows):
        spectrum = of_rows(kernel.features, DEFAULT_TOL if tol is None else tol)
    elif isinstance(kernel, Linear):
        spectrum = of_features(kernel.features, DEFAULT_TOL if tol is None else tol)
    else:
        spectrum = _of_entries(kernel, tol)
    return replace(spectrum, kernel=repr(kernel), fingerprint=kernel.fingerprint())


def _of_entries(kernel: Kernel, tol: float | None) -> Spectrum:
    # The matrix, its eigenvectors, and these in the order that sampling wants.
    advice = "use pivoted_cholesky(kernel, rank) or nystrom(kernel, landmarks) instead of exact"
    reserve(3 * kernel.n**2, f"the full matrix of {kernel!r} with its eigenvectors", advice)
    everything = np.arange(kernel.n)
    values, vectors = eigh(kernel.block(everything, everything))
    if tol is None:
        tol = max(DEFAULT_TOL, kernel.n * np.finfo(float).eps)
    return truncated(values, vectors, "primal", tol)


def of_features(F: Matrix, tol: float, overwrite: bool = False) -> Spectrum:
    """Return the spectrum of F Fᵀ for a dense or CSR factor F, which may be overwritten."""
    if sparse.issparse(F) and np.diff(F.indptr).max() <= 1:
        return _diagonal(F, tol)
    wide = F.shape[1] >= F.shape[0]
    _reserve_for(F, wide)
    product = F @ F.T if wide else F.T @ F
    values, vectors = eigh(product.toarray() if sparse.issparse(product) else product)
    del product  # overwritten
    count = np.count_nonzero(values > min(tol, np.finfo(float).eps) * values[0])
    values, vectors = values[:count], vectors[:, :count]
    if wide:
        return _primal(F, values, vectors, tol)
    return _dual(F, values, vectors, tol, overwrite)


def _reserve_for(F: Matrix, wide: bool) -> None:
    n, d = F.shape
    advice = "reduce the number of features (PCA), or the number of items"
    if wide:
        reserve(3 * n**2, f"the {n} x {n} matrix F Fᵀ with its eigenvectors", advice)
    else:
        reserve(n * d + 3 * d**2, f"the eigenvectors of {n} items with {d} features", advice)


def _diagonal(F: Matrix, tol: float) -> Spectrum:
    squares = F.multiply(F).sum(axis=0)
    used = np.flatnonzero(squares > 0)
    V = F[:, used] @ sparse.diags_array(1 / np.sqrt(squares[used]))
    return truncated(squares[used], V.toarray(), "diagonal", tol)


def _dual(F: Matrix, values: FloatArray, U: FloatArray, tol: float, overwrite: bool) -> Spectrum:
    small = values < SQUARED_LIMIT * values.max()
    if overwrite and U.shape[0] == U.shape[1] and not small.any():
        V = _multiplied_in_place(F, U / np.sqrt(values))
    else:
        V = np.asarray(F @ (U / np.sqrt(values)))
    if values.min() < NORMED_LIMIT * values.max():
        squares = np.einsum("ij,ij->j", V, V)  # |F u|² knows the eigenvalue better than the Gram
        values = values * squares
        V /= np.sqrt(squares)
    if not small.any():
        return truncated(values, V, "dual", tol)
    well = V[:, ~small]
    B = np.asarray(F @ U[:, small])
    B -= well @ (well.T @ B)
    V[:, small], sigma, _ = linalg.svd(B, full_matrices=False, check_finite=False)
    values[small] = sigma**2
    return truncated(values, V, "dual+svd", tol)


def _multiplied_in_place(F: FloatArray, square: FloatArray) -> FloatArray:
    """Return F @ square in the memory of F."""
    step = max(1, 2**24 // F.shape[1])
    for first in range(0, F.shape[0], step):
        F[first : first + step] = F[first : first + step] @ square
    return F


def _primal(F: Matrix, values: FloatArray, V: FloatArray, tol: float) -> Spectrum:
    small = values < SQUARED_LIMIT * values.max()
    if not small.any():
        return truncated(values, V, "primal", tol)
    _, sigma, W = linalg.svd(np.asarray(F.T @ V[:, small]), full_matrices=False, check_finite=False)
    V[:, small] = V[:, small] @ W.T
    values[small] = sigma**2
    return truncated(values, V, "primal+svd", tol)
