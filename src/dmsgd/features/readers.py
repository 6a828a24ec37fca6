"""Readers of rows in blocks: .npy, Parquet and sparse .npz files, Zarr arrays."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dmsgd.features.sparse_gram import SparseGram
from dmsgd.files.arrays import SparseFile, check_chunks
from dmsgd.files.parquet_tables import as_numbers, feature_columns, group_sizes, open_parquet
from dmsgd.files.paths import readable
from dmsgd.inputs.arrays import FloatArray, IntArray, Matrix
from dmsgd.inputs.memory import memory_limit, reserve
from dmsgd.inputs.progress import Progress
from dmsgd.inputs.threads import one_blas_thread, thread_count

#: Blocks take at most this many bytes (as float64), or a 32nd of the memory that is free.
BLOCK_BYTES = 2**25
#: Advice where there are too many rows to count.
PART = "use a part of the data"
#: Bytes of an entry of a sparse block (a number and its column), and of a row beside its entries.
ENTRY, ROW = 12, 32


class Reader(ABC):
    """Rows of an (n, d) matrix, wherever they are, in blocks.

    kind:        in words, for reprs.
    name:        what the rows are read from, as messages name it, or "".
    sparse_rows: whether blocks are CSR arrays.
    fingerprint: of the rows, once a pass over all of them has found it.
    """

    n: int
    d: int
    kind: str
    name: str = ""
    sparse_rows: bool = False
    fingerprint: str | None = None

    @abstractmethod
    def bounds(self, width: int) -> IntArray:
        """Return where blocks begin and end, from 0 to n, for rows that become `width` numbers.

        Where rows are sparse, `width` counts those that maps make dense, beside their entries.
        """

    @abstractmethod
    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield piece(raw rows, *argument) for each block whose argument is not None, in order."""

    def sparse_gram(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], width: int
    ) -> tuple[SparseGram, list[Any]]:
        """Return the Gram matrix of all rows that `piece` returns, and what else it returns."""
        total, rest = SparseGram(width), []
        progress = Progress(f"a pass over {self.n:,} items")
        for rows, other in self.compute(bounds, piece, arguments, "gram"):
            total.add(rows)
            rest.append(other)
            progress(len(rest) / len(arguments))
        return total, rest

    def check_unchanged(self) -> None:  # noqa: B027 - not all can tell without reading
        """Raise if the data are not those that were opened."""


def block_bytes() -> int:
    """Return how many bytes a block may take."""
    return int(min(BLOCK_BYTES, memory_limit() // 32))


def even_bounds(n: int, width: int, step: int = 1) -> IntArray:
    """Return bounds of equal blocks of rows of `width` numbers, at multiples of `step` rows."""
    rows = max(1, block_bytes() // (8 * width * step)) * step
    return np.append(np.arange(0, n, rows), n).astype(np.int64)


class FileReader(Reader):
    """Rows that this process reads. Each core works on a block that it reads by itself."""

    #: Size, time and inode of the files when they were opened.
    states: dict[Path, tuple[int, ...]]

    @property
    def bytes(self) -> int:
        """Return what all rows take in memory."""
        return 8 * self.n * self.d

    @abstractmethod
    def read(self, start: int, stop: int) -> Matrix:
        """Return the rows start..stop, in the type they are stored in."""

    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield the results. Only the main thread uses all cores; others run beside training."""

        def work(block: int) -> Any:
            start, stop = bounds[block : block + 2].tolist()
            return piece(self.read(start, stop), *arguments[block])

        wanted = [block for block, given in enumerate(arguments) if given is not None]
        here = threading.current_thread() is threading.main_thread()
        threads = thread_count(-1) if here else 1
        pending: deque[Future[Any]] = deque()
        with (
            one_blas_thread if threads > 1 else nullcontext(),
            ThreadPoolExecutor(threads) as pool,
        ):
            for block in wanted:
                pending.append(pool.submit(work, block))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def check_unchanged(self) -> None:
        """Raise if a file is not the one that was opened."""
        for file, state in self.states.items():
            if file_state(file) != state:
                raise ValueError(
                    f"{file} has changed since it was opened, so that draws would follow neither "
                    f"what was there nor what is there now; build the design again"
                )


def file_state(file: Path) -> tuple[int, ...]:
    """Return what tells whether a file has changed: its size, time and inode."""
    try:
        found = file.stat()
    except FileNotFoundError:
        raise FileNotFoundError(f"{file} was there when it was opened, and is gone") from None
    return found.st_size, found.st_mtime_ns, found.st_ino


@final
class NpyReader(FileReader):
    """The rows of a .npy file in C order, given as a memory map of all of it.

    They are read, not mapped: a mapped file that is cut short would end the process.
    """

    kind = "streamed"

    def __init__(self, array: np.memmap[Any, np.dtype[Any]]) -> None:
        self.path = Path(str(array.filename))
        self.name = str(self.path)
        self.states = {self.path: file_state(self.path)}
        self.n, self.d = (int(size) for size in array.shape)
        self.dtype, self.offset = array.dtype, int(array.offset)

    def bounds(self, width: int) -> IntArray:
        """Return bounds of equal blocks."""
        return even_bounds(self.n, width)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start..stop, in the type they are stored in."""
        place, count = self.offset + start * self.d * self.dtype.itemsize, (stop - start) * self.d
        block = np.fromfile(self.path, self.dtype, count, offset=place)
        if block.size != count:
            raise ValueError(f"{self.path} was cut short while it was read")
        return block.reshape(-1, self.d)


@final
class ZarrReader(FileReader):
    """The rows of a Zarr array, in blocks that follow its chunks."""

    kind = "streamed"

    def __init__(self, array: Any, name: str = "the Zarr array") -> None:
        if array.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, got shape {array.shape}")
        if 0 in array.shape:
            raise ValueError(f"{name} is empty: shape {array.shape}")
        self.array, self.name = array, name
        self.states = {}  # chunks are many files, or none; passes compare hashes
        self.n, self.d = (int(size) for size in array.shape)
        reserve(self.n + self.d, f"a number for each row and column of {name}", PART)
        check_chunks(array, name)

    def bounds(self, width: int) -> IntArray:
        """Return bounds at the edges of chunks, so that none is read twice."""
        even, chunk = even_bounds(self.n, width), int(self.array.chunks[0])
        if even.size > 1 and even[1] < chunk:  # chunks are larger than blocks may be
            return even
        edges = np.round(even[:-1] / chunk).astype(np.int64) * chunk
        return np.unique(np.append(edges, [0, self.n]))

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start..stop."""
        with readable(Path(self.name), "Zarr"):
            return np.asarray(self.array[start:stop])


@final
class ParquetReader(FileReader):
    """The numeric columns of a Parquet file, in blocks that follow its row groups."""

    kind = "streamed"

    def __init__(self, path: Path, drop: Collection[str] = ()) -> None:
        self.path, self.name = path, str(path)
        self.states = {path: file_state(path)}
        source = open_parquet(path)
        self.columns = feature_columns(path, source, drop)
        sizes = group_sizes(path, source)
        self.groups = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n, self.d = int(self.groups[-1]), sum(self.columns.values())
        if 0 in (self.n, self.d):
            raise ValueError(f"{path} is empty: shape {(self.n, self.d)}")
        reserve(self.n, f"a number for each row of {path}", PART)
        largest = f"the largest row group of {path}"
        reserve(max(sizes) * self.d, largest, "write it in smaller row groups")

    def bounds(self, width: int) -> IntArray:
        """Return the bounds of row groups, and more where these are too large."""
        even = even_bounds(self.n, width)
        too_large = np.diff(self.groups).max() > 2 * even[1]
        return np.unique(np.append(self.groups, even) if too_large else self.groups)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the rows start..stop, from the row groups that hold them."""
        source, parts = open_parquet(self.path), []
        first = int(np.searchsorted(self.groups, start, side="right")) - 1
        for group in range(first, int(np.searchsorted(self.groups, stop))):
            begin, end = self.groups[group : group + 2].tolist()
            with readable(self.path, "Parquet"):
                table = source.read_row_group(group, columns=list(self.columns))
            rows = as_numbers(self.path, table, self.columns)
            with readable(self.path, "Parquet"):
                if rows.shape != (end - begin, self.d):
                    raise ValueError(f"row group {group} has shape {rows.shape}")
            parts.append(rows[max(start - begin, 0) : stop - begin])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


@final
class SparseReader(FileReader):
    """The rows of sparse matrices in files, in blocks of about as many entries.

    A block is a file, several small ones, or a part of a large one that is CSR and not compressed;
    other files can only be read whole.
    """

    kind = "sparse, streamed"
    sparse_rows = True

    def __init__(self, paths: Sequence[Path], name: str) -> None:
        self.name = name
        self.states = {path: file_state(path) for path in paths}
        self.files = [SparseFile.open(path) for path in paths]
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
        for file in self.files:
            if self._is_cut(file):
                file.check()
            else:
                advice = "write smaller files, or CSR with save_npz(file, X, compressed=False)"
                reserve(2 * file.entries + file.n, f"all of {file.file}", advice)

    @property
    def bytes(self) -> int:
        """Return what all rows take in memory."""
        return sum(ENTRY * file.entries + 8 * file.n for file in self.files)

    @staticmethod
    def _is_cut(file: SparseFile) -> bool:
        return file.parts is not None and ENTRY * file.entries + ROW * file.n > block_bytes()

    def bounds(self, width: int) -> IntArray:
        """Return bounds of blocks of about as many bytes, where files allow it."""
        self.check_unchanged()
        most, row = block_bytes(), ROW + 8 * width
        edges, costs = [np.zeros(1)], [np.zeros(1)]
        for first, file in zip(self.edges[:-1], self.files, strict=True):
            size = ENTRY * file.entries + row * file.n
            if self._is_cut(file):
                sums = ENTRY * file.starts() + row * np.arange(file.n + 1)
                rows = np.append(np.searchsorted(sums, np.arange(most, size, most)), file.n)
                shares = sums[rows]
            else:  # to read a part of it, all of it is read
                parts = 1 + 8 * width * file.n // (2 * most)
                rows = np.linspace(0, file.n, parts + 1)[1:].astype(np.int64)
                shares = np.linspace(0, size, parts + 1)[1:]
            edges.append(first + rows)
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
                parts.append(file.rows(low, high, whole=not self._is_cut(file)))
        if len(parts) == 1:
            return parts[0]
        return sparse.vstack(parts, format="csr") if parts else sparse.csr_array((0, self.d))


def _grouped(edges: IntArray, costs: FloatArray, most: int) -> IntArray:
    """Return those of the edges at which blocks of about `most` begin and end."""
    chosen, at = [0], 0
    while at < edges.size - 1:
        at = max(at + 1, int(np.searchsorted(costs, costs[at] + most, side="right")) - 1)
        chosen.append(at)
    return np.unique(edges[chosen])


def sparse_files(folder: Path) -> list[Path]:
    """Return the .npz files of a folder in the order of their names; raise if there are none."""
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
