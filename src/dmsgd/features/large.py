"""Large arrays in memory: read in blocks as files are, so that nothing of their size is made.

They stay in the type they were given in. Single rows can be had without reading a block: where the
maps on them do no more than scale rows and set labels beside them, `DenseRows` has what
a row takes.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.features.readers import FileStore
from dmsgd.features.store import even_bounds
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.memory import fits_in_memory
from dmsgd.samplers.computed_rows import DenseRows

#: Blocks begin at multiples of this many rows, so that stretches of rows lie in one.
ALIGNED = 64


def is_large(raw: npt.NDArray[Any]) -> bool:
    """Return whether an (n, d) array is read in blocks: there is no memory for a copy of it."""
    ordered = raw.ndim == 2 and raw.flags.c_contiguous and raw.dtype.kind in "fiu"
    return ordered and 8 * raw.size > 2**24 and not fits_in_memory(8 * raw.size)


@final
class ArrayStore(FileStore):
    """The rows of an array, which nobody may change while it is in use: passes notice it."""

    kind = "in slices"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array, self.states = array, {}
        self.n, self.d = (int(size) for size in array.shape)

    def bounds(self, width: int) -> IntArray:
        """Return bounds of equal blocks."""
        rows = max(1, int(even_bounds(self.n, width)[1]) // ALIGNED) * ALIGNED
        return np.append(np.arange(0, self.n, rows), self.n).astype(np.int64)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the rows start..stop, in the type they are stored in."""
        return self.array[start:stop]

    def direct(self) -> DenseRows | None:
        """Return the rows as they are, if compiled loops can read them."""
        if self.array.dtype not in (np.float32, np.float64):
            return None
        return DenseRows(self.array, np.ones(self.n))
