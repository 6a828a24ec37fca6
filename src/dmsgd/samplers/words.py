"""Draws from sparse features without their eigenvectors: rows of V = F B are made when needed.

V would have a column for every word and a row for every document, and hardly a zero. What is kept
instead are B, as large as the Gram matrix, and the sums of V² over stretches of documents.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dmsgd.features.entries import Entries, tiles
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.inputs.progress import Progress
from dmsgd.inputs.threads import thread_count
from dmsgd.samplers.parallel import spread
from dmsgd.samplers.protocol import Functions

log = logging.getLogger("dmsgd")


@final
@dataclass(frozen=True)
class Words:
    """A CSR array F, (n, d), and B by its columns, (r, d): V = F B.

    Together they are what `dmsgd.samplers.compiled.words.Words` has.
    """

    entries: Entries
    columns: FloatArray

    @classmethod
    def of(cls, F: Matrix, columns: FloatArray) -> Words:
        """Return F and B as the compiled loops read them, without a copy of F's entries."""
        return cls(Entries.of(F), np.ascontiguousarray(columns))

    def survey(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of V² before each stretch, (r, stretches + 1), and V² @ weights, (n,).

        One product F B, a few columns at a time, on all cores.
        """
        from dmsgd.features.loops import STRETCH

        n, r, cores = self.entries.n, len(self.columns), thread_count(-1)
        sums, weighed = np.empty((r, -(-n // STRETCH) + 1)), np.zeros(n)
        tell = Progress(f"the tables of {n:,} items x {r:,} eigenvectors")
        for tile in tiles(r):
            sums[tile] = self.entries.survey(
                self.columns[tile], weights[tile], weighed, 4 * cores,
                lambda work, parts: spread(work, parts, cores),
            )  # fmt: skip
            tell(min(1.0, tile.stop / r))
        return sums, weighed

    def tables(self, sums: FloatArray) -> TablesOfWords:
        """Return what draws are made by."""
        return TablesOfWords(self, sums, np.ascontiguousarray(sums[:, -1]))


@final
@dataclass(frozen=True)
class TablesOfWords:
    """What finds the item at which a column's squares reach a sum, and makes its row."""

    words: Words
    sums: FloatArray
    totals: FloatArray

    def functions(self) -> Functions:
        """Return the addresses of what knows V."""
        from dmsgd.compiled.jit import address_of
        from dmsgd.samplers.compiled.words import gather_words, locate_words, ready_words

        return Functions(
            address_of(locate_words), address_of(gather_words), address_of(ready_words)
        )

    def plan(self, k: int) -> tuple[IntArray, FloatArray]:
        """Return sizes and addresses, and scratch that must be kept as long as they are used."""
        from dmsgd.compiled.jit import address
        from dmsgd.compiled.vectors import BLOCK

        d = self.words.columns.shape[1]
        chosen = np.zeros((d + 1, -(-k // BLOCK) * BLOCK))
        where = (address(array, float) for array in (self.words.columns, self.sums, chosen))
        sizes = self.words.entries.n, d, self.sums.shape[1] - 1
        numbers = [address(self.totals, float), *sizes, *self.words.entries.addresses(), *where]
        return np.array(numbers, dtype=np.int64), chosen


def find_in_block(
    F: Matrix, basis: FloatArray, question: Any, pi: FloatArray | None
) -> tuple[IntArray, FloatArray, FloatArray | None]:
    """Return `dmsgd.samplers.blocks.answer_block` of sparse rows F.

    Of V = F basis only columns that are asked for are made, a few at a time; with π all of them.
    """
    from dmsgd.compiled.jit import address
    from dmsgd.compiled.vectors import BLOCK
    from dmsgd.samplers.compiled.words import find_words, rows_of_words

    rests, asked, J, draw = question
    asked, J, draw = (part.astype(np.int64) for part in (asked, J, draw))
    entries, columns = Entries.of(F), np.ascontiguousarray(basis.T)
    (r, d), k = columns.shape, J.shape[1]
    order = np.argsort(asked, kind="stable")
    numbers, targets = asked[order], rests[order]
    wanted = np.unique(numbers) if pi is None else np.arange(r)
    weights, weighed = np.zeros(r) if pi is None else pi, np.zeros(entries.n)
    found, items = np.empty(asked.size, dtype=np.int64), np.empty(asked.size, dtype=np.int64)
    for tile in tiles(wanted.size):
        mine = wanted[tile]
        words = Words(entries, columns[mine])
        sums = entries.survey(words.columns, weights[mine], weighed)
        first, last = np.searchsorted(numbers, (mine[0], mine[-1] + 1)).tolist()
        which = np.searchsorted(mine, numbers[first:last])
        plan, _ = TablesOfWords(words, sums, sums[:, -1].copy()).plan(0)
        find_words(
            address(plan, np.int64), address(which, np.int64), address(targets[first:last], float),
            address(found[first:last], np.int64), last - first,
        )  # fmt: skip
    items[order] = found
    X, width = np.empty((items.size, k)), -(-k // BLOCK) * BLOCK
    chosen, filled = np.zeros((d + 1, width)), np.full(d, -1)
    rows_of_words(
        *entries.addresses(), address(columns, float), d, address(J, np.int64), k,
        address(draw, np.int64), address(items, np.int64), address(X, float), items.size,
        address(chosen, float), address(filled, np.int64),
    )  # fmt: skip
    return items, X, None if pi is None else weighed
