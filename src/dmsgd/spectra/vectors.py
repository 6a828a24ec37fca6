"""The eigenvectors of a kernel whose features are read in blocks: made again whenever needed."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.memory import reserve
from dmsgd.streams.rows import Rows


@final
class StreamedVectors:
    """V = F basis for features F in blocks; it stands where a Spectrum holds an array.

    rows:   F.
    basis:  U Λ^(-1/2), shape (d, rank).
    masses: Σ_{i in block} V_in², shape (blocks, rank), if the Gram matrices of blocks gave them.

    V[items] reads the blocks that the items are in. np.asarray(V) forms all of V, if memory allows.
    """

    ndim = 2

    def __init__(self, rows: Rows, basis: FloatArray, masses: FloatArray | None = None) -> None:
        self.rows, self.basis, self._masses = rows, basis, masses
        self.shape = (rows.shape[0], int(basis.shape[1]))
        self._weighed: tuple[bytes, FloatArray] | None = None

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

    def masses(self, pi: FloatArray) -> FloatArray:
        """Return Σ_{i in block} V_in², shape (blocks, rank); a pass, unless they are known."""
        if self._masses is None:
            self._survey(pi)
        assert self._masses is not None
        return self._masses

    def weigh(self, pi: FloatArray) -> FloatArray:
        """Return Σ_n V_in² π_n, shape (n,); a pass, unless it was the last to be known."""
        if not self.knows(pi):
            self._survey(pi)
        assert self._weighed is not None
        return self._weighed[1]

    def knows(self, pi: FloatArray) -> bool:
        """Return whether `weigh(pi)` needs no pass."""
        return self._weighed is not None and self._weighed[0] == pi.tobytes()

    def remember(self, pi: FloatArray, weighed: FloatArray) -> None:
        """Keep Σ_n V_in² π_n, which a pass for something else has found."""
        self._weighed = pi.tobytes(), weighed

    def _survey(self, pi: FloatArray) -> None:
        found = list(self.rows.run(_surveyed, "survey", (self.basis, pi)))
        self._masses = np.array([mass for mass, _ in found])
        self.remember(pi, np.concatenate([b for _, b in found]))

    def __repr__(self) -> str:
        return f"StreamedVectors({self.rows!r}, rank {self.shape[1]})"


def weighed_squares(V: FloatArray | StreamedVectors, pi: FloatArray) -> FloatArray:
    """Return Σ_n V_in² π_n for every item i."""
    if isinstance(V, StreamedVectors):
        return V.weigh(pi)
    return np.asarray(np.einsum("in,in,n->i", V, V, pi, optimize=False))


def _projected(block: FloatArray, basis: FloatArray, argument: Any) -> FloatArray:
    return block @ basis


def _surveyed(block: FloatArray, shared: tuple[FloatArray, FloatArray], argument: Any) -> Any:
    basis, pi = shared
    V = block @ basis
    squares = V * V
    return squares.sum(axis=0), squares @ pi
