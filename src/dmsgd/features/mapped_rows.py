"""What maps do to rows: the classes that `Features.mapped` takes, each with its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from scipy import sparse

from dmsgd.features.resident import BLOCK, scaled_rows
from dmsgd.features.similarity import row_squares, similarity
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, Matrix
from dmsgd.inputs.fingerprint import digest
from dmsgd.samplers.computed_rows import DenseRows

#: Rows shorter than this are stretched by a power of two before their entries are squared.
SHORT, STRETCH = 1e-140, 2.0**900


@final
@dataclass(frozen=True)
class Power:
    """x -> x^rho, element by element."""

    rho: float

    fills = False

    def width(self, columns: int) -> int:
        return columns

    def part(self, start: int, stop: int) -> Callable[[Matrix], Matrix]:
        return partial(_power, rho=self.rho)

    def fingerprint(self) -> str:
        return f"power {self.rho.hex()}"

    def direct(self, rows: DenseRows) -> None:
        return None


@final
@dataclass(frozen=True)
class UnitRows:
    """x -> x / |x|."""

    fills = False

    def width(self, columns: int) -> int:
        return columns

    def part(self, start: int, stop: int) -> Callable[[Matrix], Matrix]:
        return _unit_rows

    def fingerprint(self) -> str:
        return "unit rows"

    def direct(self, rows: DenseRows) -> DenseRows | None:
        step = max(1, BLOCK // rows.X.shape[1])
        parts = (rows.X[first : first + step] for first in range(0, rows.X.shape[0], step))
        found = [_lengths(part.astype(np.float64)) for part in parts]
        lengths = np.concatenate([length / stretch for length, stretch in found])
        lengths = np.hypot(rows.scale * lengths, 0.0 if rows.extra is None else rows.extra)
        if ((lengths > 0) & (lengths < TINY)).any():
            return None  # no number makes the shortest rows long at once
        return rows.scaled(1 / np.where(lengths > 0, lengths, 1.0))


@final
@dataclass(frozen=True, eq=False)
class UnitColumns:
    """x -> (x - origin - means) / deviations; sparse x -> x / deviations.

    All three are functions of the features that this is a map of, so it is known by its name.
    """

    origin: FloatArray
    means: FloatArray
    deviations: FloatArray

    fills = False

    def width(self, columns: int) -> int:
        return columns

    def part(self, start: int, stop: int) -> Callable[[Matrix], Matrix]:
        return partial(
            _unit_columns, origin=self.origin, means=self.means, deviations=self.deviations
        )

    def fingerprint(self) -> str:
        return "unit columns"

    def direct(self, rows: DenseRows) -> None:
        return None


@final
@dataclass(frozen=True, eq=False)
class WithLabels:
    """X -> [(1-w)X, wH] for class numbers `codes` of all rows."""

    codes: IntArray
    classes: int
    w: float

    fills = False

    def width(self, columns: int) -> int:
        return self.classes if self.w == 1 else columns + self.classes

    def part(self, start: int, stop: int) -> Callable[[Matrix], Matrix]:
        return partial(_labelled, codes=self.codes[start:stop], classes=self.classes, w=self.w)

    def fingerprint(self) -> str:
        return f"labels {digest(self.codes)} {self.w.hex()}"

    def direct(self, rows: DenseRows) -> DenseRows | None:
        return rows.labelled(self.codes, self.w) if self.w < 1 else None


@final
@dataclass(frozen=True, eq=False)
class RowFactors:
    """Row i times factors[i]."""

    factors: FloatArray

    fills = False

    def width(self, columns: int) -> int:
        return columns

    def part(self, start: int, stop: int) -> Callable[[Matrix], Matrix]:
        return partial(scaled_rows, factors=self.factors[start:stop])

    def fingerprint(self) -> str:
        return f"row factors {digest(self.factors)}"

    def direct(self, rows: DenseRows) -> DenseRows:
        return rows.scaled(self.factors)


@final
@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """X -> C W^(-1/2): RBF similarities to landmarks, whitened."""

    landmarks: Matrix
    scale: float
    whitening: FloatArray

    fills = True

    def width(self, columns: int) -> int:
        return int(self.whitening.shape[1])

    def part(self, start: int, stop: int) -> Callable[[Matrix], Matrix]:
        return partial(
            _whitened, landmarks=self.landmarks, scale=self.scale, whitening=self.whitening
        )

    def fingerprint(self) -> str:
        return f"landmarks {self.scale.hex()} {digest(self.whitening)}"

    def direct(self, rows: DenseRows) -> None:
        return None


def _power(X: Matrix, rho: float) -> Matrix:
    values = X.data if sparse.issparse(X) else X
    if rho != int(rho) and values.min(initial=0.0) < 0:
        raise ValueError(f"X has negative entries, whose power {rho} is not real; shift X first")
    with np.errstate(over="ignore"):
        powers = np.power(values, rho)
    if not np.isfinite(powers).all():
        raise ValueError(
            f"X has entries whose power rho={rho:g} is beyond 1e308; use a smaller rho"
        )
    if not sparse.issparse(X):
        return powers
    X = X.copy()
    X.data = powers
    return X


def _lengths(X: Matrix) -> tuple[FloatArray, FloatArray]:
    """Return the Euclidean lengths of the rows, and how much these were stretched for it.

    Squares of small numbers vanish, and lengths as small have no digits.
    """
    lengths, stretch = np.sqrt(row_squares(X)), np.ones(X.shape[0])
    short = np.flatnonzero(lengths < SHORT)
    if short.size:
        lengths[short], stretch[short] = np.sqrt(row_squares(X[short] * STRETCH)), STRETCH
    return lengths, stretch


def _unit_rows(X: Matrix) -> Matrix:
    lengths, stretch = _lengths(X)
    lengths[lengths == 0] = 1.0
    X = scaled_rows(X, stretch) if (stretch > 1).any() else X
    if not sparse.issparse(X):
        return X / lengths[:, None]
    X = X.copy()
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    return X


def _unit_columns(
    X: Matrix, origin: FloatArray, means: FloatArray, deviations: FloatArray
) -> Matrix:
    if not sparse.issparse(X):
        Z = X - origin
        Z -= means
        Z /= deviations
        return Z
    X = X.copy()
    X.data /= deviations[X.indices]
    X.eliminate_zeros()
    return X


def _labelled(X: Matrix, codes: IntArray, classes: int, w: float) -> Matrix:
    H = indicators(codes, classes)
    if w == 1:
        return H
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([(1 - w) * X, w * H], format="csr"))
    F = np.empty((X.shape[0], X.shape[1] + classes))
    np.multiply(X, 1 - w, out=F[:, : X.shape[1]])
    F[:, X.shape[1] :] = (w * H).toarray()
    return F


def indicators(codes: IntArray, classes: int) -> Matrix:
    """Return the CSR matrix with a 1 in each row, in the column of its class."""
    n = codes.size
    index = np.int32 if n < 2**31 else np.int64  # scikit-learn takes no others where it can
    parts = np.ones(n), codes.astype(index), np.arange(n + 1, dtype=index)
    return sparse.csr_array(parts, shape=(n, classes))


def _whitened(X: Matrix, landmarks: Matrix, scale: float, whitening: FloatArray) -> Matrix:
    return similarity(X, landmarks, scale) @ whitening
