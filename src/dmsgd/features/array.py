"""`InMemory`: features that are an array or a CSR array, with one library call per product."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, final

import numpy as np

from dmsgd.features import products
from dmsgd.features.contract import SHORTER, Features, RowMap
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, check_nonzero, is_sparse
from dmsgd.inputs.fingerprint import digest, fingerprint
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.pieces import in_pieces
from dmsgd.samplers.factored_rows import ComputedRows, SparseRows
from dmsgd.spectra.decompose import correct_left_vectors
from dmsgd.spectra.eigenpairs import Spectrum, truncate
from dmsgd.spectra.eigenvectors import Projected
from dmsgd.spectra.rounding import Rounding

#: Numbers in a block of rows: large enough for fast products, small enough to stay in the cache.
BLOCK = 2**20
#: Eigenvectors of sparse features are stored up to this many numbers, a gigabyte: draws from them
#: are ten times faster.
STORED = 2**27


@final
class InMemory(Features):
    """A matrix in memory.

    origin: the fingerprint of what a map made it from, and of the map; its own numbers are rounded.
    shared: whether the memory may be the caller's.
    """

    def __init__(self, matrix: Matrix, origin: str | None = None, shared: bool = False) -> None:
        self.matrix, self.origin, self.shared = matrix, origin, shared
        self.n, self.d = (int(size) for size in matrix.shape)
        self.sparse_rows = is_sparse(matrix)
        self.kind = "sparse" if self.sparse_rows else "dense"

    def take(self, items: IntArray) -> Matrix:
        return self.matrix[items]

    def blocks(self) -> Iterator[Matrix]:
        what = f"a pass over {self.n:,} items"
        return (self.matrix[some] for some in in_pieces(self.n, max(1, BLOCK // self.d), what))

    def times(self, B: Matrix) -> FloatArray:
        return np.asarray(products.product(self.matrix, B))

    def similarities(self, points: Matrix, scale: float) -> FloatArray:
        return np.asarray(products.similarity(self.matrix, points, scale))

    def gram(self) -> FloatArray:
        total = products.gram(self.matrix)
        check_nonzero(bool(total.any()))
        return total

    def mapped(self, map: RowMap) -> InMemory:
        if map.fills:  # its factors take as much again
            size = 2 * self.n * map.width(self.d)
            reserve(size, "the columns of the landmarks", "use fewer landmarks")
        origin = digest(self.fingerprint(), map.fingerprint())
        return InMemory(map.part(0, self.n)(self.matrix), origin)

    def to_memory(self) -> InMemory:
        return self

    def copied(self) -> InMemory:
        return InMemory(self.matrix.copy(), self.origin) if self.shared else self

    def transposed(self) -> InMemory:
        return InMemory(self.matrix.T)

    def unwrap(self) -> Matrix:
        return self.matrix

    def readable_rows(self, limit: int) -> int:
        return self.n

    def spectrum(
        self, tol: float = 0.0, *, overwrite: bool = False, advice: str = SHORTER
    ) -> Spectrum:
        X, is_csr = self.matrix, self.sparse_rows and self.matrix.format == "csr"
        if not is_csr or np.diff(X.indptr).max() > 1:
            return super().spectrum(tol, overwrite=overwrite, advice=advice)
        squares = X.multiply(X).sum(axis=0)  # one entry per row, as labels: orthogonal columns
        check_nonzero(bool(squares.any()))
        used = np.flatnonzero(squares > 0)
        what = f"the eigenvectors of {self.n} items in {used.size} strata"
        reserve(self.n * used.size, what, "Uniform and Stratified draw the same without them")
        from scipy import sparse

        V = X[:, used] @ sparse.diags_array(1 / np.sqrt(squares[used]))
        return truncate(squares[used], V.toarray(), "diagonal", Rounding(), tol)

    def _stores_vectors(self) -> bool:
        return not self.sparse_rows or self.n * self.d <= STORED

    def plan_spectrum(self, advice: str) -> None:
        super().plan_spectrum(advice)
        if self.d < self.n and self._stores_vectors():
            size = self.n * self.d + 3 * self.d**2
            reserve(size, f"the eigenvectors of {self.n} items", advice)

    def eigenpairs(
        self, values: FloatArray, U: FloatArray, overwrite: bool
    ) -> tuple[FloatArray, Any]:
        if not self._stores_vectors():
            return values, Projected.of(self.copied(), values, U)
        V = self._product(U / np.sqrt(values), overwrite)
        return correct_left_vectors(V, values), V

    def _product(self, basis: FloatArray, overwrite: bool) -> FloatArray:
        if self.sparse_rows or not overwrite or basis.shape[0] != basis.shape[1]:
            return self.times(basis)
        what = f"the eigenvectors of {self.n:,} items"
        for some in in_pieces(self.n, max(1, 2**24 // self.d), what):
            self.matrix[some] = self.matrix[some] @ basis  # halves the peak memory of nystrom
        return np.asarray(self.matrix)

    def computed_rows(self, B: FloatArray) -> ComputedRows | None:
        if not self.sparse_rows:
            return None
        return ComputedRows(SparseRows.of(self.matrix), np.ascontiguousarray(B.T))

    @cached_property
    def _fingerprint(self) -> str:
        return self.origin or fingerprint(self.matrix)
