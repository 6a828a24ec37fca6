"""Features that are read block by block: larger than memory, or spread over a cluster.

Whatever is computed from them is a pass: a function of one block, applied to all of them. A store
says where rows are: in a file, whose blocks this process reads, or on a cluster, where passes run
where the blocks are. Maps are applied to each block when it is read; the store never changes.

A pass over all blocks also hashes the rows as they are stored. The first one finds the fingerprint
on the way; every later one finds out if the data have changed since.
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

from dmsgd.features import passes
from dmsgd.features.interface import InPasses, Map
from dmsgd.features.resident import Resident, held
from dmsgd.features.sparse_gram import SparseGram
from dmsgd.features.store import Store
from dmsgd.features.treatment import Work, treat
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix, check_nonzero, check_vanishing
from dmsgd.inputs.fingerprint import digest, fingerprint_rows
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.progress import Progress
from dmsgd.samplers.computed_rows import DenseRows

#: The Gram matrices of single blocks are kept if they take no more than this: they tell the
#: masses of blocks, which otherwise take a pass.
KEPT_BYTES = 2**26


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
        self.n, self.d, self.sparse_rows = store.n, store.d, store.sparse_rows
        widest = 0 if store.sparse_rows else store.d
        for map in maps:
            self.d = map.width(self.d)
            self.sparse_rows = self.sparse_rows and not map.fills
            widest = max(widest, 0 if self.sparse_rows else self.d)
        self.kind = store.kind
        self.bounds = store.bounds(widest)
        self._known = known or _Known()
        self._grams: list[FloatArray] | None = None
        self._direct: DenseRows | None = None

    def run(self, work: Work, name: str, arguments: Sequence[Any] | None = None) -> Iterator[Any]:
        piece, asked, full = self._question(work, arguments)
        results = self.store.compute(self.bounds, piece, asked, name)
        hashes: list[npt.NDArray[np.uint64]] = []
        tell = Progress(f"a pass over {self.n:,} items")
        for number, argument in enumerate(asked):
            if argument is None:
                yield None
                continue
            result, found = next(results)
            hashes.append(found)
            yield result
            tell((number + 1) / len(asked))
        if full:
            self._compare(hashes)

    def _question(self, work: Work, given: Sequence[Any] | None) -> tuple[Any, list[Any], bool]:
        """Return what the store is to compute, with which arguments, and if from all blocks."""
        self.store.refuse_changed()
        ends = list(pairwise(self.bounds.tolist()))
        given = [()] * len(ends) if given is None else given
        full = all(argument is not None for argument in given)
        asked = [
            None if argument is None else (start, stop, self._parts(start, stop), argument)
            for (start, stop), argument in zip(ends, given, strict=True)
        ]
        store = self.store
        return partial(treat, work, full, store.file, store.sparse_rows, store.d), asked, full

    def _sparse_gram(self, work: Work, arguments: Sequence[Any] | None = None) -> FloatArray:
        """Return FᵀF of the sparse rows that `work` returns: one total, and not one a block."""
        piece, asked, _ = self._question(work, arguments)
        begin = partial(SparseGram, self.d)
        total, hashes = self.store.total(self.bounds, piece, asked, begin, "gram")
        self._compare(hashes)
        return total.matrix()

    def _parts(self, start: int, stop: int) -> tuple[Callable[[Matrix], Matrix], ...]:
        return tuple(map.part(start, stop) for map in self.maps)

    def _compare(self, hashes: list[npt.NDArray[np.uint64]]) -> None:
        found = fingerprint_rows((self.store.n, self.store.d), hashes)
        if self._known.fingerprint not in (None, found):
            raise ValueError(
                f"{self!r} has changed since it was first read, so that draws would follow neither "
                f"what was there nor what is there now; build the design again"
            )
        self._known.fingerprint = found

    def take(self, items: IntArray) -> Matrix:
        items, direct = np.asarray(items), self.direct()
        if direct is not None:
            return direct.take(items, self.d)
        order = np.argsort(items, kind="stable")
        cuts = np.searchsorted(items[order], self.bounds)
        arguments = [
            items[order[a:b]] - start if b > a else None
            for (a, b), start in zip(pairwise(cuts.tolist()), self.bounds[:-1], strict=True)
        ]
        found = [part for part in self.run(passes.rows_at, "take", arguments) if part is not None]
        places = np.empty(items.size, dtype=np.int64)
        places[order] = np.arange(items.size)
        return _stacked(found, self.d)[places]

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        parts = self.run(passes.whole, "load")
        for start, rows in zip(self.bounds[:-1].tolist(), parts, strict=True):
            if rows.shape[0]:
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
            if self.sparse_rows:
                return self._sparse_gram(passes.scaled, arguments)
            return _total(self.run(passes.weighted_gram, "gram", arguments))
        keep = 8 * self.d**2 * (self.bounds.size - 1) <= KEPT_BYTES
        grams: list[FloatArray] = []
        if self.sparse_rows and not keep:
            total = self._sparse_gram(passes.whole)
        else:
            total = np.zeros((self.d, self.d))
            for part in self.run(passes.gram, "gram"):
                total += part
                if keep:
                    grams.append(part)
        self._grams = grams if keep else None
        check_nonzero(bool(total.any()))
        check_vanishing(float(np.trace(total)), "the features")
        return total

    def gram_of(self, S: FloatArray) -> FloatArray:
        return _total(self.run(partial(passes.gram_of, S=S), "gram"))

    def normal(self, S: FloatArray) -> tuple[FloatArray, float]:
        total, length = np.zeros(S.shape), 0.0
        for part, size in self.run(partial(passes.normal, S=S), "normal"):
            total += part
            length += size
        return total, length

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
        what, advice = f"all of {self!r} in memory", "use a part of the data, or fewer features"
        if not self.sparse_rows:
            reserve(self.n * self.d, what, advice)
        parts: list[Matrix] = []
        for _, rows in self.blocks():
            parts.append(rows)
            if self.sparse_rows:  # an entry is a number and a place
                reserve(2 * sum(part.nnz for part in parts) + self.n, what, advice)
        return held(_stacked(parts, self.d), self.fingerprint())

    def owned(self) -> Blocks:
        return self

    def words(self) -> bool:
        return self.sparse_rows and all(self.run(passes.nowhere_negative, "words"))

    def passes(self) -> Blocks:
        return self

    def direct(self) -> DenseRows | None:
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


def _total(parts: Iterator[FloatArray]) -> FloatArray:
    total = next(parts).copy()
    for part in parts:
        total += part
    return total


def _stacked(parts: list[Matrix], d: int) -> Matrix:
    """Return arrays or CSR arrays of d columns below each other."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts) if parts else np.empty((0, d))
