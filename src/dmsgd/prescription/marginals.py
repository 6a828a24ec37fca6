"""b(θ): the inclusion probabilities of the k-DPP of a kernel tilted by θ, L_ij exp((θ_i + θ_j)/2).

The routes are those of `dmsgd.exact`: from features with fewer columns than rows, in one pass over
blocks of rows for the Gram matrix and one for the probabilities, whether they are in memory or are
read in blocks; or from the full matrix.
"""

from __future__ import annotations

from typing import final

import numpy as np
from scipy import sparse

from dmsgd.arrays import FloatArray, Matrix
from dmsgd.errors import RankError
from dmsgd.spectra.eigen import DEFAULT_TOL, SQUARED_LIMIT, eigh
from dmsgd.spectra.exact import of_features
from dmsgd.spectra.streamed import of_rows
from dmsgd.spectra.vectors import weighed_squares
from dmsgd.streams.rows import Rows
from dmsgd.streams.transforms import ScaledRows
from dmsgd.symmetric import log_polynomial, selection

#: Numbers in a block of rows: large enough for fast products, small enough to stay in the cache.
BLOCK = 2**20


def scaled_rows(F: Matrix, factors: FloatArray) -> Matrix:
    """Return F with row i times factors[i]; dense stays dense and sparse stays sparse."""
    if sparse.issparse(F):
        return sparse.csr_array(sparse.diags_array(factors) @ F)
    return F * factors[:, None]


@final
class FeatureMarginals:
    """b(θ) for L = F Fᵀ with fewer features than items. O(n d² + d³) a call, O(d²) memory.

    delicate: whether the last call met eigenvalues that a Gram matrix cannot resolve.
    """

    def __init__(self, F: Matrix, k: int) -> None:
        self.F, self.k = F, k
        self.delicate = False
        rows = max(1, BLOCK // F.shape[1])
        self._blocks = [slice(a, a + rows) for a in range(0, F.shape[0], rows)]

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return b(θ) and log Z(θ)."""
        x = np.exp(theta)
        values, U = eigh(self._gram(np.sqrt(x)))
        values, U = _kept(values, U, self.k)
        self.delicate = bool(values[-1] < SQUARED_LIMIT * values[0])
        # b_i = x_i Σ_n (f_i · u_n)² π_n / λ_n
        W = U * np.sqrt(selection(values, self.k) / values)
        b = np.empty(x.size)
        for rows in self._blocks:
            Z = np.asarray(self.F[rows] @ W)
            b[rows] = np.einsum("ij,ij->i", Z, Z)
        return b * x, log_polynomial(values, self.k)

    def _gram(self, root: FloatArray) -> FloatArray:
        total = np.zeros((self.F.shape[1],) * 2)
        for rows in self._blocks:
            Y = scaled_rows(self.F[rows], root[rows])
            product = Y.T @ Y
            total += product.toarray() if sparse.issparse(product) else product
        return total


@final
class StreamedMarginals:
    """b(θ) for L = F Fᵀ with features F in blocks. Two passes over the data a call."""

    delicate = False

    def __init__(self, rows: Rows, k: int) -> None:
        self.rows, self.k = rows, k

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return b(θ) and log Z(θ)."""
        spectrum = of_rows(self.rows.mapped(ScaledRows(np.exp(theta / 2))))
        if spectrum.rank < self.k:
            raise RankError(self.k, spectrum.rank)
        pi = selection(spectrum.values, self.k)
        return weighed_squares(spectrum.vectors, pi), log_polynomial(spectrum.values, self.k)


@final
class MatrixMarginals:
    """b(θ) for a full matrix L. O(n³) a call."""

    delicate = False

    def __init__(self, L: FloatArray, k: int) -> None:
        self.L, self.k = L, k

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return b(θ) and log Z(θ)."""
        root = np.exp(theta / 2)
        tilted = self.L * root[:, None]
        tilted *= root
        values, V = _kept(*eigh(tilted), self.k)
        pi = selection(values, self.k)
        return np.einsum("in,in,n->i", V, V, pi, optimize=False), log_polynomial(values, self.k)


@final
class RefinedMarginals:
    """b(θ) for L = F Fᵀ by the very route that `dmsgd.exact` takes, small eigenvalues and all."""

    def __init__(self, F: Matrix, k: int) -> None:
        self.F, self.k = F, k

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return b(θ) and log Z(θ)."""
        spectrum = of_features(scaled_rows(self.F, np.exp(theta / 2)), DEFAULT_TOL)
        if spectrum.rank < self.k:
            raise RankError(self.k, spectrum.rank)
        V, pi = spectrum.vectors, selection(spectrum.values, self.k)
        b = np.einsum("in,in,n->i", V, V, pi, optimize=False)
        return b, log_polynomial(spectrum.values, self.k)


def _kept(values: FloatArray, vectors: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Return the eigenpairs above the tolerance, of which there must be k."""
    rank = int(np.count_nonzero(values > DEFAULT_TOL * values[0]))
    if rank < k:
        raise RankError(k, rank)
    return values[:rank], vectors[:, :rank]
