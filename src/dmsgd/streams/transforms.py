"""Feature maps applied to each block as it is read (see `dmsgd.features` for what they mean)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class EachBlock:
    """A function of blocks that does not ask which rows they hold; `columns` if it changes them."""

    function: Callable[[FloatArray], FloatArray]
    columns: int | None = None

    def width(self, columns: int) -> int:
        """Return the number of columns of the result."""
        return columns if self.columns is None else self.columns

    def part(self, start: int, stop: int) -> Callable[[FloatArray], FloatArray]:
        """Return the function, which is not asked about empty blocks."""
        return partial(_unless_empty, transform=self)


@final
@dataclass(frozen=True, eq=False)
class WithLabels:
    """[(1-w)X, wH] for class numbers `codes` of all rows."""

    codes: IntArray
    classes: int
    w: float

    def width(self, columns: int) -> int:
        """Return the number of features and classes; w = 1 leaves the features out."""
        return self.classes if self.w == 1 else columns + self.classes

    def part(self, start: int, stop: int) -> Callable[[FloatArray], FloatArray]:
        """Return the function for these rows, with their labels only."""
        return partial(_with_labels, codes=self.codes[start:stop], classes=self.classes, w=self.w)


@final
@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Row i times factors[i]."""

    factors: FloatArray

    def width(self, columns: int) -> int:
        """Return the number of columns as it was."""
        return columns

    def part(self, start: int, stop: int) -> Callable[[FloatArray], FloatArray]:
        """Return the function for these rows."""
        return partial(_scaled, factors=self.factors[start:stop])


def _unless_empty(block: FloatArray, transform: EachBlock) -> FloatArray:
    if len(block):
        return transform.function(block)
    return np.zeros((0, transform.width(block.shape[1])))


def _scaled(block: FloatArray, factors: FloatArray) -> FloatArray:
    return block * factors[:, None]


def _with_labels(block: FloatArray, codes: IntArray, classes: int, w: float) -> FloatArray:
    labels = np.zeros((len(block), classes))
    labels[np.arange(len(block)), codes] = w
    return labels if w == 1 else np.hstack([(1 - w) * block, labels])
