"""Rows from files: .npy, Zarr arrays, Parquet tables. Nothing is read before it is needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.files.parquet_files import as_numbers, feature_columns, open_parquet
from dmsgd.inputs.arrays import IntArray
from dmsgd.streams.rows import StoredRows, even_bounds


@final
class NpyRows(StoredRows):
    """The rows of a .npy file, or of an np.memmap: read, not mapped, so that memory stays free."""

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        if array.ndim != 2 or not array.flags.c_contiguous or array.filename is None:
            raise ValueError(
                f"only whole C-ordered (n, d) files are read in blocks, this one has shape "
                f"{array.shape}; save it with np.save(path, np.ascontiguousarray(X))"
            )
        self.path = Path(str(array.filename))
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype: np.dtype[Any] = array.dtype
        self.offset = int(array.offset)
        self.stored_width = self.shape[1]  # maps change the shape, not the file
        self.bounds = even_bounds(*self.shape)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start..stop, in the type they are stored in."""
        width = self.stored_width
        place = self.offset + start * width * self.dtype.itemsize
        with open(self.path, "rb", buffering=0) as file:
            block = np.fromfile(file, self.dtype, (stop - start) * width, offset=place)
            if hasattr(os, "posix_fadvise"):  # another program's files may want the cache more
                os.posix_fadvise(file.fileno(), place, block.nbytes, os.POSIX_FADV_DONTNEED)
        if block.size != (stop - start) * width:
            raise ValueError(f"{self.path} was cut short while it was read")
        return block.reshape(-1, width)


@final
class ZarrRows(StoredRows):
    """The rows of a Zarr array, in blocks that follow its chunks."""

    def __init__(self, array: Any) -> None:
        if array.ndim != 2:
            raise ValueError(f"the Zarr array must have two dimensions, got shape {array.shape}")
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.bounds = _whole_chunks(even_bounds(*self.shape), int(array.chunks[0]), self.shape[0])

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start..stop."""
        return np.asarray(self.array[start:stop])


def _whole_chunks(bounds: IntArray, chunk: int, n: int) -> IntArray:
    """Return bounds moved to the edges of chunks, so that none is read twice."""
    return np.unique(np.append(np.round(bounds[:-1] / chunk).astype(np.int64) * chunk, [0, n]))


@final
class ParquetRows(StoredRows):
    """The numeric columns of a Parquet file, a block for each of its row groups."""

    def __init__(self, path: str | os.PathLike[str], drop: str | None = None) -> None:
        self.path = Path(path)
        source = open_parquet(self.path)
        self.columns = feature_columns(self.path, source, drop)
        sizes = [source.metadata.row_group(g).num_rows for g in range(source.num_row_groups)]
        self.bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.shape = (int(self.bounds[-1]), len(self.columns))

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the rows of the row group start..stop."""
        group = int(np.searchsorted(self.bounds, start, side="right")) - 1
        return as_numbers(open_parquet(self.path).read_row_group(group, columns=self.columns))
