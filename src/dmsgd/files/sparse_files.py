"""SciPy's sparse matrices in .npz files that are not read as a whole: what they say, and some rows.

A .npz file is a zip archive. Where its arrays are not compressed (`compressed=False` of save_npz)
any rows can be read by themselves; its checksums are compared before that, once.
"""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dmsgd.files.numpy_files import (
    SPARSE_PARTS,
    holds_sparse,
    load_npz,
    member_header,
    opened_npz,
    sparse_shape,
)
from dmsgd.files.paths import readable
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.memory import memory_limit

#: The beginning of a file in a zip archive: where the lengths of its name and extra field are.
LOCAL_HEADER, LENGTHS = 30, 26
#: Bytes that are read at a time where only a checksum is wanted.
PIECE = 2**20


@final
@dataclass(frozen=True)
class Place:
    """Where an array of `size` numbers lies in a file that does not compress it."""

    offset: int
    dtype: np.dtype[Any]
    size: int

    def read(self, file: Path, start: int, stop: int) -> npt.NDArray[Any]:
        """Return the numbers start..stop."""
        if not 0 <= start <= stop <= self.size:
            raise ValueError(f"a row has the entries {start} to {stop} of {self.size}")
        with open(file, "rb", buffering=0) as stream:
            place = self.offset + start * self.dtype.itemsize
            found = np.fromfile(stream, self.dtype, stop - start, offset=place)
        if found.size != stop - start:
            raise ValueError("it ends before its last number")
        return found


@final
@dataclass(frozen=True)
class SparseFile:
    """A sparse (n, d) matrix in a .npz file, of which only the beginning has been read.

    entries: how many numbers it stores.
    places:  where its data, indices and indptr lie, if rows can be read by themselves.
    """

    file: Path
    n: int
    d: int
    entries: int
    places: tuple[Place, Place, Place] | None

    def starts(self) -> IntArray:
        """Return where rows begin among the entries; only where there are `places`."""
        assert self.places is not None
        with readable(self.file, "SciPy sparse"):
            starts = self.places[2].read(self.file, 0, self.n + 1).astype(np.int64)
            if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > self.entries:
                raise ValueError("its rows do not follow each other")
        return starts

    def compare_checksums(self) -> None:
        """Raise if the archive is not what was written."""
        with opened_npz(self.file) as archive, readable(self.file, "SciPy sparse"):
            for part in SPARSE_PARTS["csr"]:
                with archive.open(f"{part}.npy") as stream:
                    while stream.read(PIECE):  # zipfile compares at the end
                        pass

    def whole(self) -> Any:
        """Return all rows, CSR."""
        found = load_npz(self.file, None, ())
        if found.shape != (self.n, self.d):
            raise ValueError(f"{self.file} has changed while it was read; build the design again")
        return found

    def rows(self, start: int, stop: int) -> Any:
        """Return the rows start..stop, CSR; only where there are `places`."""
        from scipy import sparse

        assert self.places is not None
        data, indices, starts = self.places
        with readable(self.file, "SciPy sparse"):
            ends = starts.read(self.file, start, stop + 1).astype(np.int64)
            first, last = ends[[0, -1]].tolist()
            parts = (each.read(self.file, first, last) for each in (data, indices))
            return sparse.csr_array((*parts, ends - first), shape=(stop - start, self.d))


def sparse_file(file: Path) -> SparseFile:
    """Return what a file of scipy.sparse.save_npz says of itself."""
    if file.stat().st_size == 0:
        raise ValueError(f"{file} is empty (0 bytes); write it again")
    with opened_npz(file) as archive:
        if not holds_sparse(archive):
            raise ValueError(
                f"{file} is no SciPy sparse matrix, and no other .npz file is read in blocks; "
                f"write it with scipy.sparse.save_npz, or an array with np.save"
            )
        with readable(file, "SciPy sparse"):
            format, n, d = sparse_shape(file, archive)
            heads = [member_header(file, archive, part) for part in SPARSE_PARTS[format]]
            entries = int(np.prod(heads[0].shape, dtype=object))
            if format != "csr":
                return SparseFile(file, n, d, entries, None)
            if [head.shape for head in heads] != [(entries,), (entries,), (n + 1,)]:
                raise ValueError(f"its arrays have shapes {[head.shape for head in heads]}")
            if any(head.dtype.kind not in "iu" for head in heads[1:]):
                raise ValueError("its indices are no integers")
            infos = [archive.getinfo(f"{part}.npy") for part in SPARSE_PARTS[format]]
            places = None
            if all(info.compress_type == zipfile.ZIP_STORED for info in infos):
                begins = [_begin(file, info) for info in infos]
                data, indices, indptr = (
                    Place(begin + head.offset, head.dtype, head.shape[0])
                    for begin, head in zip(begins, heads, strict=True)
                )
                places = data, indices, indptr
            return SparseFile(file, n, d, entries, places)


def _begin(file: Path, info: zipfile.ZipInfo) -> int:
    """Return where the bytes of a member begin, which are all there."""
    with open(file, "rb") as stream:
        stream.seek(info.header_offset)
        name, extra = struct.unpack_from("<HH", stream.read(LOCAL_HEADER), LENGTHS)
    begin: int = info.header_offset + LOCAL_HEADER + name + extra
    if begin + info.file_size > file.stat().st_size:
        raise ValueError(f"{info.filename} would end after the file")
    return begin


def is_large_sparse(file: Path) -> bool:
    """Return whether a file is to be read in blocks: a matrix of an eighth of the memory or more.

    Only one whose rows can be read by themselves; others are held in memory, or refused.
    """
    if file.stat().st_size <= memory_limit() // 8:
        return False
    with opened_npz(file) as archive:
        return holds_sparse(archive) and sparse_file(file).places is not None
