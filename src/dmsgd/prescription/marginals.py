"""b(θ): the inclusion probabilities of the k-DPP of a kernel tilted by θ, L_ij exp((θ_i + θ_j)/2).

One pass over the rows for the Gram matrix and one for the probabilities, as long as the Gram matrix
tells them; otherwise the route of `dmsgd.exact`, by which draws will be made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np

from dmsgd.errors import RankError
from dmsgd.features import Features
from dmsgd.features.mapped_rows import RowFactors
from dmsgd.inputs.arrays import FloatArray
from dmsgd.polynomials.symmetric import log_polynomial, ratios, selection
from dmsgd.spectra.eigen import eigh, noise
from dmsgd.spectra.exact import of_features
from dmsgd.spectra.rounds import SQUARED_LIMIT, right_vectors
from dmsgd.spectra.spectrum import Spectrum

#: θ -> b(θ) and log Z(θ).
Marginals = Callable[[FloatArray], tuple[FloatArray, float]]


def of_spectrum(spectrum: Spectrum, k: int) -> tuple[FloatArray, float]:
    """Return b and log Z of the k-DPP of `spectrum`."""
    spectrum.refuse_beyond_rank(k)
    pi = selection(spectrum.values, k)
    return spectrum.held.weighed_squares(pi), log_polynomial(spectrum.values, k)


@final
class FeatureMarginals:
    """b(θ) for L = F Fᵀ with no more features than items. O(n d² + d³) a call, O(d²) memory.

    For features in blocks a call is two passes over the data. Where rounding in the Gram matrix
    moves b by more than `error`, a call takes the whole way of `dmsgd.exact`.
    """

    def __init__(self, F: Features, k: int, error: float = 0.0) -> None:
        self.F, self.k, self.error = F, k, error

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return b(θ) and log Z(θ)."""
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.exp(theta)
            gram = self.F.gram(x)
        if not (np.isfinite(gram).all() and gram.any()):
            raise RankError(self.k, 0, "the tilt is beyond what numbers hold")
        values, U = eigh(gram)
        rank = self._told(values)
        if rank == 0:
            tilted = self.F.mapped(RowFactors(np.sqrt(x)))
            return of_spectrum(of_features(tilted, overwrite=True), self.k)
        values, U = values[:rank], U[:, :rank]
        # b_i = x_i Σ_n (f_i · u_n)² π_n / λ_n
        b = self.F.squares_of(U * np.sqrt(selection(values, self.k) / values))
        return b * x, log_polynomial(values, self.k)

    def _told(self, values: FloatArray) -> int:
        """Return how many eigenvalues of a Gram matrix tell b, 0 if they do not.

        Rounding moves λ_n by at most `noise` of the largest, and π_n by that over e_k / e_{k-1}.
        """
        moved = noise(values.size) * values[0]
        above = int(np.count_nonzero(values > moved))
        if above >= self.k and moved <= self.error * ratios(values[:above], self.k)[-1, self.k]:
            return above
        rank = int(np.count_nonzero(values > SQUARED_LIMIT * values[0]))
        return rank if rank >= self.k and (rank == values.size or rank == self._rank) else 0

    @cached_property
    def _rank(self) -> int:
        """Rank of F, which no tilt changes."""
        return int(right_vectors(self.F)[0].size)
