"""Features that are read block by block: larger than memory, or spread over a cluster.

A pass is a function of one block, applied to all of them, where a `Reader` has them: in this
process, or on the workers of a cluster. Maps are applied to each block when it is read.

A pass over all blocks also hashes the rows as they are stored. The first finds the fingerprint;
later ones raise an error if the data have changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dmsgd.features.array import Stored, in_memory
from dmsgd.features.features import Features, RowMap, add_up
from dmsgd.features.readers import Reader
from dmsgd.features.rows import gram, scale_rows, stack
from dmsgd.inputs.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    as_array,
    as_matrix,
    check_nonzero,
    check_vanishing,
)
from dmsgd.inputs.fingerprint import canonical, digest, fingerprint_rows, row_hashes
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.progress import Progress

#: What a pass computes from a block: work(rows, argument).
Work = Callable[[Matrix, Any], Any]

#: Gram matrices of single blocks are kept if they take no more bytes: sums over blocks follow from
#: them without a pass.
KEPT_BYTES = 2**26


@final
@dataclass
class Known:
    """What passes have found out about the rows of a reader; all maps of them share it."""

    fingerprint: str | None = None


class Blocks(Features):
    """The rows of a reader, mapped."""

    def __init__(
        self, reader: Reader, maps: tuple[RowMap, ...] = (), known: Known | None = None
    ) -> None:
        self.reader, self.maps = reader, maps
        self.n, self.d, self.sparse_rows = reader.n, reader.d, reader.sparse_rows
        widest = 0 if reader.sparse_rows else reader.d
        for map in maps:
            self.d = map.width(self.d)
            self.sparse_rows = self.sparse_rows and not map.fills
            widest = max(widest, 0 if self.sparse_rows else self.d)
        self.kind = reader.kind
        if self.sparse_rows:
            self.basis_order = "F"
        self.bounds = reader.bounds(widest)
        self.known = known or Known()
        self._grams: list[FloatArray] | None = None

    def map_blocks(
        self, work: Work, name: str, arguments: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        piece, tasks, full = self._tasks(work, arguments)
        results = self.reader.compute(self.bounds, piece, tasks, name)
        hashes: list[npt.NDArray[np.uint64]] = []
        progress = Progress(f"a pass over {self.n:,} items")
        for number, argument in enumerate(tasks):
            if argument is None:
                yield None
                continue
            result, found = next(results)
            hashes.append(found)
            yield result
            progress((number + 1) / len(tasks))
        if full:
            self._compare(hashes)

    def _tasks(self, work: Work, given: Sequence[Any] | None) -> tuple[Any, list[Any], bool]:
        """Return what the reader is to compute, with which arguments, and if from all blocks."""
        reader, ends = self.reader, list(pairwise(self.bounds.tolist()))
        reader.check_unchanged()
        given = [()] * len(ends) if given is None else given
        full = all(argument is not None for argument in given)
        tasks = [
            None
            if argument is None
            else (start, stop, tuple(map.part(start, stop) for map in self.maps), argument)
            for (start, stop), argument in zip(ends, given, strict=True)
        ]
        name, is_sparse = reader.name, reader.sparse_rows
        return partial(process_block, work, full, name, is_sparse, reader.d), tasks, full

    def _sparse_gram(self, work: Work, arguments: Sequence[Any] | None = None) -> FloatArray:
        """Return FᵀF of the sparse rows that `work` returns: one total, and not one per block."""
        piece, tasks, _ = self._tasks(work, arguments)
        total, hashes = self.reader.sparse_gram(self.bounds, piece, tasks, self.d)
        self._compare(hashes)
        return total.matrix()

    def _compare(self, hashes: list[npt.NDArray[np.uint64]]) -> None:
        found = fingerprint_rows((self.reader.n, self.reader.d), hashes)
        if self.known.fingerprint not in (None, found):
            raise ValueError(
                f"{self!r} has changed since it was first read, so that draws would follow neither "
                f"what was there nor what is there now; build the design again"
            )
        self.known.fingerprint = found

    def take(self, items: IntArray) -> Matrix:
        items = np.asarray(items)
        order = np.argsort(items, kind="stable")
        cuts = np.searchsorted(items[order], self.bounds)
        arguments = [
            items[order[a:b]] - start if b > a else None
            for (a, b), start in zip(pairwise(cuts.tolist()), self.bounds[:-1], strict=True)
        ]
        found = [part for part in self.map_blocks(_rows_at, "take", arguments) if part is not None]
        positions = np.empty(items.size, dtype=np.int64)
        positions[order] = np.arange(items.size)
        return stack(found, self.d)[positions]

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        if weights is not None:
            root = np.sqrt(weights)
            arguments = [(root[a:b],) for a, b in pairwise(self.bounds.tolist())]
            if self.sparse_rows:
                return self._sparse_gram(_scaled, arguments)
            return add_up(self.map_blocks(_weighted_gram, "gram", arguments))
        keep = 8 * self.d**2 * (self.bounds.size - 1) <= KEPT_BYTES
        grams: list[FloatArray] = []
        if self.sparse_rows and not keep:
            total = self._sparse_gram(_unchanged)
        else:
            total = np.zeros((self.d, self.d))
            for part in self._each(gram, "gram"):
                total += part
                if keep:
                    grams.append(part)
        self._grams = grams if keep else None
        check_nonzero(bool(total.any()))
        check_vanishing(float(np.trace(total)), "the features")
        return total

    def gram_masses(self, B: FloatArray) -> FloatArray | None:
        if self._grams is None:
            return None
        return np.array([np.einsum("in,in->n", B, G @ B) for G in self._grams])

    def mapped(self, map: RowMap) -> Blocks:
        return Blocks(self.reader, (*self.maps, map), self.known)

    def to_memory(self) -> Stored:
        what, advice = f"all of {self!r} in memory", "use a part of the data, or fewer features"
        if not self.sparse_rows:
            reserve(self.n * self.d, what, advice)
        parts: list[Matrix] = []
        for block in self.blocks():
            parts.append(block)
            if self.sparse_rows:  # an entry is a number and a column
                reserve(2 * sum(part.nnz for part in parts) + self.n, what, advice)
        return in_memory(stack(parts, self.d), self.fingerprint())

    def has_counts(self) -> bool:
        return self.sparse_rows and all(self._each(_nonnegative, "counts"))

    def _gram_products(self) -> float:
        return 0.0 if self.sparse_rows else super()._gram_products()

    def fingerprint(self) -> str:
        if self.known.fingerprint is None:
            for _ in Blocks(self.reader, (), self.known)._each(_nothing, "fingerprint"):
                pass
        found = self.known.fingerprint
        assert found is not None
        for map in self.maps:
            found = digest(found, map.fingerprint())
        return found


def process_block(
    work: Work,
    full: bool,
    name: str,
    is_sparse: bool,
    d: int,
    raw: Any,
    start: int,
    stop: int,
    maps: Sequence[Callable[[Matrix], Matrix]],
    argument: Any,
) -> tuple[Any, Any]:
    """Check a block, map it, and return what `work` makes of it.

    Also the hashes of its rows as they are stored, in a `full` pass.
    """
    name = f"{name}{': ' * bool(name)}the block of rows from {start} on"
    if raw.shape != (stop - start, d):
        raise ValueError(f"{name} has shape {raw.shape} and should have {(stop - start, d)}")
    if sparse.issparse(raw) and not is_sparse:
        raise TypeError(
            f"{name} is sparse and the Dask array is not declared so; make it with "
            f"meta=scipy.sparse.csr_array((0, 0))"
        )
    block: Any = np.zeros((0, d))
    if start < stop:
        try:
            block = as_matrix(raw, name, allow_tiny=True)
        except ValueError as error:
            raise ValueError(f"{error} (rows count from the block's first, {start})") from None
    if is_sparse:
        block = canonical(block if sparse.issparse(block) else sparse.csr_array(block))
    hashes = row_hashes(block) if full else None
    for map in maps:
        block = map(block)
    return work(block if is_sparse else as_array(block), argument), hashes


def _nothing(rows: Matrix) -> None:
    return None


def _nonnegative(rows: Matrix) -> bool:
    return bool(rows.data.min(initial=0.0) >= 0)


def _unchanged(rows: Matrix, argument: Any) -> Matrix:
    return rows


def _rows_at(rows: Matrix, items: IntArray) -> Matrix:
    return rows[items]


def _scaled(rows: Matrix, argument: tuple[FloatArray]) -> Matrix:
    return scale_rows(rows, argument[0])


def _weighted_gram(rows: Matrix, argument: tuple[FloatArray]) -> FloatArray:
    return gram(scale_rows(rows, argument[0]))
