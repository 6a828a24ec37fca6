"""The eigenvectors of a kernel whose features are read in blocks: made again whenever needed."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.arrays import FloatArray
from dmsgd.memory import reserve
from dmsgd.streams.rows import Rows


@final
class StreamedVectors:
    """V = F basis for features F in blocks; it stands where a Spectrum holds an array.

    rows:  F.
    basis: U Λ^(-1/2), shape (d, rank).

    V[items] reads the blocks that the items are in. np.asarray(V) forms all of V, if memory allows.
    """

    ndim = 2

    def __init__(self, rows: Rows, basis: FloatArray) -> None:
        self.rows, self.basis = rows, basis
        self.shape = (rows.shape[0], int(basis.shape[1]))
        self._surveyed: tuple[bytes, FloatArray, FloatArray] | None = None

    def __getitem__(self, items: Any) -> FloatArray:
        items = np.asarray(items)
        found = self.rows.take(items.ravel().astype(np.int64)) @ self.basis
        return found.reshape(*items.shape, self.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        reserve(self.shape[0] * self.shape[1], f"all eigenvectors of {self.rows!r}",
                "they are read in blocks for sample, inclusion, joint, log_prob and presample; use "
                "these, or a part of the data")  # fmt: skip
        blocks = list(self.rows.run(_projected, "vectors", self.basis))
        return np.concatenate(blocks).astype(dtype or np.float64)

    def survey(self, pi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ_{i in block} V_in², shape (blocks, rank), and Σ_n V_in² π_n, shape (n,).

        One pass over the data; the last result is kept.
        """
        key = pi.tobytes()
        if self._surveyed is None or self._surveyed[0] != key:
            found = list(self.rows.run(_surveyed, "survey", (self.basis, pi)))
            masses = np.array([mass for mass, _ in found])
            self._surveyed = key, masses, np.concatenate([b for _, b in found])
        return self._surveyed[1:]

    def __repr__(self) -> str:
        return f"StreamedVectors({self.rows!r}, rank {self.shape[1]})"


def weighed_squares(V: FloatArray | StreamedVectors, pi: FloatArray) -> FloatArray:
    """Return Σ_n V_in² π_n for every item i."""
    if isinstance(V, StreamedVectors):
        return V.survey(pi)[1]
    return np.asarray(np.einsum("in,in,n->i", V, V, pi, optimize=False))


def _projected(block: FloatArray, basis: FloatArray, argument: Any) -> FloatArray:
    return block @ basis


def _surveyed(block: FloatArray, shared: tuple[FloatArray, FloatArray], argument: Any) -> Any:
    basis, pi = shared
    V = block @ basis
    squares = V * V
    return squares.sum(axis=0), squares @ pi
