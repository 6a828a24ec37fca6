"""Readers of rows in blocks: .npy, Parquet and sparse .npz files, Zarr arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.files.arrays import check_chunks, load_npz, sparse_size
from dmsgd.files.parquet_tables import ParquetTable
from dmsgd.files.paths import readable
from dmsgd.inputs.arrays import IntArray, Matrix, as_matrix, check_shape
from dmsgd.runtime.memory import reserve, total_memory

#: Blocks take at most this many bytes (as float64), or a 32nd of the memory.
BLOCK_BYTES = 2**25
#: Bytes of an entry of a sparse block (a number and its column), and of a row beside its entries.
ENTRY, ROW = 12, 32


class Reader(ABC):
    """Rows of an (n, d) matrix, wherever they are, in blocks.

    kind:        in words, for reprs.
    name:        what the rows are read from, as messages name it.
    sparse_rows: whether blocks are CSR arrays.
    states:      size, time and inode of the files when they were opened.
    edges:       row numbers at which stored parts begin and end, if rows are stored in parts.
    fingerprint: of the rows, once a pass over all of them has found it.
    """

    n: int
    d: int
    kind: str = "streamed"
    name: str
    sparse_rows: bool = False
    states: dict[Path, tuple[int, ...]]
    edges: IntArray = np.empty(0, np.int64)
    fingerprint: str | None = None

    def _set_shape(self, shape: tuple[int, ...]) -> None:
        """Set n and d, if there are rows and columns, and memory for a number for each."""
        check_shape(shape, self.name)
        what = f"a number for each row and column of {self.name}"
        reserve(sum(shape), what, "use a part of the data")
        self.n, self.d = shape

    @property
    def bytes(self) -> int:
        """Return what all rows take in memory."""
        return 8 * self.n * self.d

    @abstractmethod
    def read(self, start: int, stop: int) -> Matrix:
        """Return the rows start..stop, in the type they are stored in."""

    def bounds(self, width: int) -> IntArray:
        """Return where blocks begin and end, from 0 to n, for rows that become `width` numbers.

        No block is empty. Where rows are sparse, `width` counts those that maps make dense.
        """
        return bounds_along(self.edges, width) if self.edges.size else even_bounds(self.n, width)

    def parts_of(self, start: int, stop: int) -> Iterator[tuple[int, slice]]:
        """Yield the number of each stored part with some of these rows, and which of its own."""
        first, last = np.searchsorted(self.edges, (start + 1, stop)).tolist()
        for number in range(first - 1, last):
            low, high = self.edges[number : number + 2].tolist()
            if low < high:
                yield number, slice(max(start, low) - low, min(stop, high) - low)

    def check_unchanged(self) -> None:
        """Raise if a file is not the one that was opened."""
        for file, state in self.states.items():
            if file_state(file) != state:
                raise changed(file, "opened")


def changed(what: object, since: str) -> ValueError:
    """Return the error about data that have changed since they were opened, or first read."""
    return ValueError(
        f"{what} has changed since it was {since}, so that draws would follow neither what was "
        f"there nor what is there now; build the design again"
    )


def block_bytes() -> int:
    """Return how many bytes a block may take.

    It does not depend on the memory that is free now: `select` chooses from blocks one by one.
    """
    return int(min(BLOCK_BYTES, total_memory() // 32))


def even_bounds(n: int, width: int) -> IntArray:
    """Return bounds of equal blocks of rows of `width` numbers."""
    rows = max(1, block_bytes() // (8 * width))
    return np.append(np.arange(0, n, rows), n).astype(np.int64)


def bounds_along(edges: IntArray, width: int, costs: npt.NDArray[Any] | None = None) -> IntArray:
    """Return bounds of blocks that begin at these edges, and between those that are far apart.

    costs: the bytes before each edge; by default those of rows of `width` numbers.
    """
    if width and np.diff(edges).max() > (even := even_bounds(int(edges[-1]), width))[1]:
        return np.unique(np.append(edges, even))
    costs = 8 * width * edges if costs is None else costs
    chosen, at, most = [0], 0, block_bytes()
    while at < edges.size - 1:
        at = max(at + 1, int(np.searchsorted(costs, costs[at] + most, side="right")) - 1)
        chosen.append(at)
    return np.unique(edges[chosen])


def file_state(file: Path) -> tuple[int, ...]:
    """Return what tells whether a file has changed: its size, time and inode."""
    found = file.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


@final
class NpyReader(Reader):
    """The rows of a .npy file in C order, given as a memory map of all of it.

    They are read, not mapped: a mapped file that is cut short would end the process.
    """

    def __init__(self, array: np.memmap[Any, np.dtype[Any]]) -> None:
        self.path = Path(str(array.filename))
        self.name = str(self.path)
        self.states = {self.path: file_state(self.path)}
        self._set_shape(array.shape)
        self.dtype, self.offset = array.dtype, int(array.offset)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        count, offset = (stop - start) * self.d, start * self.d * self.dtype.itemsize
        block = np.fromfile(self.path, self.dtype, count, offset=self.offset + offset)
        if block.size != count:
            raise ValueError(f"{self.path} was cut short while it was read")
        return block.reshape(-1, self.d)


@final
class ZarrReader(Reader):
    """The rows of a Zarr array, in blocks that follow its chunks."""

    def __init__(self, array: Any, name: str = "the Zarr array") -> None:
        self.array, self.name = array, name
        self.states = {}  # chunks are many files, or none; passes compare hashes
        self._set_shape(array.shape)
        check_chunks(array, name)
        self.edges = np.append(np.arange(0, self.n, array.chunks[0], dtype=np.int64), self.n)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        with readable(Path(self.name), "Zarr"):
            return np.asarray(self.array[start:stop])


@final
class ParquetReader(Reader):
    """The numeric columns of a Parquet file, in blocks that follow its row groups."""

    def __init__(self, path: Path, drop: Collection[str], named: bool) -> None:
        self.path, self.name = path, str(path)
        self.states = {path: file_state(path)}
        table = ParquetTable(path)
        self.widths = table.widths(drop, named)
        self._set_shape((sum(table.sizes), sum(self.widths.values())))
        self.edges = np.cumsum([0, *table.sizes], dtype=np.int64)
        largest = f"the largest row group of {path}"
        reserve(max(table.sizes) * self.d, largest, "write it in smaller row groups")

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        groups = [number for number, _ in self.parts_of(start, stop)]
        begin, end = int(self.edges[groups[0]]), int(self.edges[groups[-1] + 1])
        rows = ParquetTable(self.path).read_groups(groups, self.widths)
        with readable(self.path, "Parquet"):
            if len(rows) != end - begin:
                raise ValueError(f"rows {begin} to {end} are {len(rows)}")
        return rows[start - begin : stop - begin]


@final
class SparseReader(Reader):
    """The rows of sparse matrices in files, in blocks of one large file or several small ones."""

    kind = "sparse, streamed"
    sparse_rows = True

    def __init__(self, path: Path) -> None:
        self.name, self.files = str(path), _sparse_files(path)
        self.states = {file: file_state(file) for file in self.files}
        sizes = [sparse_size(file) for file in self.files]
        d = sizes[0][1]
        for file, (_, columns, _) in zip(self.files, sizes, strict=True):
            if columns != d:
                raise ValueError(
                    f"{file} has {columns} columns and {self.files[0]} has {d}; all files of a "
                    f"folder are rows of one matrix and need the same columns"
                )
        self._set_shape((sum(rows for rows, _, _ in sizes), d))
        for file, (rows, _, entries) in zip(self.files, sizes, strict=True):
            reserve(2 * entries + rows, f"all of {file}", "write smaller files")
        self.edges = np.cumsum([0, *(rows for rows, _, _ in sizes)], dtype=np.int64)
        self.entries = [entries for _, _, entries in sizes]

    @property
    def bytes(self) -> int:
        return ENTRY * sum(self.entries) + 8 * self.n

    def bounds(self, width: int) -> IntArray:
        # To read a part of a file, all of it is read: only rows that become dense are cut.
        entries = np.cumsum([0, *self.entries], dtype=np.int64)
        costs = ENTRY * entries + (ROW + 8 * width) * self.edges
        return bounds_along(self.edges, width, costs)

    def read(self, start: int, stop: int) -> Any:
        from scipy import sparse

        parts = []
        for number, rows in self.parts_of(start, stop):
            file, size = self.files[number], int(np.diff(self.edges)[number])
            found = as_matrix(load_npz(file, None, ()), str(file), allow_tiny=True)
            if found.shape != (size, self.d):
                raise ValueError(f"{file} has changed while it was read; write it again")
            parts.append(found[rows])
        return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def _sparse_files(path: Path) -> list[Path]:
    """Return the file, or the .npz files of a folder in the order of their names."""
    found = sorted(path.glob("[!.]*.npz")) if path.is_dir() else [path]
    if not found:
        raise ValueError(
            f"{path} is a folder without .npz files; a folder of features holds files of "
            f"scipy.sparse.save_npz, whose rows follow each other in the order of the names"
        )
    return found
