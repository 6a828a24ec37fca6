"""What all factorisations return, and the one place where small eigenvalues are cut off."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from dmsgd.arrays import FloatArray
from dmsgd.fingerprints import digest
from dmsgd.fingerprints import fingerprint as fingerprint_of

#: The routes of `dmsgd.exact`, but for "+svd".
EXACT_ROUTES = ("diagonal", "dual", "primal")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """The non-zero part of L = V diag(λ) Vᵀ.

    values:  λ, shape (rank,), positive, largest first.
    vectors: V, shape (n, rank), row-major, orthonormal columns; for features that are read in
             blocks a `dmsgd.spectra.vectors.StreamedVectors`, which makes rows when asked for them.
    route:   how it was computed (see `dmsgd.exact`).
    tol:     eigenvalues up to tol times the largest were taken for zero and left out.
    trace_error: how far L is from the kernel it stands for, as a share of that kernel's trace; 0
             for `dmsgd.exact`.
    kernel, fingerprint: the kernel it stands for, in words and as a hash ("" if made by hand).
    """

    values: FloatArray
    vectors: FloatArray
    route: str
    tol: float
    trace_error: float = field(default=0.0, kw_only=True)
    kernel: str = field(default="", kw_only=True)
    fingerprint: str = field(default="", kw_only=True)

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.vectors.shape[0])

    @property
    def rank(self) -> int:
        """Number of eigenvalues above the tolerance: the largest possible batch size."""
        return int(self.values.size)

    def identity(self) -> str:
        """Return a hash of what draws depend on; another spectrum has another.

        For `dmsgd.exact` that is the kernel and the tolerance, on every machine. An approximation
        or a spectrum made by hand has only its own numbers to tell it from others.
        """
        if self.fingerprint and self.route.partition("+")[0] in EXACT_ROUTES:
            return digest(self.fingerprint, float(self.tol).hex())
        if not isinstance(self.vectors, np.ndarray):  # in blocks: not formed for a hash
            return digest(self.fingerprint, self.route, self.values)
        return digest(self.values, fingerprint_of(self.vectors))

    def __repr__(self) -> str:
        error = f", trace error {self.trace_error:.2%}" if self.trace_error else ""
        return (
            f"Spectrum({self.n} items, rank {self.rank}, route={self.route!r}, "
            f"tol={self.tol:.0e}{error})"
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
