"""Eigenvectors of very many items: never made as a whole."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol, final

import numpy as np

from dmsgd.features.interface import Features
from dmsgd.inputs.arrays import FloatArray, IntArray, as_array
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import format_bytes
from dmsgd.polynomials import eigenvector_inclusion
from dmsgd.samplers.protocol import PreparedSampler, RowSource
from dmsgd.samplers.rejection import dpp_sampler, kdpp_sampler
from dmsgd.spectra.vectors import Vectors

log = logging.getLogger("dmsgd")

#: Eigenvectors of sparse features are kept in memory up to so many numbers, a gigabyte: a draw from
#: them is ten times faster.
KEPT = 2**27


class Maker(Protocol):
    """Computes rows of V = F B in compiled loops: see `samplers/computed_rows.py`."""

    def block_sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of V² before row blocks, (rank, row blocks + 1), and V² weights."""

    def with_sums(self, sums: FloatArray) -> RowSource:
        """Return the same, ready for draws."""


@final
class VectorsOnDemand(Vectors):
    """V = F B for features F in memory: rows are made when they are asked for.

    basis: the columns of B = U Λ^(-1/2), shape (rank, d).
    maker: what makes rows, of a basis.
    """

    ndim = 2

    def __init__(
        self, features: Features, basis: FloatArray, maker: Callable[[FloatArray], Maker]
    ) -> None:
        self.features, self.basis, self.maker = features, basis, maker
        self.shape = (features.n, int(basis.shape[0]))
        self._made: Maker | None = None
        self._sums: FloatArray | None = None
        self._weighed: tuple[bytes, FloatArray] | None = None

    def rows(self, items: IntArray) -> FloatArray:
        items = np.asarray(items)
        found = as_array(self.features.take(items.ravel().astype(np.int64)) @ self.basis.T)
        return found.reshape(*items.shape, self.shape[1])

    def columns(self, J: Any) -> FloatArray:
        return self.features.times(self.basis[J].T)

    def chosen(self, order: IntArray) -> VectorsOnDemand:
        if np.array_equal(order, np.arange(self.shape[1])):
            return self
        return VectorsOnDemand(self.features, self.basis[order], self.maker)

    def times(self, x: FloatArray) -> FloatArray:
        return self.features.times((x @ self.basis)[:, None])[:, 0]

    def turned(self, U: FloatArray, zero: IntArray) -> VectorsOnDemand:
        return VectorsOnDemand(self.features, np.ascontiguousarray(U.T @ self.basis), self.maker)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        advice = "sample, inclusion, joint and log_prob of a k-DPP do not need them"
        reserve(self.shape[0] * self.shape[1], f"all eigenvectors of {self.features!r}", advice)
        return self.features.times(self.basis.T).astype(dtype or np.float64)

    def weighted_squares(self, pi: FloatArray) -> FloatArray:
        """Return Σ_n V_in² π_n, shape (n,); a product F B, unless it was the last to be known."""
        if self._weighed is None or self._weighed[0] != pi.tobytes():
            sums, weighed = self._maker().block_sums(pi)
            if self._sums is None:
                self._sums = sums
            self._weighed = pi.tobytes(), weighed
        return self._weighed[1]

    def _maker(self) -> Maker:
        if self._made is None:
            self._made = self.maker(self.basis)
        return self._made

    def _tables(self, pi: FloatArray) -> RowSource:
        if self._sums is None:
            self.weighted_squares(pi)
        assert self._sums is not None
        return self._maker().with_sums(self._sums)

    def rejection(self, values: FloatArray, k: int) -> PreparedSampler:
        (n, rank), made = self.shape, k * (1 / np.arange(1, k + 1)).sum()
        log.info(
            "no eigenvectors of %r are kept, which would take %s; a draw of %d makes about %.0f of "
            "their %s rows again, at %d columns",
            self.features, format_bytes(8 * n * rank), k, made, f"{n:,}", k,
        )  # fmt: skip
        return kdpp_sampler(self._tables(eigenvector_inclusion(values, k)), values, k)

    def rejection_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        return dpp_sampler(self._tables(probabilities), probabilities)

    def __repr__(self) -> str:
        return f"VectorsOnDemand({self.features!r}, rank {self.shape[1]})"
