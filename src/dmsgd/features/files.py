"""Rows from files: .npy, Zarr arrays, Parquet tables. Nothing is read before it is needed."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.features.store import Store, even_bounds
from dmsgd.files.parquet_files import as_numbers, feature_columns, group_sizes, open_parquet
from dmsgd.files.paths import readable
from dmsgd.files.zarr_files import refuse_large_chunks
from dmsgd.inputs.arrays import IntArray, Matrix
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.threads import thread_count

#: What to do about more rows than can be counted.
PART = "use a part of the data"


class FileStore(Store):
    """Rows that this process reads from somewhere. Each core works on a block read by itself."""

    #: The files, and what they looked like when they were opened.
    watched: dict[Path, tuple[int, ...]]

    @abstractmethod
    def read(self, start: int, stop: int) -> Matrix:
        """Return the rows start..stop, in the type they are stored in."""

    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield the results. Only the main thread has all cores; others draw beside training."""

        def work(block: int) -> Any:
            start, stop = bounds[block : block + 2].tolist()
            return piece(self.read(start, stop), *arguments[block])

        wanted = [block for block, given in enumerate(arguments) if given is not None]
        here = threading.current_thread() is threading.main_thread()
        threads = thread_count(-1) if here else 1
        pending: deque[Future[Any]] = deque()
        with (
            _one_blas_thread if threads > 1 else nullcontext(),
            ThreadPoolExecutor(threads) as pool,
        ):
            for block in wanted:
                pending.append(pool.submit(work, block))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def refuse_changed(self) -> None:
        """Raise if a file is not the one that was opened: by its size, time and place on disk."""
        for file, then in self.watched.items():
            if look(file) != then:
                raise ValueError(
                    f"{file} has changed since it was opened, so that draws would follow neither "
                    f"what was there nor what is there now; build the design again"
                )


def look(file: Path) -> tuple[int, ...]:
    """Return what a file looks like: its size, time and place on disk."""
    try:
        found = file.stat()
    except FileNotFoundError:
        raise FileNotFoundError(f"{file} was there when it was opened, and is gone") from None
    return found.st_size, found.st_mtime_ns, found.st_ino


class _OneBlasThread:
    """Keeps BLAS at one thread while any pass is on; the last one out restores what was before.

    Passes may end in another order than they began, so they are counted.
    """

    def __init__(self) -> None:
        self._lock, self._passes, self._limits = threading.Lock(), 0, None

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with self._lock:
            self._passes += 1
            if self._passes == 1:
                self._limits = threadpool_limits(1, user_api="blas")

    def __exit__(self, *problem: object) -> None:
        with self._lock:
            self._passes -= 1
            if self._passes == 0:
                self._limits.restore_original_limits()  # type: ignore[attr-defined]


_one_blas_thread = _OneBlasThread()


@final
class NpyStore(FileStore):
    """The rows of a .npy file, or of an np.memmap: read, not mapped, so that memory stays free."""

    kind = "streamed"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        name = getattr(array, "filename", None)
        if array.ndim != 2:
            shape = "images as X.reshape(len(X), -1)"
            shape = shape if array.ndim > 2 else "a single feature as X.reshape(-1, 1)"
            raise ValueError(
                f"{name} has shape {array.shape}, features need (items, features); save {shape}"
            )
        if not array.flags.c_contiguous or name is None:
            raise ValueError(
                f"only whole files in C order are read in blocks, and {name} is not; save it with "
                f"np.save(path, np.ascontiguousarray(X))"
            )
        if 0 in array.shape:
            raise ValueError(f"{name} is empty: shape {array.shape}")
        self.path = Path(str(name))
        self.file = str(self.path)
        self.watched = {self.path: look(self.path)}
        self.n, self.d = (int(size) for size in array.shape)
        self.dtype = array.dtype
        self.offset = int(getattr(array, "offset", 0))

    def bounds(self, width: int) -> IntArray:
        """Return bounds of equal blocks."""
        return even_bounds(self.n, width)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start..stop, in the type they are stored in."""
        place = self.offset + start * self.d * self.dtype.itemsize
        with open(self.path, "rb", buffering=0) as file:
            block = np.fromfile(file, self.dtype, (stop - start) * self.d, offset=place)
            if hasattr(os, "posix_fadvise"):  # another program's files may want the cache more
                os.posix_fadvise(file.fileno(), place, block.nbytes, os.POSIX_FADV_DONTNEED)
        if block.size != (stop - start) * self.d:
            raise ValueError(f"{self.path} was cut short while it was read")
        return block.reshape(-1, self.d)


@final
class ZarrStore(FileStore):
    """The rows of a Zarr array, in blocks that follow its chunks."""

    kind = "streamed"

    def __init__(self, array: Any, name: str = "the Zarr array") -> None:
        if array.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, got shape {array.shape}")
        if 0 in array.shape:
            raise ValueError(f"{name} is empty: shape {array.shape}")
        self.array, self.file = array, name
        self.watched = {}  # chunks are many files, or none; passes compare hashes
        self.n, self.d = (int(size) for size in array.shape)
        reserve(self.n + self.d, f"a number for each row and column of {name}", PART)
        refuse_large_chunks(array, name)

    def bounds(self, width: int) -> IntArray:
        """Return bounds at the edges of chunks, so that none is read twice."""
        even, chunk = even_bounds(self.n, width), int(self.array.chunks[0])
        if even.size > 1 and even[1] < chunk:  # chunks are larger than blocks may be
            return even
        edges = np.round(even[:-1] / chunk).astype(np.int64) * chunk
        return np.unique(np.append(edges, [0, self.n]))

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start..stop."""
        with readable(Path(self.file), "Zarr"):
            return np.asarray(self.array[start:stop])


@final
class ParquetStore(FileStore):
    """The numeric columns of a Parquet file, in blocks that follow its row groups."""

    kind = "streamed"

    def __init__(self, path: str | os.PathLike[str], drop: Collection[str] = ()) -> None:
        self.path = Path(path)
        self.file = str(self.path)
        self.watched = {self.path: look(self.path)}
        source = open_parquet(self.path)
        self.columns = feature_columns(self.path, source, drop)
        sizes = group_sizes(self.path, source)
        self.groups = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n, self.d = int(self.groups[-1]), self.columns.d
        if 0 in (self.n, self.d):
            raise ValueError(f"{self.path} is empty: shape {(self.n, self.d)}")
        reserve(self.n, f"a number for each row of {self.path}", PART)
        largest = f"the largest row group of {self.path}"
        reserve(max(sizes) * self.d, largest, "write it in smaller row groups")

    def bounds(self, width: int) -> IntArray:
        """Return the bounds of row groups, and more where these are too large."""
        even = even_bounds(self.n, width)
        too_large = np.diff(self.groups).max() > 2 * even[1]
        return np.unique(np.append(self.groups, even) if too_large else self.groups)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the rows start..stop, which are in one row group."""
        group = int(np.searchsorted(self.groups, start, side="right")) - 1
        source = open_parquet(self.path)
        with readable(self.path, "Parquet"):
            table = source.read_row_group(group, columns=self.columns.names)
        rows = as_numbers(self.path, table, self.columns)
        with readable(self.path, "Parquet"):
            if rows.shape != (self.groups[group + 1] - self.groups[group], self.d):
                raise ValueError(f"row group {group} has shape {rows.shape}")
        return rows[start - self.groups[group] : stop - self.groups[group]]
