"""What all factorisations return, and the one place where small eigenvalues are cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dmsgd.arrays import FloatArray


@final
@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """The non-zero part of L = V diag(λ) Vᵀ.

    values:  λ, shape (rank,), positive, largest first.
    vectors: V, shape (n, rank), row-major, orthonormal columns.
    route:   how it was computed (see `dmsgd.exact`).
    tol:     eigenvalues up to tol times the largest were taken for zero and left out.
    """

    values: FloatArray
    vectors: FloatArray
    route: str
    tol: float

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.vectors.shape[0])

    @property
    def rank(self) -> int:
        """Number of eigenvalues above the tolerance: the largest possible batch size."""
        return int(self.values.size)

    def __repr__(self) -> str:
        return (
            f"Spectrum({self.n} items, rank {self.rank}, route={self.route!r}, tol={self.tol:.0e})"
        )


def truncated(values: FloatArray, vectors: FloatArray, route: str, tol: float) -> Spectrum:
    """Return the spectrum of the eigenpairs with value above `tol` times the largest, sorted."""
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > tol * values[order[0]]]
    if np.array_equal(order, np.arange(order.size)):  # already sorted: cut without a copy
        values, vectors = values[: order.size], vectors[:, : order.size]
    else:
        values, vectors = values[order], vectors[:, order]
    return Spectrum(
        np.ascontiguousarray(values), np.ascontiguousarray(vectors), route=route, tol=tol
    )
