"""A matrix that is read block by block.

Whatever is computed from it is a pass: a function of one block, applied to all of them. A pass over
a file reads the blocks one after the other; a pass over a Dask array runs where the blocks are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from dmsgd.fingerprints import hash_of_rows, row_hashes
from dmsgd.inputs.arrays import FloatArray, IntArray, as_matrix
from dmsgd.inputs.memory import memory_limit, reserve
from dmsgd.inputs.threads import thread_count

#: A block takes at most this many bytes (as float64), or a 32nd of the memory that may be used.
BLOCK_BYTES = 2**25

#: What a pass computes from a block: work(block, shared, argument).
Work = Callable[[FloatArray, Any, Any], Any]


class Transform(Protocol):
    """Turns blocks of features into blocks of other features."""

    def width(self, columns: int) -> int:
        """Return the number of columns of the result."""

    def part(self, start: int, stop: int) -> Callable[[FloatArray], FloatArray]:
        """Return the function for the rows start..stop; it can be pickled."""


class Rows(ABC):
    """An (n, d) matrix in blocks of rows.

    shape:  (n, d).
    bounds: row numbers at which blocks begin and end, from 0 to n; blocks may be empty.
    """

    shape: tuple[int, int]
    bounds: IntArray
    transforms: tuple[Transform, ...] = ()
    ndim = 2
    #: The fingerprint, once a pass has found it; see `fingerprint`.
    known: str | None = None

    @abstractmethod
    def run(
        self, work: Work, name: str, shared: Any = None, arguments: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield work(block, shared, argument) for each block, in order.

        Blocks whose argument is None are not read, and None is yielded for them; without
        `arguments` all are read. `name` says what is going on where tasks have names.
        """

    def reduce(
        self, work: Work, combine: Callable[[Any, Any], Any], name: str
    ) -> tuple[Any, list[Any]]:
        """Return (combined, others) for a `work` that returns pairs: the first ones combined, the
        second ones in order."""
        combined, others = None, []
        for first, second in self.run(work, name):
            combined = first if combined is None else combine(combined, first)
            others.append(second)
        return combined, others

    def take(self, items: IntArray) -> FloatArray:
        """Return the rows with these numbers, in that order; reads the blocks they are in."""
        order = np.argsort(items, kind="stable")
        cuts = np.searchsorted(items[order], self.bounds)
        arguments = [
            items[order[a:b]] - start if b > a else None
            for (a, b), start in zip(pairwise(cuts.tolist()), self.bounds[:-1], strict=True)
        ]
        out = np.empty((items.size, self.shape[1]))
        found = [part for part in self.run(_rows_at, "take", None, arguments) if part is not None]
        if found:
            out[order] = np.concatenate(found)
        return out

    def fingerprint(self) -> str:
        """Return the hash that the same matrix has in memory; a pass, unless one has found it."""
        if self.known is None:
            self.known = hash_of_rows(self.shape, self.run(_hashes, "fingerprint"))
        return self.known

    def mapped(self, transform: Transform) -> Rows:
        """Return the same rows with `transform` applied to every block as it is read."""
        other = copy(self)
        other.transforms = (*self.transforms, transform)
        other.shape = (self.shape[0], transform.width(self.shape[1]))
        other.known = None
        return other

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        advice = "pass the features to diversify, Linear or RBF, which read them in blocks"
        reserve(self.shape[0] * self.shape[1], f"all of {self!r}", advice)
        return np.concatenate(list(self.run(_whole, "load"))).astype(dtype or np.float64)

    def parts(self, block: int) -> tuple[Callable[[FloatArray], FloatArray], ...]:
        """Return what is to be applied to a block, in order."""
        start, stop = self.bounds[block : block + 2].tolist()
        return tuple(transform.part(start, stop) for transform in self.transforms)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]:,} x {self.shape[1]:,})"


class StoredRows(Rows):
    """Rows that this process reads from somewhere."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Any:
        """Return the rows start..stop as they are stored."""

    def run(
        self, work: Work, name: str, shared: Any = None, arguments: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield the results. Each core works on a block of its own, read by itself."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        threads = thread_count(-1)
        pending: deque[Future[Any] | None] = deque()
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            for block in range(self.bounds.size - 1):
                argument = () if arguments is None else arguments[block]
                asked = argument is not None
                pending.append(
                    pool.submit(self._done, block, work, shared, argument) if asked else None
                )
                while len(pending) > threads:
                    yield _result(pending.popleft())
            while pending:
                yield _result(pending.popleft())

    def _done(self, block: int, work: Work, shared: Any, argument: Any) -> Any:
        return work(self._block(block), shared, argument)

    def _block(self, block: int) -> FloatArray:
        start, stop = self.bounds[block : block + 2].tolist()
        return prepared(self.read(start, stop), start, self.parts(block))


def prepared(
    raw: Any, start: int, parts: Sequence[Callable[[FloatArray], FloatArray]]
) -> FloatArray:
    """Return a block as float64, checked and transformed; its first row is number `start`."""
    if len(raw) == 0:
        block = np.zeros(np.shape(raw))
    else:
        try:
            block = as_matrix(raw, f"the block of rows from {start} on", part=True)
        except ValueError as error:
            raise ValueError(f"{error} (rows count from the block's first, {start})") from None
    for part in parts:
        block = part(block)
    return block


def even_bounds(n: int, columns: int) -> IntArray:
    """Return bounds of equal blocks that keep to the memory limit."""
    size = min(BLOCK_BYTES, memory_limit() // 32)
    rows = max(1, int(size) // (8 * columns))
    return np.append(np.arange(0, n, rows), n).astype(np.int64)


def _result(future: Future[Any] | None) -> Any:
    return None if future is None else future.result()


def _hashes(block: FloatArray, shared: None, argument: Any) -> Any:
    return row_hashes(block)


def _whole(block: FloatArray, shared: None, argument: Any) -> FloatArray:
    return block


def _rows_at(block: FloatArray, shared: None, rows: IntArray) -> FloatArray:
    return block[rows]
