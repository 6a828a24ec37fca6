"""Features that are read block by block: larger than memory, or spread over a cluster.

A pass is a function of one block, applied to all of them where a `Reader` has them, after maps. A
pass over all blocks also hashes the rows as they are stored. The first finds the fingerprint; later
ones raise an error if the data have changed since.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import attrgetter, getitem, iadd
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.features.array import InMemory
from dmsgd.features.contract import Features, RowMap, joined
from dmsgd.features.products import add_sparse_gram, gram, mirrored, stack
from dmsgd.features.readers import Reader, changed
from dmsgd.inputs.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    as_array,
    as_matrix,
    check_nonzero,
    check_vanishing,
    is_sparse,
)
from dmsgd.inputs.fingerprint import canonical, digest, fingerprint_rows, row_hashes
from dmsgd.runtime.memory import fits_in_memory, memory_limit, reserve
from dmsgd.runtime.progress import Progress
from dmsgd.runtime.threads import one_blas_thread, thread_count

#: Gram matrices of single blocks are kept if they take no more bytes: sums over blocks follow from
#: them without a pass.
KEPT_BYTES = 2**26
#: A core that works on a block takes up to this many times its memory.
SCRATCH = 3


class Blocks(Features):
    """The rows of a reader, mapped."""

    def __init__(self, reader: Reader, maps: tuple[RowMap, ...] = ()) -> None:
        self.reader, self.maps = reader, maps
        self.n, self.d, self.sparse_rows = reader.n, reader.d, reader.sparse_rows
        widest = 0 if reader.sparse_rows else reader.d
        for map in maps:
            self.d = map.width(self.d)
            self.sparse_rows = self.sparse_rows and not map.fills
            widest = max(widest, 0 if self.sparse_rows else self.d)
        self.kind = reader.kind
        self.bounds = reader.bounds(widest)
        self._row_bytes = max(8 * widest, reader.bytes // reader.n)
        self._grams: list[FloatArray] | None = None

    def map_blocks(
        self, work: Callable[..., Any], name: str, arguments: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield work(rows, *arguments[i]) of each block i; None where arguments[i] is None."""
        piece, tasks, full = self._tasks(work, arguments)
        results = self._compute(piece, tasks, name)
        hashes: list[npt.NDArray[np.uint64]] = []
        tell = Progress(f"a pass over {self.n:,} items")
        for number, task in enumerate(tasks, 1):
            if task is None:
                yield None
                continue
            result, found = next(results)
            hashes.append(found)
            yield result
            tell(number / len(tasks))
        if full:
            self._compare(hashes)

    def map_in_turn(
        self, work: Callable[..., Any], name: str, arguments: Sequence[Any], workers: int
    ) -> Iterator[Any]:
        """Yield work(rows, *arguments[i], workers) of each block i, for work that takes long.

        Here this thread does it, so that Ctrl-C ends it, and may start `workers` threads.
        """
        for rows, given in zip(self.blocks(), arguments, strict=True):
            yield work(rows, *given, workers)

    def _tasks(
        self, work: Callable[..., Any], arguments: Sequence[Any] | None = None
    ) -> tuple[Any, list[Any], bool]:
        """Return what the reader is to compute, with which arguments, and if from all blocks."""
        reader, ends = self.reader, list(pairwise(self.bounds.tolist()))
        reader.check_unchanged()
        given = [()] * len(ends) if arguments is None else arguments
        full = all(each is not None for each in given)
        tasks = [
            None if each is None else (*at, [map.part(*at) for map in self.maps], each)
            for at, each in zip(ends, given, strict=True)
        ]
        about = full, reader.name, reader.sparse_rows, reader.d
        return partial(process_block, work, *about), tasks, full

    def _compute(self, piece: Callable[..., Any], tasks: Sequence[Any], name: str) -> Iterator[Any]:
        """Yield piece(raw rows, *task) of each block whose task is not None, in order.

        Each core works on a block that it reads by itself, if these fit in half of the memory.
        """

        def work(block: int) -> Any:
            return piece(self.reader.read(*self.bounds[block : block + 2].tolist()), *tasks[block])

        wanted = [block for block, task in enumerate(tasks) if task is not None]
        # Only the main thread uses all cores: of other threads several may draw at once.
        here = threading.current_thread() is threading.main_thread()
        needed = SCRATCH * self._row_bytes * int(np.diff(self.bounds).max())
        threads = min(thread_count(-1), max(1, memory_limit() // (2 * needed))) if here else 1
        pending: deque[Future[Any]] = deque()

        with one_blas_thread if threads > 1 else nullcontext(), ThreadPoolExecutor(threads) as pool:
            for block in wanted:
                pending.append(pool.submit(work, block))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def _compare(self, hashes: list[npt.NDArray[np.uint64]]) -> None:
        found = fingerprint_rows((self.reader.n, self.reader.d), hashes)
        if self.reader.fingerprint not in (None, found):
            raise changed(repr(self), "first read")
        self.reader.fingerprint = found

    def blocks(self) -> Iterator[Matrix]:
        return self.map_blocks(itself, "load")

    def take(self, items: IntArray) -> Matrix:
        items = np.asarray(items)
        order = np.argsort(items, kind="stable")
        cuts = np.searchsorted(items[order], self.bounds)
        arguments = [
            (items[order[a:b]] - start,) if b > a else None
            for (a, b), start in zip(pairwise(cuts.tolist()), self.bounds[:-1], strict=True)
        ]
        found = [part for part in self.map_blocks(getitem, "take", arguments) if part is not None]
        return stack(found or [np.empty((0, self.d))])[np.argsort(order)]

    def gram(self) -> FloatArray:
        keep = 8 * self.d**2 * (self.bounds.size - 1) <= KEPT_BYTES
        self._grams = list(self._each(gram, "gram")) if keep else None
        total = self._gram() if self._grams is None else np.asarray(sum(self._grams))
        check_nonzero(bool(total.any()))
        check_vanishing(float(np.trace(total)), "the features")
        return total

    def _gram(self) -> FloatArray:
        """Return FᵀF; of sparse rows from one total, and not one per block."""
        if not self.sparse_rows:
            return np.asarray(reduce(iadd, self._each(gram, "gram")))
        total = np.zeros((self.d, self.d))
        return mirrored(reduce(add_sparse_gram, self.map_blocks(itself, "gram"), total))

    def gram_masses(self, B: FloatArray) -> FloatArray | None:
        if self._grams is None:
            return None
        return np.array([np.einsum("in,in->n", B, G @ B) for G in self._grams])

    def mapped(self, map: RowMap) -> Blocks:
        return type(self)(self.reader, (*self.maps, map))

    def to_memory(self) -> InMemory:
        what, advice = f"all of {self!r} in memory", "use a part of the data, or fewer features"
        if not self.sparse_rows:
            reserve(self.n * self.d, what, advice)
            return InMemory(joined(self.blocks(), self.n), self.fingerprint())
        parts: list[Matrix] = []
        entries = 0
        for block in self.blocks():
            parts.append(block)
            entries += block.nnz  # a number and a column; parts and the whole are held at once
            reserve(2 * (2 * entries + self.n), what, advice)
        return InMemory(stack(parts), self.fingerprint())

    @cached_property
    def _fingerprint(self) -> str:
        if self.reader.fingerprint is None:
            list(type(self)(self.reader).map_blocks(attrgetter("shape"), "fingerprint"))
        found = str(self.reader.fingerprint)
        for map in self.maps:
            found = digest(found, map.fingerprint())
        return found


def process_block(
    work: Callable[..., Any], full: bool, name: str, sparse_rows: bool, d: int, raw: Any, *task: Any
) -> tuple[Any, Any]:
    """Check a block, map it, and return what `work` makes of it.

    Also the hashes of its rows as they are stored, in a `full` pass.
    """
    start, stop, maps, arguments = task
    name = f"{name}: the block of rows from {start} on"
    if raw.shape != (stop - start, d):
        raise ValueError(f"{name} has shape {raw.shape} and should have {(stop - start, d)}")
    if is_sparse(raw) and not sparse_rows:
        raise TypeError(
            f"{name} is sparse and the Dask array is not declared so; make it with "
            f"meta=scipy.sparse.csr_array((0, 0))"
        )
    try:
        block = as_matrix(raw, name, allow_tiny=True)
    except ValueError as error:
        raise ValueError(f"{error} (rows count from the block's first, {start})") from None
    if sparse_rows:
        from scipy import sparse

        block = canonical(block if is_sparse(block) else sparse.csr_array(block))
    hashes = row_hashes(block) if full else None
    for map in maps:
        block = map(block)
    return work(block if sparse_rows else as_array(block), *arguments), hashes


def itself(value: Any) -> Any:
    """Return the value."""
    return value


def is_large(raw: npt.NDArray[Any]) -> bool:
    """Return whether an (n, d) array is read in blocks: there is no memory for a copy of it."""
    ordered = raw.ndim == 2 and raw.flags.c_contiguous and raw.dtype.kind in "fiu"
    return ordered and 8 * raw.size > 2**24 and not fits_in_memory(8 * raw.size)


@final
class ArrayReader(Reader):
    """The rows of an array, which must not change while it is in use: passes notice it."""

    kind, name = "in slices", "X"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array, self.states = array, {}
        self.n, self.d = array.shape

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        return self.array[start:stop]


def in_blocks(array: npt.NDArray[Any]) -> Blocks:
    """Return features that read an array in memory, as it is, block by block."""
    return Blocks(ArrayReader(array))
