"""`LargeArray`: an array in memory, read in blocks so that nothing of its size is made.

It stays in the type it was given in. Row i is scale_i X_i, and a label column: as long as maps do
no more than that, single rows are computed without reading a block.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.features.array import BLOCK
from dmsgd.features.blocks import Blocks
from dmsgd.features.features import RowMap
from dmsgd.features.readers import FileReader, Reader, even_bounds
from dmsgd.features.row_maps import ConcatLabels, Normalize, ScaleRows, row_lengths
from dmsgd.inputs.arrays import TINY, FloatArray, IntArray, Matrix
from dmsgd.inputs.memory import fits_in_memory
from dmsgd.samplers.computed_rows import ComputedRows, DenseRows

#: Blocks begin at multiples of this many rows, as `samplers/computed_rows.py` expects.
ALIGNED = 64


def is_large(raw: npt.NDArray[Any]) -> bool:
    """Return whether an (n, d) array is read in blocks: there is no memory for a copy of it."""
    ordered = raw.ndim == 2 and raw.flags.c_contiguous and raw.dtype.kind in "fiu"
    return ordered and 8 * raw.size > 2**24 and not fits_in_memory(8 * raw.size)


@final
class ArrayReader(FileReader):
    """The rows of an array, which must not change while it is in use: passes notice it."""

    kind = "in slices"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array, self.states = array, {}
        self.n, self.d = (int(size) for size in array.shape)

    def bounds(self, width: int) -> IntArray:
        """Return bounds of equal blocks."""
        return even_bounds(self.n, width, ALIGNED)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the rows start to stop, in the type they are stored in."""
        return self.array[start:stop]


def in_blocks(array: npt.NDArray[Any]) -> Blocks:
    """Return features that read an array in memory block by block."""
    reader = ArrayReader(array)
    if array.dtype not in (np.float32, np.float64):
        return Blocks(reader)
    return LargeArray(reader, DenseRows(array, np.ones(reader.n)))


@final
class LargeArray(Blocks):
    """A large array under maps that scale rows and append labels."""

    basis_order = "F"

    def __init__(self, reader: Reader, rows: DenseRows, maps: tuple[RowMap, ...] = ()) -> None:
        super().__init__(reader, maps)
        self.rows = rows

    def take(self, items: IntArray) -> Matrix:
        return self.rows.take(np.asarray(items), self.d)

    def mapped(self, map: RowMap) -> Blocks:
        rows, maps = _mapped_rows(self.rows, map), (*self.maps, map)
        return Blocks(self.reader, maps) if rows is None else LargeArray(self.reader, rows, maps)

    def gram_masses(self, B: FloatArray) -> None:
        return None  # Gram matrices are of blocks, and masses here of 64 rows

    def computed_rows(self, B: FloatArray) -> ComputedRows:
        return ComputedRows(self, self.rows, np.ascontiguousarray(B.T))


def _mapped_rows(rows: DenseRows, map: RowMap) -> DenseRows | None:
    """Return what `map` makes of the rows, if compiled loops can compute it."""
    if isinstance(map, ScaleRows):
        return rows.scaled(map.factors)
    if isinstance(map, ConcatLabels) and map.w < 1:
        return rows.labelled(map.codes, map.w)
    if isinstance(map, Normalize):
        step = max(1, BLOCK // rows.X.shape[1])
        parts = (rows.X[first : first + step] for first in range(0, rows.X.shape[0], step))
        found = [row_lengths(part.astype(np.float64)) for part in parts]
        lengths = np.concatenate([length / stretch for length, stretch in found])
        lengths = np.hypot(rows.scale * lengths, 0.0 if rows.extra is None else rows.extra)
        if ((lengths > 0) & (lengths < TINY)).any():
            return None  # no number makes the shortest rows long at once
        return rows.scaled(1 / np.where(lengths > 0, lengths, 1.0))
    return None
