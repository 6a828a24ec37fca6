"""The eigenvectors that a spectrum holds: in memory, or made again from features when needed.

Whoever works with eigenvectors asks for rows, columns, weighed squares or draws, and never for the
kind. Another kind is another class here and a line in `as_vectors`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np

from dmsgd.features.interface import InPasses
from dmsgd.inputs.arrays import FloatArray, IntArray, as_array
from dmsgd.inputs.memory import reserve
from dmsgd.polynomials import weighted_squares
from dmsgd.samplers.blocks import block_sampler
from dmsgd.samplers.protocol import PreparedSampler
from dmsgd.samplers.rejection import dense_tables, dpp_sampler, kdpp_sampler


class Vectors(ABC):
    """V, shape (n, rank), with orthonormal columns."""

    shape: tuple[int, int]
    #: Whether V itself is in memory.
    resident = False

    @abstractmethod
    def rows(self, items: IntArray) -> FloatArray:
        """Return V[items], shape (*items.shape, rank)."""

    @abstractmethod
    def columns(self, J: Any) -> FloatArray:
        """Return V[:, J] in memory, shape (n, len(J))."""

    @abstractmethod
    def chosen(self, order: IntArray) -> Any:
        """Return what a spectrum of these columns alone holds, in this order."""

    @abstractmethod
    def times(self, x: FloatArray) -> FloatArray:
        """Return V x, shape (n,)."""

    @abstractmethod
    def turned(self, U: FloatArray, zero: IntArray) -> Any:
        """Return what a spectrum of V U holds, U having orthonormal columns and V_zero U = 0."""

    @abstractmethod
    def weighted_squares(self, pi: FloatArray) -> FloatArray:
        """Return Σ_n V_in² π_n for every item, shape (n,)."""

    @abstractmethod
    def rejection(self, values: FloatArray, k: int) -> PreparedSampler:
        """Return what draws from the k-DPP with these eigenvalues, by the default sampler."""

    @abstractmethod
    def rejection_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        """Return (key, t) -> items of draw t of the DPP that chooses eigenvectors so."""


@final
class ResidentVectors(Vectors):
    """An array."""

    resident = True

    def __init__(self, array: FloatArray) -> None:
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))

    def rows(self, items: IntArray) -> FloatArray:
        return self.array[items]

    def columns(self, J: Any) -> FloatArray:
        return self.array[:, J]

    def chosen(self, order: IntArray) -> FloatArray:
        if np.array_equal(order, np.arange(order.size)):  # sorted already: cut without a copy
            return np.ascontiguousarray(self.array[:, : order.size])
        return np.ascontiguousarray(self.array[:, order])

    def times(self, x: FloatArray) -> FloatArray:
        return self.array @ x

    def turned(self, U: FloatArray, zero: IntArray) -> FloatArray:
        V = self.array @ U
        V[zero] = 0.0  # but for rounding it is
        return V

    def weighted_squares(self, pi: FloatArray) -> FloatArray:
        return weighted_squares(self.array, pi)

    def rejection(self, values: FloatArray, k: int) -> PreparedSampler:
        return kdpp_sampler(dense_tables(self.array), values, k)

    def rejection_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        return dpp_sampler(dense_tables(self.array), probabilities)


@final
class VectorsInBlocks(Vectors):
    """V = F basis for features F in blocks; as large as F, so it is never kept.

    basis: U Λ^(-1/2), shape (d, rank); column by column where blocks are sparse.
    precise: whether eigenvalues are so small that Gram matrices do not tell the masses of blocks.
    """

    ndim = 2

    def __init__(self, features: InPasses, basis: FloatArray, precise: bool) -> None:
        self.features, self.basis, self.precise = features, basis, precise
        self.shape = (features.n, int(basis.shape[1]))
        self._masses = features.block_masses(basis, precise)
        self._weighed: tuple[bytes, FloatArray] | None = None

    def rows(self, items: IntArray) -> FloatArray:
        items = np.asarray(items)
        found = as_array(self.features.take(items.ravel().astype(np.int64)) @ self.basis)
        return found.reshape(*items.shape, self.shape[1])

    def columns(self, J: Any) -> FloatArray:
        return self.features.times(self.basis[:, J])

    def chosen(self, order: IntArray) -> VectorsInBlocks:
        every = np.array_equal(order, np.arange(self.shape[1]))
        basis = self.basis if every else self.basis[:, order]
        laid_out = np.asfortranarray if self.features.sparse_rows else np.ascontiguousarray
        return VectorsInBlocks(self.features, laid_out(basis), self.precise)

    def times(self, x: FloatArray) -> FloatArray:
        return self.features.times((self.basis @ x)[:, None])[:, 0]

    def turned(self, U: FloatArray, zero: IntArray) -> VectorsInBlocks:
        laid_out = np.asfortranarray if self.features.sparse_rows else np.ascontiguousarray
        return VectorsInBlocks(self.features, laid_out(self.basis @ U), self.precise)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        advice = (
            "they are read in blocks for sample, inclusion, joint, log_prob and presample of a "
            "k-DPP; use these, or a part of the data"
        )
        reserve(self.shape[0] * self.shape[1], f"all eigenvectors of {self.features!r}", advice)
        return self.features.times(self.basis).astype(dtype or np.float64)

    def masses(self, pi: FloatArray) -> FloatArray:
        """Return Σ_{i in block} V_in², shape (blocks, rank); a pass, unless they are known."""
        if self._masses is None:
            self._survey(pi)
        assert self._masses is not None
        return self._masses

    def weighted_squares(self, pi: FloatArray) -> FloatArray:
        """Return Σ_n V_in² π_n, shape (n,); a pass, unless it was the last to be known."""
        if not self.knows(pi):
            self._survey(pi)
        assert self._weighed is not None
        return self._weighed[1]

    def knows(self, pi: FloatArray) -> bool:
        """Return whether `weighted_squares(pi)` needs no pass."""
        return self._weighed is not None and self._weighed[0] == pi.tobytes()

    def remember(self, pi: FloatArray, weighed: FloatArray) -> None:
        """Keep Σ_n V_in² π_n, which a pass for something else has found."""
        self._weighed = pi.tobytes(), weighed

    def _survey(self, pi: FloatArray) -> None:
        masses, weighed = self.features.survey(self.basis, pi)
        self._masses = masses
        self.remember(pi, weighed)

    def rejection(self, values: FloatArray, k: int) -> PreparedSampler:
        return block_sampler(self, values, k)

    def rejection_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        return dpp_sampler(dense_tables(np.asarray(self)), probabilities)

    def __repr__(self) -> str:
        return f"VectorsInBlocks({self.features!r}, rank {self.shape[1]})"


def as_vectors(vectors: Any) -> Vectors:
    """Return what a spectrum holds, as `Vectors`."""
    return vectors if isinstance(vectors, Vectors) else ResidentVectors(vectors)
