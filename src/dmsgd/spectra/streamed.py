"""The spectrum of L = F Fᵀ for features that are read in blocks.

FᵀF = U Λ Uᵀ is a sum over blocks, and d x d. The eigenvectors V = F U Λ^(-1/2) are as large as F,
so they are not kept: each block makes its own again whenever it is read (`StreamedVectors`).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import linalg

from dmsgd.fingerprints import hash_of_rows, row_hashes
from dmsgd.inputs.arrays import FloatArray, refuse_vanishing
from dmsgd.inputs.memory import reserve
from dmsgd.spectra.eigen import eigh, noise, settle_ties
from dmsgd.spectra.rounds import SQUARED_LIMIT
from dmsgd.spectra.spectrum import Rounding, Spectrum
from dmsgd.spectra.vectors import StreamedVectors
from dmsgd.streams.rows import Rows

#: The Gram matrices of single blocks are kept if they take no more than this: they tell the
#: blocks' masses (to 1e-9, eigenvalues being above SQUARED_LIMIT), which otherwise take a pass.
KEPT_BYTES = 2**26


def of_rows(rows: Rows, tol: float = 0.0) -> Spectrum:
    """Return the spectrum of F Fᵀ for features F in blocks. One pass, which also finds F's hash.

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
    keep = 8 * d**2 * (rows.bounds.size - 1) <= KEPT_BYTES
    gram, others = rows.reduce(_gram_kept if keep else _gram, np.add, "gram")
    if not gram.any():
        raise ValueError("all features are zero, so no batch has a positive determinant")
    refuse_vanishing(float(np.trace(gram)), "the features")
    values, U = eigh(gram.copy())  # overwritten, and the only block's part is the whole
    route, parts, measured = "dual", [part for _, part in others] if keep else [], values
    if values[-1] < SQUARED_LIMIT * values[0]:
        R, _ = rows.reduce(_triangle, _stacked, "tsqr")
        _, sigma, right = linalg.svd(R, check_finite=False)
        values, U, route, parts, measured = sigma**2, right.T, "dual+tsqr", [], sigma
    least = noise(d) ** 2
    found = int(np.count_nonzero(values > least * values[0]))
    settle_ties(measured[:found], U[:, :found], noise(d) * measured[0])
    rank = int(np.count_nonzero(values[:found] > tol * values[0]))
    basis = np.ascontiguousarray(U[:, :rank] / np.sqrt(values[:rank]))
    masses = np.array([np.einsum("in,in->n", basis, G @ basis) for G in parts]) if parts else None
    vectors = cast(FloatArray, StreamedVectors(rows, basis, masses))
    rows.known = hash_of_rows((n, d), (hashes for hashes, _ in others))
    return Spectrum(
        np.ascontiguousarray(values[:rank]), vectors, route=route, tol=tol,
        trace_error=float(values[rank:found].sum() / values[:found].sum()),
        rounding=Rounding(0.5, d - found, least),
    )  # fmt: skip


def _gram(block: FloatArray, shared: None, argument: Any) -> tuple[FloatArray, Any]:
    """Return a block's part of FᵀF, and the hashes of its rows."""
    return block.T @ block, (row_hashes(block), None)


def _gram_kept(block: FloatArray, shared: None, argument: Any) -> tuple[FloatArray, Any]:
    """Return the same, with that part once more, to be kept."""
    part, (hashes, _) = _gram(block, shared, argument)
    return part, (hashes, part)


def _triangle(block: FloatArray, shared: None, argument: Any) -> tuple[FloatArray, None]:
    """Return R of a block's QR decomposition, shape (at most d, d)."""
    if len(block) == 0:
        return block, None
    return np.asarray(linalg.qr(block, mode="r", check_finite=False)[0][: block.shape[1]]), None


def _stacked(upper: FloatArray, lower: FloatArray) -> FloatArray:
    return _triangle(np.vstack([upper, lower]), None, None)[0]
