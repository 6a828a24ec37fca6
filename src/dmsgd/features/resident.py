"""Features in memory: an array or a CSR array. Maps are applied at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import final

import numpy as np
from scipy import sparse

from dmsgd.features.interface import Features, InMemory, Map
from dmsgd.features.similarity import product, row_squares, similarity
from dmsgd.features.sparse_gram import SparseGram
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, as_array
from dmsgd.inputs.fingerprint import digest, fingerprint
from dmsgd.inputs.progress import Progress, run_interruptible

#: Numbers in a block of rows: large enough for fast products, small enough to stay in the cache.
BLOCK = 2**20


class Resident(InMemory):
    """A matrix in memory.

    origin: the fingerprint of what a map made it from, and of the map; its own numbers are rounded.
    shared: whether the memory may be the caller's.
    """

    def __init__(
        self,
        matrix: Matrix,
        origin: str | None = None,
        shared: bool = False,
    ) -> None:
        self.matrix, self.origin, self.shared = matrix, origin, shared
        self.n, self.d = (int(size) for size in matrix.shape)

    def take(self, items: IntArray) -> Matrix:
        return self.matrix[items]

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        rows, tell = max(1, BLOCK // self.d), Progress(f"a pass over {self.n:,} items")
        for start in range(0, self.n, rows):
            yield start, self.matrix[start : start + rows]
            tell(min(1.0, (start + rows) / self.n))

    def row_squares(self) -> FloatArray:
        return row_squares(self.matrix)

    def squares_of(self, B: FloatArray) -> FloatArray:
        return np.concatenate([row_squares(as_array(rows @ B)) for _, rows in self.blocks()])

    def times(self, B: Matrix) -> FloatArray:
        return product(self.matrix, B)

    def similarities(self, points: Matrix, scale: float) -> FloatArray:
        return similarity(self.matrix, points, scale)

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        if weights is None:
            return gram(self.matrix)
        total, root = np.zeros((self.d, self.d)), np.sqrt(weights)
        for start, rows in self.blocks():
            total += gram(scaled_rows(rows, root[start : start + rows.shape[0]]))
        return total

    def gram_of(self, S: FloatArray) -> FloatArray:
        return gram(self.times(S))

    def normal(self, S: FloatArray) -> tuple[FloatArray, float]:
        C = self.times(S)
        return product(self.matrix.T, C), float(np.einsum("ij,ij->", C, C))

    def mapped(self, map: Map) -> Features:
        origin = digest(self.fingerprint(), map.fingerprint())
        return held(map.part(0, self.n)(self.matrix), origin)

    def whole(self) -> Resident:
        return self

    def owned(self) -> Resident:
        return held(self.matrix.copy(), self.origin) if self.shared else self

    def transposed(self) -> Resident:
        return held(self.matrix.T)

    @cached_property
    def _fingerprint(self) -> str:
        return self.origin or fingerprint(self.matrix)

    def fingerprint(self) -> str:
        return self._fingerprint


@final
class Dense(Resident):
    """An array."""

    kind = "dense"

    def dense(self) -> FloatArray:
        return self.matrix  # type: ignore[no-any-return]


@final
class Sparse(Resident):
    """A CSR array."""

    kind = "sparse"

    def sparse(self) -> Sparse:
        return self

    def words(self) -> bool:
        return bool(self.matrix.data.min(initial=0.0) >= 0)

    def disjoint(self) -> bool:
        return self.matrix.format == "csr" and bool(np.diff(self.matrix.indptr).max() <= 1)


def held(
    matrix: Matrix,
    origin: str | None = None,
    shared: bool = False,
) -> Resident:
    """Return the features that are this array or CSR array."""
    return (Sparse if sparse.issparse(matrix) else Dense)(matrix, origin, shared)


def gram(X: Matrix) -> FloatArray:
    """Return XᵀX."""
    if not sparse.issparse(X):
        n, d = X.shape
        what = f"the Gram matrix of {n:,} items x {d:,} features"
        return np.asarray(run_interruptible(lambda: X.T @ X, float(n) * d**2, what))
    return SparseGram(X.shape[1]).add(X.tocsr()).matrix()


def scaled_rows(X: Matrix, factors: FloatArray) -> Matrix:
    """Return X with row i times factors[i]; dense stays dense and sparse stays sparse."""
    if sparse.issparse(X):
        return sparse.csr_array(sparse.diags_array(factors) @ X)
    return X * factors[:, None]
