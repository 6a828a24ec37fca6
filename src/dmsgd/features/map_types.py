"""What maps do to rows: one version for arrays, CSR arrays and tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from dmsgd.features.contract import RowMap
from dmsgd.features.products import by_rows, row_norms2, scale_rows, similarity
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, is_sparse
from dmsgd.inputs.fingerprint import digest
from dmsgd.spectra.decompose import empty, like, solve_triangular

#: Rows shorter than this are multiplied by STRETCH before they are squared: squares of small
#: numbers vanish.
SHORT, STRETCH = 1e-140, 2.0**900


@final
@dataclass(frozen=True)
class Anneal(RowMap):
    """x -> x^rho, element by element."""

    rho: float

    def __call__(self, X: Matrix) -> Matrix:
        values, rho = X.data if is_sparse(X) else X, self.rho
        if rho != int(rho) and bool((values < 0).any()):
            raise ValueError(f"X has negative entries, whose power {rho} is not real; shift X")
        with np.errstate(over="ignore"):
            powers = values**rho
        if not bool((abs(powers) <= np.finfo(float).max).all()):
            raise ValueError(f"X has entries whose power rho={rho:g} is beyond 1e308; reduce rho")
        return _with_data(X, powers) if is_sparse(X) else powers

    def fingerprint(self) -> str:
        return f"power {self.rho.hex()}"


@final
@dataclass(frozen=True)
class Normalize(RowMap):
    """x -> x / |x|; zero rows stay zero."""

    def __call__(self, X: Matrix) -> Matrix:
        lengths, stretch = row_lengths(X)
        lengths[lengths == 0] = 1.0
        X = scale_rows(X, stretch) if bool((stretch > 1).any()) else X
        if is_sparse(X):
            return _with_data(X, X.data / np.repeat(lengths, np.diff(X.indptr)))
        return X / lengths[:, None]

    def fingerprint(self) -> str:
        return "unit rows"


@final
@dataclass(frozen=True, eq=False)
class Standardize(RowMap):
    """x -> (x - origin - means) / deviations; sparse x -> x / deviations.

    All three are functions of the features that this is a map of, so its name identifies it.
    """

    origin: FloatArray
    means: FloatArray
    deviations: FloatArray

    def __call__(self, X: Matrix) -> Matrix:
        if is_sparse(X):
            X = _with_data(X, X.data / self.deviations[X.indices])
            X.eliminate_zeros()
            return X
        Z = X - like(X, self.origin)
        Z -= like(X, self.means)
        Z /= like(X, self.deviations)
        return Z

    def fingerprint(self) -> str:
        return "unit columns"


@final
@dataclass(frozen=True, eq=False)
class ConcatLabels(RowMap):
    """X -> [(1-w)X, wH] for class numbers `codes` of all rows."""

    codes: IntArray
    classes: int
    w: float

    def __call__(self, X: Matrix) -> Matrix:
        n, d, w = X.shape[0], 0 if self.w == 1 else X.shape[1], self.w
        if is_sparse(X) or (isinstance(X, np.ndarray) and w == 1):
            from scipy import sparse

            H = indicators(self.codes, self.classes)
            return H if w == 1 else sparse.csr_array(sparse.hstack([(1 - w) * X, w * H], "csr"))
        F = empty(X, (n, d + self.classes))
        F[:, :d] = X[:, :d]
        F[:, :d] *= 1 - w
        F[:, d:] = 0.0
        F[like(X, np.arange(n)), like(X, d + self.codes)] = w
        return F

    def part(self, start: int, stop: int) -> ConcatLabels:
        return replace(self, codes=self.codes[start:stop])

    def width(self, columns: int) -> int:
        return self.classes if self.w == 1 else columns + self.classes

    def fingerprint(self) -> str:
        return f"labels {digest(self.codes)} {self.w.hex()}"


@final
@dataclass(frozen=True, eq=False)
class ScaleRows(RowMap):
    """Row i times factors[i]."""

    factors: FloatArray

    def __call__(self, X: Matrix) -> Matrix:
        return scale_rows(X, self.factors)

    def part(self, start: int, stop: int) -> ScaleRows:
        return ScaleRows(self.factors[start:stop])

    def fingerprint(self) -> str:
        return f"row factors {digest(self.factors)}"


@final
@dataclass(frozen=True, eq=False)
class NystromFeatures(RowMap):
    """X -> C T⁻ᵀ: RBF similarities to landmarks, and T Tᵀ those between the landmarks."""

    landmarks: Matrix
    scale: float
    triangle: FloatArray

    fills = True

    def __call__(self, X: Matrix) -> Matrix:
        m = len(self.triangle)
        what = f"the similarity of {X.shape[0]:,} items to {m:,} landmarks"
        return by_rows(self._whitened, X, m, m * max(m, 2048), what)  # 2²² numbers at most

    def _whitened(self, X: Matrix) -> Matrix:
        C = similarity(X, like(X, self.landmarks), self.scale)
        return solve_triangular(C.T, self.triangle).T

    def width(self, columns: int) -> int:
        return len(self.triangle)

    def fingerprint(self) -> str:
        return f"landmarks {self.scale.hex()} {digest(self.triangle)}"


def _with_data(X: Matrix, data: FloatArray) -> Matrix:
    """Return a CSR array with other entries in the same places."""
    X = X.copy()
    X.data = data
    return X


def row_lengths(X: Matrix) -> tuple[Any, Any]:
    """Return the Euclidean lengths of the rows after a stretch by the second result."""
    lengths = row_norms2(X) ** 0.5
    stretch, short = lengths * 0.0 + 1.0, lengths < SHORT
    if bool(short.any()):
        stretch[short] = STRETCH
        lengths = row_norms2(scale_rows(X, stretch)) ** 0.5
    return lengths, stretch


def indicators(codes: IntArray, classes: int) -> Matrix:
    """Return the CSR matrix with a 1 in each row, in the column of its class."""
    from scipy import sparse

    n = codes.size
    index = np.int32 if n < 2**31 else np.int64  # scikit-learn takes no others where it can
    parts = np.ones(n), codes.astype(index), np.arange(n + 1, dtype=index)
    return sparse.csr_array(parts, shape=(n, classes))
