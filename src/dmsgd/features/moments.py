"""Means and standard deviations of columns, in one pass over features wherever they live.

Numbers are taken relative to the first row, so that a column far from 0 keeps its digits and one
that is constant has a deviation of exactly 0. Parts of the rows are merged by root sums of squares,
which neither overflow nor vanish.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.features.interface import Features
from dmsgd.inputs.arrays import FloatArray, Matrix, as_array


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """Of the columns of some rows, each less the same origin.

    count:  rows.
    means:  of the columns, shape (d,).
    spread: root of the summed squares of distances from the means, shape (d,).
    """

    count: int
    means: FloatArray
    spread: FloatArray

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations of the columns."""
        return np.asarray(self.spread / np.sqrt(self.count))

    def with_others(self, other: Moments) -> Moments:
        """Return the moments of both parts together."""
        count = self.count + other.count
        apart = other.means - self.means
        between = np.abs(apart) * np.sqrt(self.count * (other.count / count))
        means = self.means + apart * (other.count / count)
        return Moments(count, means, np.hypot(np.hypot(self.spread, other.spread), between))


def column_moments(F: Features) -> tuple[FloatArray, Moments]:
    """Return the first row, and the moments of all rows less that one."""
    origin = as_array(F.take(np.zeros(1, dtype=np.int64)))[0].astype(np.float64)
    return origin, reduce(Moments.with_others, _parts(F, origin))


def _parts(F: Features, origin: FloatArray) -> Iterator[Moments]:
    passes = F.passes()
    if passes is None:
        for _, rows in F.blocks():
            yield _moments(rows, None, origin)
        return
    for part in passes.run(partial(_moments, origin=origin), "moments"):
        if part.count:
            yield part


def _moments(rows: Matrix, argument: Any, origin: FloatArray) -> Moments:
    """Return the moments of a block of rows less `origin`."""
    n, d = rows.shape
    if n == 0:
        return Moments(0, np.zeros(d), np.zeros(d))
    if sparse.issparse(rows):
        return _sparse_moments(rows, origin)
    shifted = rows - origin
    means = shifted.mean(axis=0)
    shifted -= means
    size = np.abs(shifted).max(axis=0)
    shifted /= np.where(size > 0, size, 1.0)
    return Moments(n, means, size * np.sqrt(np.einsum("ij,ij->j", shifted, shifted)))


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
    return Moments(n, means, size * np.sqrt(squares + empty * (apart / scale) ** 2))
