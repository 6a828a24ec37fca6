"""The spectrum of L = F Fᵀ for features that are read in blocks.

FᵀF = U Λ Uᵀ is a sum over blocks, and d x d. The eigenvectors V = F U Λ^(-1/2) are as large as F,
so they are not kept: each block makes its own again whenever it is read (`StreamedVectors`).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import linalg

from dmsgd.arrays import FloatArray
from dmsgd.fingerprints import hash_of_rows, row_hashes
from dmsgd.memory import reserve
from dmsgd.spectra.exact import DEFAULT_TOL, SQUARED_LIMIT, eigh
from dmsgd.spectra.spectrum import Spectrum
from dmsgd.streams.rows import Rows
from dmsgd.streams.vectors import StreamedVectors


def of_rows(rows: Rows, tol: float = DEFAULT_TOL) -> tuple[Spectrum, str]:
    """Return the spectrum of F Fᵀ for features F in blocks, and the fingerprint of F. One pass.

    If the Gram matrix cannot resolve its small eigenvalues, a second pass takes QR decompositions
    of the blocks and of their stacked triangles instead, which squares nothing ("dual+tsqr").
    """
    n, d = rows.shape
    if d > n:
        raise ValueError(
            f"features in blocks need more items than features, got shape {rows.shape}; load them "
            f"into memory, they are small"
        )
    reserve(4 * d**2, f"the Gram matrix of {d} features", "reduce their number (PCA)")
    gram, hashes = rows.reduce(_gram, np.add, "gram")
    if not gram.any():
        raise ValueError("all features are zero, so no batch has a positive determinant")
    values, U = eigh(gram)
    route = "dual"
    if values[-1] < SQUARED_LIMIT * values[0]:
        R, _ = rows.reduce(_triangle, _stacked, "tsqr")
        _, sigma, right = linalg.svd(R, check_finite=False)
        values, U, route = sigma**2, right.T, "dual+tsqr"
    kept = values > tol * values[0]
    basis = np.ascontiguousarray(U[:, kept] / np.sqrt(values[kept]))
    vectors = cast(FloatArray, StreamedVectors(rows, basis))
    spectrum = Spectrum(np.ascontiguousarray(values[kept]), vectors, route, tol)
    return spectrum, hash_of_rows((n, d), hashes)


def _gram(block: FloatArray, shared: None, argument: Any) -> tuple[FloatArray, Any]:
    """Return a block's part of FᵀF, and the hashes of its rows."""
    return block.T @ block, row_hashes(block)


def _triangle(block: FloatArray, shared: None, argument: Any) -> tuple[FloatArray, None]:
    """Return R of a block's QR decomposition, shape (at most d, d)."""
    if len(block) == 0:
        return block, None
    return np.asarray(linalg.qr(block, mode="r", check_finite=False)[0][: block.shape[1]]), None


def _stacked(upper: FloatArray, lower: FloatArray) -> FloatArray:
    return _triangle(np.vstack([upper, lower]), None, None)[0]
