"""A store says where the rows of a matrix are, and where blocks of them begin and end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dmsgd.features.sparse_gram import SparseGram
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.memory import memory_limit
from dmsgd.inputs.progress import Progress

#: A block takes at most this many bytes (as float64), or a 32nd of the memory that may be used.
BLOCK_BYTES = 2**25


class Store(ABC):
    """Where the rows of a matrix are. Immutable: what changes underneath is noticed.

    n, d: its size.
    kind: in words.
    file: what its rows are read from, as messages name it; "" if that has no name.
    sparse_rows: whether they are CSR arrays.
    """

    n: int
    d: int
    kind: str
    file: str = ""
    sparse_rows: bool = False

    @abstractmethod
    def bounds(self, width: int) -> IntArray:
        """Return where blocks begin and end, from 0 to n, for rows that become `width` numbers.

        Where rows are sparse, `width` counts those that maps make dense, beside their entries.
        """

    @abstractmethod
    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield piece(raw rows, *argument) for each block whose argument is not None, in order."""

    def total(
        self,
        bounds: IntArray,
        piece: Callable[..., Any],
        arguments: Sequence[Any],
        begin: Callable[[], SparseGram],
        name: str,
    ) -> tuple[SparseGram, list[Any]]:
        """Return begin() with the rows of all blocks added, and what else `piece` returns of them.

        `piece` returns pairs of rows and something else.
        """
        total, rest, tell = begin(), [], Progress(f"a pass over {self.n:,} items")
        for rows, other in self.compute(bounds, piece, arguments, name):
            total.add(rows)
            rest.append(other)
            tell(len(rest) / len(arguments))
        return total, rest

    def refuse_changed(self) -> None:  # noqa: B027 - not all can tell without reading
        """Raise if the data are not those that were there at the beginning."""


def block_bytes() -> int:
    """Return what a block may take."""
    return int(min(BLOCK_BYTES, memory_limit() // 32))


def even_bounds(n: int, width: int) -> IntArray:
    """Return bounds of equal blocks of rows of `width` numbers that keep to the memory limit."""
    rows = max(1, block_bytes() // (8 * width))
    return np.append(np.arange(0, n, rows), n).astype(np.int64)
