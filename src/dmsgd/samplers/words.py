"""Draws from sparse features without their eigenvectors: rows of V = F B are made when needed.

V would have a column for every word and a row for every document, and hardly a zero. What is kept
instead are B, as large as the Gram matrix, and the sums of V² over stretches of documents.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.inputs.threads import thread_count
from dmsgd.samplers.parallel import spread
from dmsgd.samplers.protocol import Functions

log = logging.getLogger("dmsgd")


@final
@dataclass(frozen=True)
class Words:
    """A CSR array F, (n, d), and B by its columns, (r, d): V = F B.

    The arrays are those of `dmsgd.samplers.compiled.words.Words`.
    """

    starts: IntArray
    places: Any
    entries: FloatArray
    columns: FloatArray

    @classmethod
    def of(cls, F: Matrix, columns: FloatArray) -> Words:
        """Return F and B as the compiled loops read them, without a copy of F's entries."""
        F = F.tocsr()
        starts, places = F.indptr.astype(np.int64), F.indices.astype(np.uint32, copy=False)
        return cls(starts, places, F.data, np.ascontiguousarray(columns))

    @property
    def n(self) -> int:
        """Number of items."""
        return self.starts.size - 1

    def addresses(self) -> tuple[int, int, int]:
        """Return where F is."""
        from dmsgd.compiled.jit import address

        return (
            address(self.starts, np.int64), address(self.places, np.uint32),
            address(self.entries, float),
        )  # fmt: skip

    def survey(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of V² before each stretch, (r, stretches + 1), and V² @ weights, (n,).

        One product F B, a few columns at a time, on all cores.
        """
        from dmsgd.compiled.jit import address
        from dmsgd.samplers.compiled.registers import BLOCK
        from dmsgd.samplers.compiled.words import STRETCH, survey

        (r, d), stretches = self.columns.shape, -(-self.n // STRETCH)
        sums, weighed = np.zeros((r, stretches + 1)), np.zeros(self.n)
        tile, part = np.zeros((d, BLOCK)), np.zeros(BLOCK)
        cores = thread_count(-1)
        bounds = np.linspace(0, stretches, min(4 * cores, stretches) + 1).astype(int).tolist()
        for first in range(0, r, BLOCK):
            count = min(BLOCK, r - first)
            tile[:, :count] = self.columns[first : first + count].T
            part[:count], part[count:] = weights[first : first + count], 0.0
            given = (*self.addresses(), address(tile, float), count, address(part, float))
            filled = address(sums[first : first + count], float), address(weighed, float)

            def work(bound: tuple[int, int], given: Any = given, filled: Any = filled) -> None:
                scratch = np.empty(2 * BLOCK)
                survey(*given, *bound, self.n, *filled, address(scratch, float))

            spread(work, list(pairwise(bounds)), cores)
            np.cumsum(sums[first : first + count], axis=1, out=sums[first : first + count])
        return sums, weighed


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
        from dmsgd.samplers.compiled.registers import BLOCK

        d = self.words.columns.shape[1]
        chosen = np.zeros((d + 1, -(-k // BLOCK) * BLOCK))
        where = (address(array, float) for array in (self.words.columns, self.sums, chosen))
        sizes = self.words.n, d, self.sums.shape[1] - 1
        numbers = [address(self.totals, float), *sizes, *self.words.addresses(), *where]
        return np.array(numbers, dtype=np.int64), chosen
