"""Eigenvectors of sparse features with many items: never made as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.features.interface import InMemory, as_array
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import reserve
from dmsgd.polynomials.symmetric import selection
from dmsgd.samplers.protocol import Draw
from dmsgd.samplers.rejection import of_any_size, of_tables
from dmsgd.samplers.words import TablesOfWords, Words
from dmsgd.spectra.vectors import Vectors

#: V is kept in memory up to so many numbers, a gigabyte: a draw from it is ten times faster.
KEPT = 2**27


@final
class SparseVectors(Vectors):
    """V = F B for sparse features F in memory: rows are made when they are asked for.

    basis: the columns of B = U Λ^(-1/2), shape (rank, d).
    """

    ndim = 2

    def __init__(self, features: InMemory, basis: FloatArray) -> None:
        self.features, self.basis = features, basis
        self.shape = (features.n, int(basis.shape[0]))
        self._sums: FloatArray | None = None
        self._weighed: tuple[bytes, FloatArray] | None = None

    @cached_property
    def _words(self) -> Words:
        return Words.of(self.features.matrix, self.basis)

    def rows(self, items: IntArray) -> FloatArray:
        items = np.asarray(items)
        found = as_array(self.features.take(items.ravel().astype(np.int64)) @ self.basis.T)
        return found.reshape(*items.shape, self.shape[1])

    def columns(self, J: Any) -> FloatArray:
        return self.features.times(self.basis[J].T)

    def chosen(self, order: IntArray) -> SparseVectors:
        if np.array_equal(order, np.arange(self.shape[1])):
            return self
        return SparseVectors(self.features, self.basis[order])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        advice = "sample, inclusion, joint and log_prob of a k-DPP do not need them"
        reserve(self.shape[0] * self.shape[1], f"all eigenvectors of {self.features!r}", advice)
        return self.features.times(self.basis.T).astype(dtype or np.float64)

    def weighed_squares(self, pi: FloatArray) -> FloatArray:
        """Return Σ_n V_in² π_n, shape (n,); a product F B, unless it was the last to be known."""
        if self._weighed is None or self._weighed[0] != pi.tobytes():
            sums, weighed = self._words.survey(pi)
            if self._sums is None:
                self._sums = sums
            self._weighed = pi.tobytes(), weighed
        return self._weighed[1]

    def _tables(self, pi: FloatArray) -> TablesOfWords:
        if self._sums is None:
            self.weighed_squares(pi)
        assert self._sums is not None
        return TablesOfWords(self._words, self._sums, np.ascontiguousarray(self._sums[:, -1]))

    def rejection(self, values: FloatArray, k: int) -> Draw:
        return of_tables(self._tables(selection(values, k)), values, k)

    def rejection_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        return of_any_size(self._tables(probabilities), probabilities)

    def __repr__(self) -> str:
        return f"SparseVectors({self.features!r}, rank {self.shape[1]})"
