"""Features that are read block by block: larger than memory, or spread over a cluster.

Whatever is computed from them is a pass: a function of one block, applied to all of them. A store
says where rows are: in a file, whose blocks this process reads, or on a cluster, where passes run
where the blocks are. Maps are applied to each block when it is read; the store never changes.

A pass over all blocks also hashes the rows as they are stored. The first one finds the fingerprint
on the way; every later one finds out if the data have changed since.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.features import passes
from dmsgd.features.direct import Direct
from dmsgd.features.fingerprints import digest, hash_of_rows, row_hashes
from dmsgd.features.interface import InPasses, Map, as_array
from dmsgd.features.resident import Resident, held
from dmsgd.inputs.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    as_matrix,
    refuse_vanishing,
    refuse_zero,
)
from dmsgd.inputs.memory import memory_limit, reserve

#: A block takes at most this many bytes (as float64), or a 32nd of the memory that may be used.
BLOCK_BYTES = 2**25

#: The Gram matrices of single blocks are kept if they take no more than this: they tell the
#: masses of blocks, which otherwise take a pass.
KEPT_BYTES = 2**26

#: What a pass computes from a block: work(rows, argument).
Work = Callable[[FloatArray, Any], Any]


class Store(ABC):
    """Where the rows of a matrix are. Immutable: what changes underneath is noticed.

    n, d: its size.
    kind: in words.
    file: what its rows are read from, as messages name it; "" if that has no name.
    """

    n: int
    d: int
    kind: str
    file: str = ""

    @abstractmethod
    def bounds(self, width: int) -> IntArray:
        """Return where blocks begin and end, from 0 to n, for rows of `width` numbers."""

    @abstractmethod
    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield piece(raw rows, *argument) for each block whose argument is not None, in order."""

    def direct(self) -> Direct | None:
        """Return how compiled loops make single rows, where that is quicker than blocks."""
        return None

    def refuse_changed(self) -> None:  # noqa: B027 - not all can tell without reading
        """Raise if the data are not those that were there at the beginning."""


@final
@dataclass
class _Known:
    """What passes have found out about a store; all features over it share it."""

    fingerprint: str | None = None


@final
class Blocks(InPasses):
    """The rows of a store, mapped."""

    def __init__(
        self, store: Store, maps: tuple[Map, ...] = (), known: _Known | None = None
    ) -> None:
        self.store, self.maps = store, maps
        self.n, widths = store.n, [store.d]
        for map in maps:
            widths.append(map.width(widths[-1]))
        self.d = widths[-1]
        self.kind = store.kind
        self.bounds = store.bounds(max(widths))
        self._known = known or _Known()
        self._grams: list[FloatArray] | None = None
        self._direct: Direct | None = None

    def run(self, work: Work, name: str, arguments: Sequence[Any] | None = None) -> Iterator[Any]:
        self.store.refuse_changed()
        starts, stops = self.bounds[:-1].tolist(), self.bounds[1:].tolist()
        given: Sequence[Any] = [()] * len(starts) if arguments is None else arguments
        full = all(argument is not None for argument in given)
        asked = [
            None if argument is None else (start, self._parts(start, stop), argument)
            for start, stop, argument in zip(starts, stops, given, strict=True)
        ]
        results = self.store.compute(
            self.bounds, partial(_piece, work, full, self.store.file), asked, name
        )
        hashes: list[npt.NDArray[np.uint64]] = []
        for argument in given:
            if argument is None:
                yield None
                continue
            result, found = next(results)
            hashes.append(found)
            yield result
        if full:
            self._compare(hash_of_rows((self.store.n, self.store.d), hashes))

    def _parts(self, start: int, stop: int) -> tuple[Callable[[Matrix], Matrix], ...]:
        return tuple(map.part(start, stop) for map in self.maps)

    def _compare(self, found: str) -> None:
        if self._known.fingerprint not in (None, found):
            raise ValueError(
                f"{self!r} has changed since it was first read, so that draws would follow neither "
                f"what was there nor what is there now; build the design again"
            )
        self._known.fingerprint = found

    def take(self, items: IntArray) -> FloatArray:
        items, direct = np.asarray(items), self.direct()
        if direct is not None:
            return direct.take(items, self.d)
        order = np.argsort(items, kind="stable")
        cuts = np.searchsorted(items[order], self.bounds)
        arguments = [
            items[order[a:b]] - start if b > a else None
            for (a, b), start in zip(pairwise(cuts.tolist()), self.bounds[:-1], strict=True)
        ]
        out = np.empty((items.size, self.d))
        found = [part for part in self.run(passes.rows_at, "take", arguments) if part is not None]
        if found:
            out[order] = np.concatenate(found)
        return out

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        parts = self.run(passes.whole, "load")
        for start, rows in zip(self.bounds[:-1].tolist(), parts, strict=True):
            if len(rows):
                yield start, rows

    def row_squares(self) -> FloatArray:
        return np.concatenate(list(self.run(passes.squares, "squares")))

    def squares_of(self, B: FloatArray) -> FloatArray:
        return np.concatenate(list(self.run(partial(passes.squares_of, B=B), "squares")))

    def times(self, B: Matrix) -> FloatArray:
        reserve(self.n * B.shape[1], f"{B.shape[1]} columns for {self!r}", "ask for fewer")
        return np.concatenate(list(self.run(partial(passes.times, B=B), "times")))

    def similarities(self, points: Matrix, scale: float) -> FloatArray:
        reserve(
            self.n * points.shape[0], f"{points.shape[0]} columns for {self!r}", "ask for fewer"
        )
        work = partial(passes.similar, points=points, scale=scale)
        return np.concatenate(list(self.run(work, "similarities")))

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        if weights is not None:
            root = np.sqrt(weights)
            arguments = [(root[a:b],) for a, b in pairwise(self.bounds.tolist())]
            return _total(self.run(passes.weighted_gram, "gram", arguments))
        keep = 8 * self.d**2 * (self.bounds.size - 1) <= KEPT_BYTES
        grams: list[FloatArray] = []
        total = np.zeros((self.d, self.d))
        for part in self.run(passes.gram, "gram"):
            total += part
            if keep:
                grams.append(part)
        self._grams = grams if keep else None
        refuse_zero(bool(total.any()))
        refuse_vanishing(float(np.trace(total)), "the features")
        return total

    def gram_of(self, S: FloatArray) -> FloatArray:
        return _total(self.run(partial(passes.gram_of, S=S), "gram"))

    def normal(self, S: FloatArray) -> tuple[FloatArray, float]:
        found = list(self.run(partial(passes.normal, S=S), "normal"))
        return np.sum([part for part, _ in found], axis=0), float(sum(size for _, size in found))

    def block_masses(self, B: FloatArray, precise: bool) -> FloatArray | None:
        if self._grams is None or precise:
            return None
        return np.array([np.einsum("in,in->n", B, G @ B) for G in self._grams])

    def survey(self, B: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = list(self.run(partial(passes.surveyed, B=B, weights=weights), "survey"))
        return np.array([mass for mass, _ in found]), np.concatenate([b for _, b in found])

    def mapped(self, map: Map) -> Blocks:
        return Blocks(self.store, (*self.maps, map), self._known)

    def whole(self) -> Resident:
        advice = "use a part of the data, or fewer features"
        reserve(self.n * self.d, f"all of {self!r} in memory", advice)
        return held(np.concatenate([rows for _, rows in self.blocks()]), self.fingerprint())

    def owned(self) -> Blocks:
        return self

    def passes(self) -> Blocks:
        return self

    def direct(self) -> Direct | None:
        if self._direct is None:
            self._direct = self.store.direct()
            for map in self.maps:
                self._direct = None if self._direct is None else map.direct(self._direct)
        return self._direct

    def fingerprint(self) -> str:
        if self._known.fingerprint is None:
            for _ in Blocks(self.store, (), self._known).run(passes.nothing, "fingerprint"):
                pass
        found = self._known.fingerprint
        assert found is not None
        for map in self.maps:
            found = digest(found, map.fingerprint())
        return found


def even_bounds(n: int, width: int) -> IntArray:
    """Return bounds of equal blocks of rows of `width` numbers that keep to the memory limit."""
    size = min(BLOCK_BYTES, memory_limit() // 32)
    rows = max(1, int(size) // (8 * width))
    return np.append(np.arange(0, n, rows), n).astype(np.int64)


def _total(parts: Iterator[FloatArray]) -> FloatArray:
    total = next(parts).copy()
    for part in parts:
        total += part
    return total


def _piece(
    work: Work,
    full: bool,
    file: str,
    raw: Any,
    start: int,
    parts: Sequence[Callable[[Matrix], Matrix]],
    argument: Any,
) -> tuple[Any, Any]:
    """Return what `work` makes of a block, and the hashes of its rows as they are stored."""
    if len(raw) == 0:
        block: Any = np.zeros(np.shape(raw))
    else:
        try:
            block = as_matrix(
                raw, f"{file}{': ' * bool(file)}the block of rows from {start} on", part=True
            )
        except ValueError as error:
            raise ValueError(f"{error} (rows count from the block's first, {start})") from None
    hashes = row_hashes(np.ascontiguousarray(block)) if full else None
    for part in parts:
        block = part(block)
    return work(as_array(block), argument), hashes
