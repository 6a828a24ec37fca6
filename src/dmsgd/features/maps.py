"""Feature maps: `one_hot`, `anneal`, `normalize`, `standardize`, `concat`; what they do to rows.

An array gives an array, CSR gives CSR and a tensor a tensor. Features in blocks give features that
are mapped when their blocks are read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, final

import numpy as np

from dmsgd.features.contract import Features, RowMap
from dmsgd.features.convert import as_features
from dmsgd.features.products import by_rows, row_norms2, scale_rows, similarity
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, Matrix, as_array, is_sparse
from dmsgd.inputs.fingerprint import digest
from dmsgd.inputs.labels import as_classes
from dmsgd.inputs.scalars import as_fraction, as_positive
from dmsgd.spectra.decompose import empty, like, solve_triangular

#: Number of rows, means of their columns, and roots of the summed squared distances from them.
Moments = tuple[int, FloatArray, FloatArray]
#: Rows shorter than this are multiplied by STRETCH before they are squared: squares of small
#: numbers vanish.
SHORT, STRETCH = 1e-140, 2.0**900


def one_hot(labels: Any) -> Matrix:
    """Return H, the (n, classes) sparse matrix of one-hot labels, classes in sorted order.

    >>> one_hot(["cat", "ant", "cat"]).toarray()
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    classes, codes = as_classes(labels)
    return indicators(codes, classes.size)


def anneal(X: Any, rho: float) -> Matrix | Features:
    """Return X with every entry raised to the power rho; zeros stay zero, so sparse stays sparse.

    The paper's annealed kernel is Linear(anneal(tfidf, 0.1)): a small rho makes every shared word
    count almost alike. Raises ValueError for negative entries, unless rho is a whole number.

    >>> anneal(np.array([[0.0, 4.0]]), 0.5)
    array([[0., 2.]])
    """
    return as_features(X, allow_tiny=True).mapped(Anneal(as_positive(rho, "rho"))).unwrap()


def normalize(X: Any) -> Matrix | Features:
    """Return X with rows of Euclidean length 1; zero rows stay zero.

    A linear kernel favours items in proportion to their squared norm. Normalize rows whose length
    means nothing (embeddings, counts); keep the length where it is importance. See also `Linear`.

    >>> normalize(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return as_features(X, allow_tiny=True).mapped(Normalize()).unwrap()


def standardize(X: Any) -> Matrix | Features:
    """Return X with columns of mean 0 and standard deviation 1; constant columns become 0.

    For columns in different units: a linear kernel is otherwise dominated by those with the largest
    numbers. Sparse X is scaled and not centred, so that it stays sparse: its columns have standard
    deviation 1 and keep their zeros.

    >>> standardize(np.array([[1.0, 500.0, 7.0], [3.0, 100.0, 7.0]]))
    array([[-1.,  1.,  0.],
           [ 1., -1.,  0.]])
    """
    F = as_features(X, allow_tiny=True)
    return F.mapped(standardize_map(F)).unwrap()


def standardize_map(F: Features) -> Standardize:
    """Return the map that makes columns of mean 0 and standard deviation 1 of these features."""
    origin, means, deviations = column_moments(F)
    small = np.flatnonzero((deviations > 0) & (deviations < TINY))
    if small.size:
        raise ValueError(
            f"column {small[0]} of X has a standard deviation of {deviations[small[0]]:.0e}, of "
            f"which too few digits are known to divide by it; rescale the column, or leave it out"
        )
    return Standardize(origin, means, np.where(deviations > 0, deviations, np.inf))


def concat(X: Any, labels: Any, w: float) -> Matrix | Features:
    """Return F = [(1-w)X, wH]: features and one-hot labels side by side (the paper's eq. for F).

    w = 0 uses the features alone, w = 1 the labels alone (stratified sampling); a part of weight
    zero is left out, not stored as zeros. The shape is (n, d + classes); O(stored entries).

    >>> concat(np.array([[2.0], [4.0]]), ["a", "b"], 0.5)
    array([[1. , 0.5, 0. ],
           [2. , 0. , 0.5]])
    """
    labels = aligned(labels, X, "labels")
    return concat_labels(as_features(X), labels, as_fraction(w, "w")).unwrap()


def concat_labels(F: Features, labels: Any, w: float) -> Features:
    """Return the features [(1-w)X, wH]; for w = 0 those that were given."""
    classes, codes = as_classes(labels, F.n)
    return F.mapped(ConcatLabels(codes, classes.size, w)) if w > 0 else F


def column_moments(F: Features) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the first row, and means and standard deviations of all rows less that one.

    So a column far from 0 keeps its digits, and a constant column has deviation exactly 0.
    """
    origin = as_array(F.take(np.zeros(1, dtype=np.int64)))[0].astype(np.float64)
    parts = F.map_blocks(partial(_moments, origin=origin), "moments")
    count, means, spread = reduce(_merged, parts)
    return origin, means, spread / np.sqrt(count)


def _merged(one: Moments, other: Moments) -> Moments:
    """Return the moments of two parts of the rows together."""
    (n, means, spread), (m, others, another) = one, other
    apart = others - means
    between = np.abs(apart) * np.sqrt(n * (m / (n + m)))
    spread = np.hypot(np.hypot(spread, another), between)  # neither overflows nor vanishes
    return n + m, means + apart * (m / (n + m)), spread


def _moments(rows: Matrix, origin: FloatArray) -> Moments:
    """Return the moments of a block of rows less `origin`."""
    if is_sparse(rows):
        return _sparse_moments(rows, origin)
    shifted = rows - origin
    means = shifted.mean(axis=0)
    shifted -= means
    size = np.abs(shifted).max(axis=0)
    shifted /= np.where(size > 0, size, 1.0)
    return len(rows), means, size * np.sqrt(np.einsum("ij,ij->j", shifted, shifted))


def _sparse_moments(rows: Matrix, origin: FloatArray) -> Moments:
    n, d = rows.shape
    entries, columns = rows.data - origin[rows.indices], rows.indices
    empty = n - np.bincount(columns, minlength=d)
    means = (np.bincount(columns, weights=entries, minlength=d) - empty * origin) / n
    entries -= means[columns]
    apart = np.where(empty > 0, np.abs(origin + means), 0.0)  # of the zeros that are not stored
    size = apart.copy()
    np.maximum.at(size, columns, np.abs(entries))
    scale = np.where(size > 0, size, 1.0)
    squares = np.bincount(columns, weights=(entries / scale[columns]) ** 2, minlength=d)
    return n, means, size * np.sqrt(squares + empty * (apart / scale) ** 2)


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
