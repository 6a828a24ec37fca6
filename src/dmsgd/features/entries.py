"""Sparse rows as compiled loops read them: products a few columns at a time, and hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.inputs.fingerprint import hash_factors

#: What calls work(part) for all parts.
Runner = Callable[[Callable[[tuple[int, int]], None], Sequence[tuple[int, int]]], Any]


@final
@dataclass(frozen=True)
class Entries:
    """The entries of a CSR array F, (n, d), row by row.

    starts: where rows begin, (n + 1,).
    places: their columns.
    values: their numbers.
    """

    starts: IntArray
    places: npt.NDArray[np.uint32]
    values: FloatArray

    @classmethod
    def of(cls, F: Matrix) -> Entries:
        """Return those of a matrix, without a copy of what is as it should be."""
        F = F.tocsr()
        short = F.indices.dtype == np.int32  # none is negative
        places = F.indices.view(np.uint32) if short else F.indices.astype(np.uint32)
        return cls(F.indptr.astype(np.int64), places, F.data)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.starts.size - 1

    def addresses(self) -> tuple[int, int, int]:
        """Return where they are."""
        from dmsgd.compiled.jit import address

        return (
            address(self.starts, np.int64), address(self.places, np.uint32),
            address(self.values, float),
        )  # fmt: skip

    def survey(
        self,
        columns: FloatArray,
        weights: FloatArray,
        weighed: FloatArray,
        parts: int = 1,
        run: Runner | None = None,
    ) -> FloatArray:
        """Return the sums of V² before each stretch of rows, V = F columns.T for a few columns.

        Shape (columns, stretches + 1). V² @ weights is added to `weighed`, (n,). `run` may do
        several of the `parts` at once.
        """
        from dmsgd.compiled.jit import address
        from dmsgd.compiled.vectors import BLOCK
        from dmsgd.features.loops import STRETCH, survey

        (count, d), stretches = columns.shape, -(-self.n // STRETCH)
        sums, tile, factors = (
            np.zeros((count, stretches + 1)),
            np.zeros((d, BLOCK)),
            np.zeros(BLOCK),
        )
        tile[:, :count], factors[:count] = columns.T, weights
        given = (*self.addresses(), address(tile, float), count, address(factors, float))
        filled = address(sums, float), address(weighed, float)

        def work(part: tuple[int, int]) -> None:
            scratch = np.empty(2 * BLOCK)
            survey(*given, *part, self.n, *filled, address(scratch, float))

        if run is None:
            work((0, stretches))
        else:
            bounds = np.linspace(0, stretches, min(parts, stretches) + 1).astype(int).tolist()
            run(work, list(pairwise(bounds)))
        return np.cumsum(sums, axis=1, out=sums)

    def hashes(self, d: int) -> npt.NDArray[np.uint64]:
        """Return `row_hashes` of F as an array, for entries of which none is zero."""
        from dmsgd.compiled.jit import address
        from dmsgd.features.loops import hash_rows

        found, factors = np.empty(self.n, dtype=np.uint64), hash_factors(d)
        bits = self.values.view(np.uint64).byteswap()
        starts, places, _ = self.addresses()
        given = (address(array, np.uint64) for array in (bits, factors))
        hash_rows(starts, places, *given, self.n, address(found, np.uint64))
        return found


def tiles(r: int) -> list[slice]:
    """Return the columns that are surveyed at a time, out of r."""
    from dmsgd.compiled.vectors import BLOCK

    return [slice(first, min(first + BLOCK, r)) for first in range(0, r, BLOCK)]
