"""b(θ): the inclusion probabilities of the k-DPP of a kernel tilted by θ, L_ij exp((θ_i + θ_j)/2).

The routes are those of `dmsgd.exact`, so that what is solved for is what will be drawn. Features in
memory have a shorter one: one pass over blocks of rows for the Gram matrix and one for the
probabilities, as long as the Gram matrix resolves all there is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np
from scipy import sparse

from dmsgd.features import scaled_rows
from dmsgd.inputs.arrays import FloatArray, Matrix
from dmsgd.spectra.eigen import eigh
from dmsgd.spectra.exact import of_features
from dmsgd.spectra.rounds import SQUARED_LIMIT, right_vectors
from dmsgd.spectra.spectrum import Spectrum
from dmsgd.spectra.streamed import of_rows
from dmsgd.spectra.symmetric import log_polynomial, selection
from dmsgd.spectra.vectors import weighed_squares
from dmsgd.streams.rows import Rows
from dmsgd.streams.transforms import ScaledRows

#: Numbers in a block of rows: large enough for fast products, small enough to stay in the cache.
BLOCK = 2**20

#: θ -> b(θ) and log Z(θ).
Marginals = Callable[[FloatArray], tuple[FloatArray, float]]


def of_spectrum(spectrum: Spectrum, k: int) -> tuple[FloatArray, float]:
    """Return b and log Z of the k-DPP of `spectrum`."""
    spectrum.refuse_beyond_rank(k)
    pi = selection(spectrum.values, k)
    return weighed_squares(spectrum.vectors, pi), log_polynomial(spectrum.values, k)


def streamed_marginals(rows: Rows, k: int) -> Marginals:
    """Return b(θ) for L = F Fᵀ with features F in blocks. Two passes over the data a call."""
    return lambda theta: of_spectrum(of_rows(rows.mapped(ScaledRows(np.exp(theta / 2)))), k)


@final
class FeatureMarginals:
    """b(θ) for L = F Fᵀ with no more features than items. O(n d² + d³) a call, O(d²) memory.

    Where the Gram matrix cannot resolve its small eigenvalues, a call takes the whole way of
    `dmsgd.exact`, with (n, d) memory.
    """

    def __init__(self, F: Matrix, k: int) -> None:
        self.F, self.k = F, k
        rows = max(1, BLOCK // F.shape[1])
        self._blocks = [slice(a, a + rows) for a in range(0, F.shape[0], rows)]

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return b(θ) and log Z(θ)."""
        x = np.exp(theta)
        values, U = eigh(self._gram(np.sqrt(x)))
        rank = int(np.count_nonzero(values > SQUARED_LIMIT * values[0]))
        if rank < self.k or (rank < values.size and rank < self._rank):
            return of_spectrum(of_features(scaled_rows(self.F, np.sqrt(x)), overwrite=True), self.k)
        values, U = values[:rank], U[:, :rank]
        # b_i = x_i Σ_n (f_i · u_n)² π_n / λ_n
        W = U * np.sqrt(selection(values, self.k) / values)
        b = np.empty(x.size)
        for rows in self._blocks:
            Z = np.asarray(self.F[rows] @ W)
            b[rows] = np.einsum("ij,ij->i", Z, Z)
        return b * x, log_polynomial(values, self.k)

    @cached_property
    def _rank(self) -> int:
        """Rank of F, which no tilt changes."""
        return int(right_vectors(self.F)[0].size)

    def _gram(self, root: FloatArray) -> FloatArray:
        total = np.zeros((self.F.shape[1],) * 2)
        for rows in self._blocks:
            Y = scaled_rows(self.F[rows], root[rows])
            product = Y.T @ Y
            total += product.toarray() if sparse.issparse(product) else product
        return total
