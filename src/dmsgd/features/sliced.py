"""Features in memory of which a map makes no copy: it is applied to a slice of rows at a time.

`Features.mapped` copies features in memory, because most designs hold them anyway. What needs
sums over rows alone, such as b of a linear kernel, does with slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import final

import numpy as np

from dmsgd.features.interface import Features, InMemory, Map
from dmsgd.features.resident import BLOCK
from dmsgd.features.similarity import row_squares
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, as_array, check_nonzero
from dmsgd.inputs.progress import Progress


@final
class Sliced(Features):
    """The rows of features in memory, mapped when they are read, a slice at a time.

    Sums over rows and numbers for each row take the memory of a slice; all else maps the whole.
    """

    resident = True

    def __init__(self, source: InMemory, maps: tuple[Map, ...] = ()) -> None:
        self.source, self.maps = source, maps
        self.n, self.d, self.kind = source.n, source.d, source.kind
        for map in maps:
            self.d = map.width(self.d)

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        step = max(1, BLOCK // max(self.source.d, self.d))
        tell = Progress(f"a pass over {self.n:,} items")
        for start in range(0, self.n, step):
            rows = self.source.matrix[start : start + step]
            for map in self.maps:
                rows = map.part(start, start + rows.shape[0])(rows)
            yield start, rows
            tell(min(1.0, (start + step) / self.n))

    def row_squares(self) -> FloatArray:
        return np.concatenate([row_squares(rows) for _, rows in self.blocks()])

    def squares_of(self, B: FloatArray) -> FloatArray:
        return np.concatenate([row_squares(as_array(rows @ B)) for _, rows in self.blocks()])

    def times(self, B: Matrix) -> FloatArray:
        return np.concatenate([as_array(rows @ B) for _, rows in self.blocks()])

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        if weights is not None or not self.maps:  # a sum of sparse products is one of d x d arrays
            total = self.whole().gram(weights)
        else:
            total = np.zeros((self.d, self.d))
            for _, rows in self.blocks():
                total += as_array(rows.T @ rows)
        check_nonzero(bool(total.any()))
        return total

    def gram_of(self, S: FloatArray) -> FloatArray:
        total = np.zeros((S.shape[1], S.shape[1]))
        for _, rows in self.blocks():
            C = as_array(rows @ S)
            total += C.T @ C
        return total

    def normal(self, S: FloatArray) -> tuple[FloatArray, float]:
        total, length = np.zeros((self.d, S.shape[1])), 0.0
        for _, rows in self.blocks():
            C = as_array(rows @ S)
            total += as_array(rows.T @ C)
            length += float(np.einsum("ij,ij->", C, C))
        return total, length

    @cached_property
    def _whole(self) -> InMemory:
        found: Features = self.source
        for map in self.maps:
            found = found.mapped(map)
        return found.whole()

    def whole(self) -> InMemory:
        return self._whole

    def take(self, items: IntArray) -> Matrix:
        return self._whole.take(items)

    def similarities(self, points: Matrix, scale: float) -> FloatArray:
        return self._whole.similarities(points, scale)

    def mapped(self, map: Map) -> Sliced:
        return Sliced(self.source, (*self.maps, map))

    def owned(self) -> Features:
        return self._whole.owned()

    def disjoint(self) -> bool:
        return not self.maps and self.source.disjoint()

    def fingerprint(self) -> str:
        return self._whole.fingerprint()
