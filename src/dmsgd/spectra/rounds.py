"""Singular values over many decades, from products that square them.

AᵀA = U Λ Uᵀ has the squared singular values of A, but eigenvalues below 1e-6 of the largest drown
in rounding, and so do the directions that belong to them. Each round takes what the rounds before
could not resolve, the span of the columns S of U, and squares it alone, so that three more decades
of singular values come out. Before that S is turned so that A S is orthogonal to what is resolved:
with W the resolved columns, S <- S - W Λ_W^-1 Wᵀ AᵀA S, whose last term rounding in AᵀA has hidden.
It ends where all is resolved, or where rounding in A S itself is all that is left.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dmsgd.inputs.arrays import FloatArray, Matrix
from dmsgd.spectra.eigen import eigh, noise, settle_ties

#: Eigenvalues below this fraction of the largest are too small for a squared matrix to resolve.
SQUARED_LIMIT = 1e-6


def right_vectors(A: Matrix) -> tuple[FloatArray, FloatArray]:
    """Return the squared singular values of A that are above rounding, and their right vectors.

    A is dense or CSR, with no more columns than rows to speak of: O(rows·columns² + columns³) a
    round, of which there is one unless the condition of A is above 1000.
    """
    values, U = eigh(_gram(A))
    size = U.shape[1]
    least = noise(size) ** 2 * values[0]
    done = 0
    while True:
        top = values[done]
        well = done + int(np.count_nonzero(values[done:] > max(SQUARED_LIMIT * top, least)))
        settle_ties(values[done:well], U[:, done:well], noise(size) * top)
        if well in (done, size):
            return values[:well], U[:, :well]
        done = well
        W, S = U[:, :done], U[:, done:]
        hidden = W.T @ (A.T @ (A @ S)) / values[:done, None]
        B = np.asarray(A @ (S - W @ hidden))
        if np.einsum("ij,ij->", B, B) <= least:
            return values[:done], W
        values[done:], R = eigh(B.T @ B)
        U[:, done:] = S @ R


def _gram(A: Matrix) -> FloatArray:
    product = A.T @ A
    return np.asarray(product.toarray() if sparse.issparse(product) else product)
