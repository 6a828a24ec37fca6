"""What passes over features compute from a block of rows: work(rows, argument, ...)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.features.interface import as_array
from dmsgd.features.resident import scaled_rows
from dmsgd.features.similarity import row_squares, similarity
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix


def nothing(rows: FloatArray, argument: Any) -> None:
    """Return nothing: the rows are only hashed."""
    return None


def whole(rows: FloatArray, argument: Any) -> FloatArray:
    """Return the rows."""
    return rows


def rows_at(rows: FloatArray, items: IntArray) -> FloatArray:
    """Return these rows of the block."""
    return rows[items]


def squares(rows: FloatArray, argument: Any) -> FloatArray:
    """Return |f_i|²."""
    return row_squares(rows)


def squares_of(rows: FloatArray, argument: Any, B: FloatArray) -> FloatArray:
    """Return |f_i B|²."""
    return row_squares(rows @ B)


def times(rows: FloatArray, argument: Any, B: Matrix) -> FloatArray:
    """Return F B."""
    return as_array(rows @ B)


def similar(rows: FloatArray, argument: Any, points: Matrix, scale: float) -> FloatArray:
    """Return RBF similarities to points."""
    return similarity(rows, points, scale)


def surveyed(rows: FloatArray, argument: Any, B: FloatArray, weights: FloatArray) -> Any:
    """Return the sums of (F B)² down the columns, and along the rows with weights."""
    squares = (rows @ B) ** 2
    return squares.sum(axis=0), squares @ weights


def gram(rows: FloatArray, argument: Any) -> FloatArray:
    """Return FᵀF."""
    return np.asarray(rows.T @ rows)


def weighted_gram(rows: FloatArray, argument: tuple[FloatArray]) -> FloatArray:
    """Return FᵀF of rows that are scaled first."""
    return gram(scaled_rows(rows, argument[0]), None)


def gram_of(rows: FloatArray, argument: Any, S: FloatArray) -> FloatArray:
    """Return (F S)ᵀ(F S)."""
    return gram(rows @ S, None)


def normal(rows: FloatArray, argument: Any, S: FloatArray) -> tuple[FloatArray, float]:
    """Return FᵀF S and |F S|²."""
    C = rows @ S
    return rows.T @ C, float(np.einsum("ij,ij->", C, C))
