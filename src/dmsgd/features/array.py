"""Features in memory: `Array` and `Sparse`, with one call of a library for each product."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.features import rows
from dmsgd.features.features import SHORTER, Features, RowMap
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, check_nonzero
from dmsgd.inputs.fingerprint import digest, fingerprint
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.progress import Progress
from dmsgd.samplers.computed_rows import ComputedRows, SparseRows
from dmsgd.spectra.decompose import correct_left_vectors
from dmsgd.spectra.eigenvectors import Projected
from dmsgd.spectra.rounding import Rounding
from dmsgd.spectra.spectrum import Spectrum, truncate

#: Numbers in a block of rows: large enough for fast products, small enough to stay in the cache.
BLOCK = 2**20

#: Eigenvectors of sparse features are stored up to this many numbers, a gigabyte: draws from them
#: are ten times faster.
STORED = 2**27


class Stored(Features):
    """A matrix in memory.

    origin: the fingerprint of what a map made it from, and of the map; its own numbers are rounded.
    shared: whether the memory may be the caller's.
    """

    def __init__(self, matrix: Matrix, origin: str | None = None, shared: bool = False) -> None:
        self.matrix, self.origin, self.shared = matrix, origin, shared
        self.n, self.d = (int(size) for size in matrix.shape)

    def take(self, items: IntArray) -> Matrix:
        return self.matrix[items]

    def blocks(self) -> Iterator[Matrix]:
        step, tell = max(1, BLOCK // self.d), Progress(f"a pass over {self.n:,} items")
        for start in range(0, self.n, step):
            yield self.matrix[start : start + step]
            tell(min(1.0, (start + step) / self.n))

    def times(self, B: Matrix) -> FloatArray:
        return np.asarray(rows.product(self.matrix, B))

    def similarities(self, points: Matrix, scale: float) -> FloatArray:
        return np.asarray(rows.similarity(self.matrix, points, scale))

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        if weights is None:
            total = rows.gram(self.matrix)
            check_nonzero(bool(total.any()))
            return total
        total, root, start = np.zeros((self.d, self.d)), np.sqrt(weights), 0
        for block in self.blocks():
            total += rows.gram(rows.scale_rows(block, root[start : start + block.shape[0]]))
            start += block.shape[0]
        return total

    def gram_of(self, S: FloatArray) -> FloatArray:
        return rows.gram(self.times(S))

    def gram_times(self, S: FloatArray) -> tuple[FloatArray, float]:
        C = self.times(S)
        return np.asarray(rows.product(self.matrix.T, C)), float(rows.row_norms2(C).sum())

    def mapped(self, map: RowMap) -> Features:
        width = map.width(self.d)
        if map.fills:  # its factors take as much again
            reserve(2 * self.n * width, "the columns of the landmarks", "use fewer landmarks")
        origin = digest(self.fingerprint(), map.fingerprint())
        return in_memory(map.part(0, self.n)(self.matrix), origin)

    def to_memory(self) -> Stored:
        return self

    def copied(self) -> Stored:
        return in_memory(self.matrix.copy(), self.origin) if self.shared else self

    def transposed(self) -> Stored:
        return in_memory(self.matrix.T)

    def unwrap(self) -> Matrix:
        return self.matrix

    def readable_rows(self, limit: int) -> int:
        return self.n

    def _stores_vectors(self) -> bool:
        return not self.sparse_rows or self.n * self.d <= STORED

    def plan_spectrum(self, advice: str) -> None:
        super().plan_spectrum(advice)
        if self.d < self.n and self._stores_vectors():
            size = self.n * self.d + 3 * self.d**2
            reserve(size, f"the eigenvectors of {self.n} items", advice)

    def eigenpairs(
        self, values: FloatArray, U: FloatArray, overwrite: bool = False
    ) -> tuple[FloatArray, Any]:
        if not self._stores_vectors():
            return values, Projected.of(self.copied(), values, U)
        V = self._product(U / np.sqrt(values), overwrite)
        return correct_left_vectors(V, values), V

    def _product(self, basis: FloatArray, overwrite: bool) -> FloatArray:
        if self.sparse_rows or not overwrite or basis.shape[0] != basis.shape[1]:
            return self.times(basis)
        step = max(1, 2**24 // self.d)
        for first in range(0, self.n, step):  # halves the peak memory of nystrom
            self.matrix[first : first + step] = self.matrix[first : first + step] @ basis
        return np.asarray(self.matrix)

    @cached_property
    def _fingerprint(self) -> str:
        return self.origin or fingerprint(self.matrix)


@final
class Array(Stored):
    """An array in memory."""

    kind = "dense"


@final
class Sparse(Stored):
    """A CSR array in memory; large eigenvectors are never stored."""

    kind = "sparse"
    sparse_rows = True
    basis_order = "F"

    def spectrum(
        self, tol: float = 0.0, *, overwrite: bool = False, advice: str = SHORTER
    ) -> Spectrum:
        if not self._is_disjoint():
            return super().spectrum(tol, overwrite=overwrite, advice=advice)
        squares = self.matrix.multiply(self.matrix).sum(axis=0)
        check_nonzero(bool(squares.any()))
        used = np.flatnonzero(squares > 0)
        values = squares[used]
        what = f"the eigenvectors of {self.n} items in {used.size} strata"
        reserve(self.n * used.size, what, "Uniform and Stratified draw the same without them")
        V = self.matrix[:, used] @ sparse.diags_array(1 / np.sqrt(values))
        return truncate(values, V.toarray(), "diagonal", Rounding(), tol)

    def _is_disjoint(self) -> bool:
        """Return whether rows have one entry each, as labels: then columns are orthogonal."""
        return self.matrix.format == "csr" and bool(np.diff(self.matrix.indptr).max() <= 1)

    def computed_rows(self, B: FloatArray) -> ComputedRows:
        return ComputedRows(self, SparseRows.of(self.matrix), np.ascontiguousarray(B.T))


def in_memory(matrix: Matrix, origin: str | None = None, shared: bool = False) -> Stored:
    """Return the features that are this array or CSR array."""
    return (Sparse if sparse.issparse(matrix) else Array)(matrix, origin, shared)
