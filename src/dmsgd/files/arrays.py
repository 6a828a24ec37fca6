"""Arrays in .npy, .npz and .zarr files, by NumPy, SciPy and zarr; nothing is unpickled."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from dmsgd.files.paths import choose_array, readable
from dmsgd.inputs.messages import require
from dmsgd.runtime.memory import reserve

P = ParamSpec("P")
T = TypeVar("T")


def _twice(read: Callable[P, T]) -> Callable[P, T]:
    """Return a function that reads once more after a SystemError.

    NumPy parses headers by `ast`, which in some versions of Python may fail beside other threads
    that parse (python/cpython 106905).
    """

    @wraps(read)
    def steady(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return read(*arguments, **options)
        except SystemError:
            return read(*arguments, **options)

    return steady


@_twice
def load_npy(file: Path) -> np.memmap[Any, np.dtype[Any]]:
    """Return the array of a .npy file as a memory map."""
    with readable(file, "NumPy"):
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.memmap):
        array.close()
        raise ValueError(f"{file} is an archive of arrays; rename it to {file.stem}.npz")
    return array


@_twice
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


@_twice
def sparse_size(file: Path) -> tuple[int, int, int]:
    """Return rows, columns and stored numbers of the matrix of sparse.save_npz in a file."""
    sizes = npz_sizes(file)
    if not holds_sparse(sizes):
        raise ValueError(f"{file} is no SciPy sparse matrix; write it with sparse.save_npz")
    shape = load_npz(file, "shape", ())
    with readable(file, "SciPy sparse"), zipfile.ZipFile(file) as archive:
        n, d = (int(size) for size in shape)
        if min(n, d) < 0:
            raise ValueError(f"its shape is {(n, d)}")
        if "indices" in sizes and _header(archive, "indices")[0].kind not in "iu":
            raise ValueError("its indices are no integers")
        dtype, start = _header(archive, "data")
        return n, d, (sizes["data"] - start) // dtype.itemsize


def _header(archive: zipfile.ZipFile, name: str) -> tuple[np.dtype[Any], int]:
    """Return the type of an array in an archive, and the number of bytes before its entries."""
    form = np.lib.format
    with archive.open(f"{name}.npy") as stream:
        first = form.read_magic(stream) == (1, 0)
        read = form.read_array_header_1_0 if first else form.read_array_header_2_0
        return read(stream)[2], stream.tell()


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
