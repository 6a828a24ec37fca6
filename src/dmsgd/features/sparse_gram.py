"""The Gram matrix of sparse rows that come a part at a time: one total, whatever is added."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, Matrix
from dmsgd.inputs.fingerprint import canonical
from dmsgd.inputs.progress import Progress
from dmsgd.inputs.threads import thread_count
from dmsgd.samplers.computed_rows import SparseRows

#: Products of entries that are added in one go, a second or two, so that Ctrl-C is heard; rows, if
#: these are fewer; and columns that are turned in one.
WORK, PIECE, SQUARE = 2**31, 2**14, 256
#: The share of entries that are not zero above which a row is one for products of arrays, and the
#: numbers in a block of such rows.
FULL, BLOCK = 1 / 4, 2**20
#: Rows of the result to which such blocks are added in one go.
COLUMNS = 2**12
#: Fewer entries than this are added on one core.
SHARED = 2**17


@final
class SparseGram:
    """XᵀX of the CSR arrays X that are added, (d, d).

    The bits do not depend on how rows are cut into parts, unless some are full, nor on the cores.
    """

    def __init__(self, d: int) -> None:
        self._total = np.zeros((d, d))  # below the diagonal there is nothing yet

    def add(self, X: Matrix) -> SparseGram:
        """Add XᵀX. Rows with many entries are multiplied as arrays, which is faster."""
        d = X.shape[1]
        full = np.diff(X.indptr) > d * FULL
        self._add_short_rows(canonical(X[~full] if full.any() else X))
        rows, step = np.flatnonzero(full), max(BLOCK // d, d // 4)
        for start in range(0, rows.size, step):
            block = X[rows[start : start + step]].toarray()
            for first in range(0, d, COLUMNS):
                part = slice(first, first + COLUMNS)
                self._total[part] += block[:, part].T @ block
        return self

    def _add_short_rows(self, X: Matrix) -> None:
        """Add XᵀX, one entry times another at a time; cores share the rows of the result."""
        from dmsgd.compiled.sparse_gram import add_gram

        (n, d), entries = X.shape, SparseRows.of(X)
        alone = threading.current_thread() is not threading.main_thread() or X.nnz < SHARED
        cores = 1 if alone else thread_count(-1)
        shares = list(pairwise(_equal_work(entries, d, cores)))
        tell = Progress(f"the Gram matrix of {n:,} items x {d:,} features")
        with ThreadPoolExecutor(cores) as pool:
            for rows in pairwise(_pieces(entries)):

                def work(share: tuple[int, int], rows: tuple[int, int] = rows) -> None:
                    add_gram(*entries.arrays, *rows, *share, d, self._total)

                if cores == 1:
                    work(shares[0])
                else:
                    list(pool.map(work, shares))
                tell(rows[1] / n)

    def plus(self, other: SparseGram) -> SparseGram:
        """Return the Gram matrix of what both were given."""
        both = SparseGram(0)
        both._total = self._total + other._total
        return both

    def matrix(self) -> FloatArray:
        """Return XᵀX of all; nothing can be added after it."""
        total, d = self._total, len(self._total)
        for first in range(0, d, SQUARE):  # the other half, in parts that stay in the cache
            for second in range(first, d, SQUARE):
                one, two = slice(first, first + SQUARE), slice(second, second + SQUARE)
                if first == second:
                    total[one, one] = np.triu(total[one, one]) + np.triu(total[one, one], 1).T
                else:
                    total[two, one] = total[one, two].T
        return total


def _pieces(entries: SparseRows) -> list[int]:
    """Return bounds of rows whose entries meet about as many others each."""
    if entries.n == 0:
        return []
    met = np.cumsum(np.diff(entries.indptr).astype(float) ** 2)
    count = max(-(-entries.n // PIECE), int(met[-1] / WORK) + 1)
    inner = np.searchsorted(met, met[-1] * np.arange(1, count) / count)
    return sorted({0, *inner.tolist(), entries.n})


def _equal_work(entries: SparseRows, d: int, parts: int) -> list[int]:
    """Return bounds of columns whose entries meet about as many others each; by the first rows."""
    if parts == 1:
        return [0, d]
    stop = min(entries.n, PIECE // 4)
    ends = np.repeat(entries.indptr[1 : stop + 1], np.diff(entries.indptr[: stop + 1]))
    met = np.bincount(entries.indices[: ends.size], ends - np.arange(ends.size), minlength=d)
    work = np.cumsum(met)
    inner = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts)
    return [0, *inner.tolist(), d]
