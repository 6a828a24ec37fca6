"""What passes over features compute from a block of rows: work(rows, argument, ...).

Rows are an array or a CSR array, of which nothing with a number for every row and column is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from dmsgd.features import resident
from dmsgd.features.similarity import row_squares, similarity
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, as_array
from dmsgd.samplers.computed_rows import SparseRows, tiles

#: Numbers of a product with sparse rows that are held at a time.
PRODUCT = 2**21


def nothing(rows: Matrix, argument: Any) -> None:
    """Return nothing: the rows are only hashed."""
    return None


def whole(rows: Matrix, argument: Any) -> Matrix:
    """Return the rows."""
    return rows


def scaled(rows: Matrix, argument: tuple[FloatArray]) -> Matrix:
    """Return the rows, each times its factor."""
    return resident.scaled_rows(rows, argument[0])


def rows_at(rows: Matrix, items: IntArray) -> Matrix:
    """Return these rows of the block."""
    return rows[items]


def nowhere_negative(rows: Matrix, argument: Any) -> bool:
    """Return whether no entry of sparse rows is negative."""
    return bool(rows.data.min(initial=0.0) >= 0)


def squares(rows: Matrix, argument: Any) -> FloatArray:
    """Return |f_i|²."""
    return row_squares(rows)


def squares_of(rows: Matrix, argument: Any, B: FloatArray) -> FloatArray:
    """Return |f_i B|²."""
    if sparse.issparse(rows):
        return _survey(rows, B, np.ones(B.shape[1]))[1]
    return row_squares(rows @ B)


def times(rows: Matrix, argument: Any, B: Matrix) -> FloatArray:
    """Return F B."""
    return as_array(rows @ B)


def similar(rows: Matrix, argument: Any, points: Matrix, scale: float) -> FloatArray:
    """Return RBF similarities to points."""
    return similarity(rows, points, scale)


def surveyed(rows: Matrix, argument: Any, B: FloatArray, weights: FloatArray) -> Any:
    """Return the sums of (F B)² down the columns, and along the rows with weights."""
    if sparse.issparse(rows):
        return _survey(rows, B, weights)
    squares = (rows @ B) ** 2
    return squares.sum(axis=0), squares @ weights


def _survey(rows: Matrix, B: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what `surveyed` does, of sparse rows, a few columns at a time."""
    entries = SparseRows.of(rows)
    masses, weighed = np.empty(B.shape[1]), np.zeros(entries.n)
    for tile in tiles(B.shape[1]):
        masses[tile] = entries.block_sums(B[:, tile].T, weights[tile], weighed)[:, -1]
    return masses, weighed


def gram(rows: Matrix, argument: Any) -> FloatArray:
    """Return FᵀF."""
    return resident.gram(rows)


def weighted_gram(rows: Matrix, argument: tuple[FloatArray]) -> FloatArray:
    """Return FᵀF of rows that are scaled first."""
    return gram(scaled(rows, argument), None)


def gram_of(rows: Matrix, argument: Any, S: FloatArray) -> FloatArray:
    """Return (F S)ᵀ(F S)."""
    total = np.zeros((S.shape[1], S.shape[1]))
    for part in _parts(rows, S.shape[1]):
        C = part @ S
        total += C.T @ C
    return total


def normal(rows: Matrix, argument: Any, S: FloatArray) -> tuple[FloatArray, float]:
    """Return FᵀF S and |F S|²."""
    total, size = np.zeros(S.shape), 0.0
    for part in _parts(rows, S.shape[1]):
        C = part @ S
        total += part.T @ C
        size += float(np.einsum("ij,ij->", C, C))
    return total, size


def _parts(rows: Matrix, width: int) -> Iterator[Matrix]:
    """Yield parts of sparse rows that products of `width` columns leave room for; arrays whole."""
    n = rows.shape[0]
    step = max(1, PRODUCT // width) if sparse.issparse(rows) else max(1, n)
    for first in range(0, n, step):
        yield rows[first : first + step]
