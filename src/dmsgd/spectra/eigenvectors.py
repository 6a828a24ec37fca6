"""Eigenvectors of a kernel: stored in memory, or computed from features when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray, as_array, on_host
from dmsgd.polynomials import eigenvector_inclusion, weighted_squares
from dmsgd.runtime.memory import reserve
from dmsgd.samplers.blocks import block_sampler
from dmsgd.samplers.contract import PreparedSampler
from dmsgd.samplers.first_use import with_plain_draws
from dmsgd.samplers.rejection_sampling import DenseTables, dpp_sampler, kdpp_sampler
from dmsgd.spectra.decompose import like
from dmsgd.spectra.rounding import GRAM_LIMIT


class Eigenvectors:
    """V, shape (n, rank), with orthonormal columns: here an array; other kinds derive from it.

    stored: whether V itself is in memory.
    """

    shape: tuple[int, int]
    stored = True
    ndim = 2

    def __init__(self, V: Any) -> None:
        self.V = V
        self.shape = (int(V.shape[0]), int(V.shape[1]))

    def rows(self, items: IntArray) -> FloatArray:
        """Return V[items], shape (*items.shape, rank)."""
        return on_host(self.V[like(self.V, items)])

    def columns(self, J: IntArray) -> FloatArray:
        """Return V[:, J] in memory, shape (n, len(J))."""
        return on_host(self.V[:, like(self.V, J)])

    def select(self, order: IntArray) -> Any:
        """Return the `vectors` of a spectrum with these columns alone, in this order."""
        if np.array_equal(order, np.arange(order.size)):  # sorted already: cut without a copy
            return np.ascontiguousarray(self.V[:, : order.size])
        return np.ascontiguousarray(self.V[:, order])

    def times(self, x: FloatArray) -> FloatArray:
        """Return V x, shape (n,)."""
        return on_host(self.V @ like(self.V, x))

    def rotate(self, U: FloatArray, zero: IntArray) -> Any:
        """Return the `vectors` V U of a spectrum; U has orthonormal columns and V[zero] U = 0."""
        V = self.V @ like(self.V, U)
        V[like(V, zero)] = 0.0  # exact zeros; the product leaves rounding noise here
        return V

    def factor(self, values: FloatArray, complete: bool) -> Any:
        """Return A with A Aᵀ = V diag(values) Vᵀ: an array, a tensor, or features.

        complete: whether only what rounding hides was left out of V.
        """
        return self.V * like(self.V, np.sqrt(values))

    def weighted_squares(self, pi: FloatArray) -> FloatArray:
        """Return Σ_n V_in² π_n for every item, shape (n,)."""
        return weighted_squares(self.V, pi)

    def sampler(self, values: FloatArray, k: int) -> PreparedSampler:
        """Return the default sampler of the k-DPP with these eigenvalues."""
        return with_plain_draws(
            self.V, values, k, lambda: kdpp_sampler(DenseTables(self.V), values, k)
        )

    def sampler_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        """Return (key, t) -> items of batch t of the DPP with these eigenvectors' probabilities."""
        return dpp_sampler(DenseTables(self.V), probabilities)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]:,} items, rank {self.shape[1]})"


@final
class Projected(Eigenvectors):
    """V = F basis for `dmsgd.features.Features` F; at least as large as F, so it is never stored.

    basis:   U Λ^(-1/2), shape (d, rank).
    precise: whether eigenvalues are so small that Gram matrices do not determine column masses.
    rotated: whether these are not the eigenvectors of F Fᵀ itself.
    """

    stored = False

    def __init__(
        self, features: Any, basis: FloatArray, precise: bool, rotated: bool = False
    ) -> None:
        self.features, self.precise, self.rotated = features, precise, rotated
        self.basis: FloatArray = np.asarray(basis, order="F" if features.sparse_rows else "C")
        self.shape = (features.n, int(basis.shape[1]))
        self._masses: FloatArray | None = None
        self._weighted: tuple[bytes, FloatArray] = b"", np.empty(0)

    @classmethod
    def of(cls, features: Any, values: FloatArray, U: FloatArray) -> Projected:
        """Return the eigenvectors of F Fᵀ for the eigenpairs of FᵀF."""
        return cls(features, U / np.sqrt(values), bool(values.min() < GRAM_LIMIT * values.max()))

    def rows(self, items: IntArray) -> FloatArray:
        items = np.asarray(items)
        found = as_array(self.features.take(items.ravel().astype(np.int64)) @ self.basis)
        return found.reshape(*items.shape, self.shape[1])

    def columns(self, J: IntArray) -> FloatArray:
        return np.asarray(self.features.times(self.basis[:, J]))

    def select(self, order: IntArray) -> Projected:
        if np.array_equal(order, np.arange(self.shape[1])):
            return self
        return Projected(self.features, self.basis[:, order], self.precise, self.rotated)

    def times(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.features.times((self.basis @ x)[:, None])[:, 0])

    def rotate(self, U: FloatArray, zero: IntArray) -> Projected:
        return Projected(self.features, self.basis @ U, self.precise, rotated=True)

    def factor(self, values: FloatArray, complete: bool) -> Any:
        if complete and not self.rotated:
            return self.features
        return np.asarray(self) * np.sqrt(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        advice = "sample, inclusion, joint, log_prob and presample of a k-DPP do not need them"
        reserve(self.shape[0] * self.shape[1], f"all eigenvectors of {self.features!r}", advice)
        return np.asarray(self.features.times(self.basis)).astype(dtype or np.float64)

    def masses(self, pi: FloatArray) -> FloatArray:
        """Return the sums of V² over row blocks; a pass over F, which finds b too, unless known."""
        if self._masses is None and not self.precise:
            self._masses = self.features.gram_masses(self.basis)
        if self._masses is None:
            self.weighted_squares(pi)
        assert self._masses is not None
        return self._masses

    def weighted_squares(self, pi: FloatArray) -> FloatArray:
        """Return Σ_n V_in² π_n, shape (n,); a pass over F, unless π is the one asked for last."""
        if not self.knows(pi):
            masses, weighted = self.features.column_masses(self.basis, pi)
            self.remember(pi, weighted)
            self._masses = masses if self._masses is None else self._masses
        return self._weighted[1]

    def knows(self, pi: FloatArray) -> bool:
        """Return whether `weighted_squares(pi)` needs no pass."""
        return self._weighted[0] == pi.tobytes()

    def remember(self, pi: FloatArray, weighted: FloatArray) -> None:
        """Keep Σ_n V_in² π_n, which a pass for something else has found."""
        self._weighted = pi.tobytes(), weighted

    def sampler(self, values: FloatArray, k: int) -> PreparedSampler:
        if (source := self.features.computed_rows(self.basis)) is None:
            return block_sampler(self, values, k)
        masses = self.masses(eigenvector_inclusion(values, k))
        return kdpp_sampler(replace(source, sums=masses), values, k)

    def sampler_any_size(self, probabilities: FloatArray) -> Callable[[int, int], IntArray]:
        if (source := self.features.computed_rows(self.basis)) is None:
            return dpp_sampler(DenseTables(np.asarray(self)), probabilities)
        return dpp_sampler(replace(source, sums=self.masses(probabilities)), probabilities)


@singledispatch
def as_eigenvectors(vectors: Any) -> Eigenvectors:
    """Return the `vectors` of a spectrum as `Eigenvectors`; tensors by dmsgd.spectra.cuda."""
    return vectors if isinstance(vectors, Eigenvectors) else Eigenvectors(vectors)
