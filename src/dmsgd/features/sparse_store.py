"""Sparse rows from SciPy's .npz files: one, or those of a folder in the order of their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.features.files import PART, FileStore, look
from dmsgd.features.store import block_bytes
from dmsgd.files.sparse_files import SparseFile, sparse_file
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import reserve

#: Bytes that an entry takes in a block (a number and its column), and a row beside its entries.
ENTRY, ROW = 12, 32
#: What to do about a file that is too large to be read as a whole, and cannot be read otherwise.
SMALLER = "write smaller files, or CSR arrays with save_npz(file, X, compressed=False)"


@final
class SparseStore(FileStore):
    """The rows of sparse matrices in files, in blocks of about as many entries.

    A block is a file, several small ones, or a part of a large one, if that is CSR and not
    compressed: other files can only be read as a whole.
    """

    kind = "sparse, streamed"
    sparse_rows = True

    def __init__(self, paths: Sequence[Path], name: str) -> None:
        self.file = name
        self.watched = {path: look(path) for path in paths}
        self.files = [sparse_file(path) for path in paths]
        self.d = self.files[0].d
        for file in self.files:
            if file.d != self.d:
                raise ValueError(
                    f"{file.file} has {file.d} columns and {self.files[0].file} has {self.d}; all "
                    f"files of a folder are rows of one matrix and need the same columns"
                )
        self.n = sum(file.n for file in self.files)
        if 0 in (self.n, self.d):
            raise ValueError(f"{name} is empty: shape {(self.n, self.d)}")
        reserve(self.n + self.d, f"a number for each row and column of {name}", PART)
        self.edges = np.cumsum([0, *(file.n for file in self.files)])
        self.cut = [file.places is not None and _cost(file) > block_bytes() for file in self.files]
        uncut = [file for file, cut in zip(self.files, self.cut, strict=True) if not cut]
        largest = max(uncut, key=_cost, default=None)
        if largest is not None:
            reserve(2 * largest.entries + largest.n, f"all of {largest.file}", SMALLER)
        for file, cut in zip(self.files, self.cut, strict=True):
            if cut:
                file.compare_checksums()

    def bounds(self, width: int) -> IntArray:
        """Return bounds of blocks of about as many bytes, where files allow it."""
        self.refuse_changed()
        most, row = block_bytes(), ROW + 8 * width
        edges, costs = [np.zeros(1)], [np.zeros(1)]
        for first, file, cut in zip(self.edges[:-1], self.files, self.cut, strict=True):
            size = ENTRY * file.entries + row * file.n
            if cut:
                sums = ENTRY * file.starts() + row * np.arange(file.n + 1)
                places = np.append(np.searchsorted(sums, np.arange(most, size, most)), file.n)
                shares = sums[places]
            else:  # a part of it would be read as a whole, too
                parts = 1 + 8 * width * file.n // (2 * most)
                places = np.linspace(0, file.n, parts + 1)[1:].astype(np.int64)
                shares = np.linspace(0, size, parts + 1)[1:]
            edges.append(first + places)
            costs.append(costs[-1][-1] + shares)
        return _grouped(np.concatenate(edges).astype(np.int64), np.concatenate(costs), most)

    def read(self, start: int, stop: int) -> Any:
        """Return the rows start..stop, CSR."""
        parts = []
        begin, end = np.searchsorted(self.edges, (start + 1, stop)).tolist()
        for number in range(begin - 1, end):
            file, first = self.files[number], int(self.edges[number])
            low, high = max(start - first, 0), min(stop - first, file.n)
            if low < high:
                parts.append(file.rows(low, high) if self.cut[number] else file.whole()[low:high])
        if len(parts) == 1:
            return parts[0]
        return sparse.vstack(parts, format="csr") if parts else sparse.csr_array((0, self.d))


def _cost(file: SparseFile) -> int:
    return ENTRY * file.entries + ROW * file.n


def _grouped(edges: IntArray, costs: FloatArray, most: int) -> IntArray:
    """Return those of the edges at which blocks of about `most` begin and end."""
    chosen, at = [0], 0
    while at < edges.size - 1:
        at = max(at + 1, int(np.searchsorted(costs, costs[at] + most, side="right")) - 1)
        chosen.append(at)
    return np.unique(edges[chosen])


def in_folder(folder: Path) -> list[Path]:
    """Return the .npz files of a folder in the order of their names, and refuse one without."""
    found = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() == ".npz" and not path.name.startswith(".") and path.is_file()
    )
    if not found:
        raise ValueError(
            f"{folder} is a folder without .npz files; a folder of features holds files of "
            f"scipy.sparse.save_npz, whose rows follow each other in the order of the names"
        )
    return found
