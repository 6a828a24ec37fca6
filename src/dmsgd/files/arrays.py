"""Arrays in .npy, .npz and .zarr files, by NumPy, SciPy and zarr; nothing is unpickled."""

from __future__ import annotations

import math
import struct
import warnings
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dmsgd.files.paths import choose_array, readable
from dmsgd.inputs.arrays import IntArray, as_matrix
from dmsgd.inputs.messages import require
from dmsgd.runtime.memory import reserve


def load_npy(file: Path) -> np.memmap[Any, np.dtype[Any]]:
    """Return the array of a .npy file as a memory map."""
    with readable(file, "NumPy"):
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.memmap):
        array.close()
        raise ValueError(f"{file} is an archive of arrays; rename it to {file.stem}.npz")
    return array


def load_npz(file: Path, name: str | None, defaults: Sequence[str]) -> Any:
    """Return one array of an .npz file, or the matrix that scipy.sparse.save_npz wrote there."""
    sizes = npz_sizes(file)
    is_sparse = name is None and holds_sparse(sizes)
    name = "" if is_sparse else choose_array(file, list(sizes), name, defaults)
    size = sum(sizes.values()) if is_sparse else sizes[name]  # unpacked: zip bombs stop here
    advice = "save it as .npy, or a folder of sparse .npz files: they are read in blocks"
    reserve(size // 8, f"{name or 'the matrix'} of {file}", advice)
    with readable(file, "SciPy sparse" if is_sparse else "NumPy"):
        if is_sparse:
            from scipy import sparse

            return sparse.load_npz(file)
        with np.load(file, allow_pickle=False) as archive:
            return archive[name]


def npz_sizes(file: Path) -> dict[str, int]:
    """Return the bytes of each array in an .npz file, when unpacked."""
    with open(file, "rb") as stream:
        if stream.read(6) == b"\x93NUMPY":
            raise ValueError(f"{file} is a single array; rename it to {file.stem}.npy")
    with readable(file, "NumPy"), zipfile.ZipFile(file) as archive:
        infos = [each for each in archive.infolist() if each.filename.endswith(".npy")]
        return {each.filename.removesuffix(".npy"): each.file_size for each in infos}


def holds_sparse(names: Collection[str]) -> bool:
    """Return whether an archive with these arrays is one of scipy.sparse.save_npz."""
    return {"format", "shape", "data"} <= set(names)


@final
@dataclass(frozen=True)
class SparseFile:
    """A sparse (n, d) matrix in a .npz file.

    entries: how many numbers it stores.
    parts:   offset and dtype of data, indices and indptr in the file, where rows can be read by
             themselves: CSR, not compressed (`compressed=False` of save_npz).
    """

    file: Path
    n: int
    d: int
    entries: int
    parts: tuple[tuple[int, np.dtype[Any]], ...] | None

    @classmethod
    def open(cls, file: Path) -> SparseFile:
        """Return the shape and layout of the matrix, from the headers of the file."""
        if not holds_sparse(npz_sizes(file)):
            raise ValueError(f"{file} is no SciPy sparse matrix; write it with sparse.save_npz")
        shape, kind = (load_npz(file, name, ()) for name in ("shape", "format"))
        with readable(file, "SciPy sparse"), zipfile.ZipFile(file) as archive:
            (n, d), is_csr = (int(size) for size in shape), kind.item() in (b"csr", "csr")
            if min(n, d) < 0:
                raise ValueError(f"its shape is {(n, d)}")
            names = ("data", "indices", "indptr") if is_csr else ("data",)
            parts = [_part(archive, name) for name in names]
            entries = math.prod(parts[0].shape)
            if is_csr and [part.shape for part in parts] != [(entries,), (entries,), (n + 1,)]:
                raise ValueError(f"its arrays have shapes {[part.shape for part in parts]}")
            if any(part.dtype.kind not in "iu" for part in parts[1:]):
                raise ValueError("its indices are no integers")
        cut = is_csr and all(part.stored for part in parts)
        places = tuple((part.offset, part.dtype) for part in parts)
        return cls(file, n, d, entries, places if cut else None)

    def check(self) -> None:
        """Raise if the checksums of the archive are wrong."""
        with readable(self.file, "SciPy sparse"), zipfile.ZipFile(self.file) as archive:
            if (name := archive.testzip()) is not None:
                raise ValueError(f"the checksum of {name} is wrong")

    def starts(self) -> IntArray:
        """Return where rows begin among the entries, shape (n + 1,)."""
        with readable(self.file, "SciPy sparse"):
            starts = self._read(2, 0, self.n + 1).astype(np.int64)
            if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > self.entries:
                raise ValueError("its rows do not follow each other")
        return starts

    def rows(self, start: int, stop: int, whole: bool) -> Any:
        """Return the rows start..stop, CSR; `whole`: of all that is in the file, checksums too."""
        if whole:
            found = as_matrix(load_npz(self.file, None, ()), str(self.file), allow_tiny=True)
            if found.shape != (self.n, self.d):
                raise ValueError(f"{self.file} has changed while it was read; write it again")
            return found[start:stop]
        from scipy import sparse

        with readable(self.file, "SciPy sparse"):
            ends = self._read(2, start, stop + 1).astype(np.int64)
            first, last = ends[[0, -1]].tolist()
            if not 0 <= first <= last <= self.entries:
                raise ValueError(f"a row has the entries {first} to {last} of {self.entries}")
            parts = (self._read(part, first, last) for part in (0, 1))
            return sparse.csr_array((*parts, ends - first), shape=(stop - start, self.d))

    def _read(self, part: int, start: int, stop: int) -> npt.NDArray[Any]:
        assert self.parts is not None
        offset, dtype = self.parts[part]
        found = np.fromfile(self.file, dtype, stop - start, offset=offset + start * dtype.itemsize)
        if found.size != stop - start:
            raise ValueError("it ends before its last number")
        return found


class _Part(NamedTuple):
    """An array in an archive: where it begins in the file, and whether it is not compressed."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    stored: bool


def _part(archive: zipfile.ZipFile, name: str) -> _Part:
    info, form = archive.getinfo(f"{name}.npy"), np.lib.format
    with archive.open(info) as stream:
        version = form.read_magic(stream)
        read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, _, dtype = read(stream)
        header = stream.tell()
    if dtype.hasobject:
        raise ValueError("Python objects")
    if header + math.prod(shape) * dtype.itemsize != info.file_size:
        raise ValueError(f"{name} declares another size than it has")
    with open(str(archive.filename), "rb") as file:
        file.seek(info.header_offset + 26)  # a header of 30 bytes, then its name and extra field
        begin = info.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
    return _Part(shape, dtype, begin + header, info.compress_type == zipfile.ZIP_STORED)


def open_zarr(file: Path, name: str | None, defaults: Sequence[str]) -> Any:
    """Return the array of a Zarr store, or of a group the array `name`, its only or a default."""
    require("zarr", f"{file}: reading Zarr")
    import zarr

    with readable(file, "Zarr"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about stray files in a store
        found = zarr.open(str(file), mode="r")
        is_group = not hasattr(found, "ndim")
        members = found.members(max_depth=None) if is_group else ()
        arrays = {path: member for path, member in members if hasattr(member, "ndim")}
    if is_group:
        return arrays[choose_array(file, sorted(arrays), name, defaults)]
    if name is not None:
        raise ValueError(f"{file} is a single Zarr array, no group; give it without :{name}")
    return found


def check_chunks(array: Any, name: str) -> None:
    """Raise if one chunk of a Zarr array, which is read whole, does not fit in memory."""
    chunk = getattr(array, "shards", None) or array.chunks
    numbers = int(np.prod([float(size) for size in chunk])) * array.dtype.itemsize // 8
    reserve(numbers, f"one chunk of {name}", "store it in smaller chunks")


def load_array(file: Path, name: str | None, defaults: Sequence[str]) -> npt.NDArray[Any]:
    """Return one array of a .npy, .npz or Zarr file.

    defaults: the names that are tried if `name` is None.
    """
    suffix = file.suffix.lower()
    if suffix == ".npy":
        return load_npy(file)
    if suffix == ".npz":
        return load_npz(file, name, defaults)  # type: ignore[no-any-return]
    array = open_zarr(file, name, defaults)
    with readable(file, "Zarr"):
        check_chunks(array, str(file))
        reserve(array.size * array.dtype.itemsize // 8, f"all of {file}", "use a part of the data")
        return np.asarray(array[...])
