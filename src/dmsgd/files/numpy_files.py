"""Arrays from .npy and .npz files, NumPy's and SciPy's sparse ones.

Files are not trusted: a header is matched rather than evaluated, no size that a file declares is
allocated before it is compared with the bytes that are there, and nothing is unpickled.
"""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, final

import numpy as np
import numpy.typing as npt

from dmsgd.files.paths import chosen, readable
from dmsgd.inputs.memory import reserve

MAGIC = b"\x93NUMPY"
#: NumPy refuses longer headers too; those of plain arrays have 118 bytes.
LONGEST_HEADER = 10_000
#: One entry of a header; its other words are commas and spaces.
ENTRY = re.compile(
    r"""\s*['"](descr|fortran_order|shape)['"]\s*:\s*"""
    r"""(True|False|'[^'\\]*'|"[^"\\]*"|\([\dL,\s]*\))\s*(?:,\s*|$)""",
    re.ASCII,
)
#: A tuple of sizes, as Python writes it (2 with an L for long ones).
SHAPE = re.compile(
    r"\((SIZE,\s*(SIZE,\s*)*(SIZE)?)?\)".replace("SIZE", r"(0|[1-9]\d*)L?\s*"), re.ASCII
)
#: The types of numbers, texts and dates.
PLAIN = re.compile(r"[<>|=]?([biufcSUmM]\d*(\[\w*\])?|\?)", re.ASCII)
#: No compression of a .npz archive makes more of a byte (deflate: 1,032).
MOST_FROM_A_BYTE = 1_040
#: The arrays of SciPy's sparse archives, by their format.
SPARSE_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
#: What to do about a sparse matrix that is too large.
IN_BLOCKS = (
    "save it with scipy.sparse.save_npz(file, X, compressed=False), or its rows in several files "
    "of a folder, which are read in blocks"
)


@final
@dataclass(frozen=True)
class Header:
    """What the beginning of a .npy file says, and how long it is."""

    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    shape: tuple[int, ...]
    offset: int

    @property
    def stop(self) -> int:
        """Where the array ends."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def load_npy(file: Path) -> np.memmap[Any, np.dtype[Any]]:
    """Return the array of a .npy file as a memory map."""
    with open(file, "rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC and zipfile.is_zipfile(file):
            raise ValueError(f"{file} is an archive of arrays; rename it to {file.stem}.npz")
        stream.seek(0)
        with readable(file, "NumPy"):
            head = _header(stream.read)
            there = os.fstat(stream.fileno()).st_size
            if head.stop > there:
                raise ValueError(f"it declares {head.stop} bytes and has {there}")
            # Of the open file: by now another may have its name.
            array = np.memmap(stream, head.dtype, "r", head.offset, head.shape, head.order)
    return array


def load_npz(file: Path, name: str | None, usual: tuple[str, ...]) -> Any:
    """Return the array `name` of an archive, its only one, one of a usual name, or CSR."""
    with opened_npz(file) as archive:
        if name is None and holds_sparse(archive):
            with readable(file, "SciPy sparse"):
                return _sparse(file, archive)
        name = chosen(file, _names(archive), name, usual)
        with readable(file, "NumPy"):
            return _member(file, archive, name, "save it as .npy, which is read in blocks")


@contextmanager
def opened_npz(file: Path) -> Iterator[zipfile.ZipFile]:
    """Yield the archive of a .npz file."""
    with open(file, "rb") as stream:
        if stream.read(len(MAGIC)) == MAGIC:
            raise ValueError(f"{file} is a single array; rename it to {file.stem}.npy")
        with readable(file, "NumPy"):
            archive = zipfile.ZipFile(stream)
        with archive:
            yield archive


def _names(archive: zipfile.ZipFile) -> list[str]:
    return [each[:-4] for each in archive.namelist() if each.endswith(".npy")]


def holds_sparse(archive: zipfile.ZipFile) -> bool:
    """Return whether an archive looks like one of scipy.sparse.save_npz."""
    return {"format", "shape", "data"} <= set(_names(archive))


def _header(read: Callable[[int], bytes]) -> Header:
    """Return what the beginning of a .npy file says."""
    start = read(len(MAGIC) + 2)
    if start[: len(MAGIC)] != MAGIC or start[len(MAGIC) :] not in (b"\1\0", b"\2\0", b"\3\0"):
        raise ValueError("it does not begin like one")
    kind = "<H" if start.endswith(b"\1\0") else "<I"
    length = struct.unpack(kind, _exactly(read, struct.calcsize(kind)))[0]
    if length > LONGEST_HEADER:
        raise ValueError(f"its header would have {length} bytes")
    text = _exactly(read, length).decode("utf-8" if start.endswith(b"\3\0") else "latin-1")
    entries, place, end = {}, text.find("{") + 1, text.rfind("}")
    while place < end and (entry := ENTRY.match(text, place, end)):
        entries[entry[1]] = entry[2]
        place = entry.end()
    around = text[: text.find("{")] + text[end + 1 :]
    if place != end or len(entries) != 3 or around.strip(" \n"):
        raise ValueError("its header is not that of a plain array")
    descr, order, shape = entries["descr"][1:-1], entries["fortran_order"], entries["shape"]
    if descr.endswith("O"):
        raise ValueError("Python objects")
    if not PLAIN.fullmatch(descr) or order not in ("True", "False"):
        raise ValueError(f"its header names no plain type: {descr[:40]!r}")
    if not SHAPE.fullmatch(shape):
        raise ValueError(f"its header declares the shape {shape[:60]}")
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, OverflowError, SyntaxError) as error:
        raise ValueError(f"its header names no type: {error}") from None
    sizes = tuple(int(size) for size in re.findall(r"\d+", shape))
    if len(sizes) > 32 or any(size >= 2**62 for size in sizes) or dtype.itemsize == 0:
        raise ValueError(f"its header declares the shape {shape[:60]}")
    offset = len(start) + struct.calcsize(kind) + length
    return Header(dtype, "F" if order == "True" else "C", sizes, offset)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    found = read(size)
    if len(found) != size:
        raise ValueError("it ends within its header")
    return found


def member_header(file: Path, archive: zipfile.ZipFile, name: str) -> Header:
    """Return what the beginning of an array of an archive says."""
    found = archive.getinfo(f"{name}.npy")
    _refuse_impossible(found, file)
    with archive.open(found) as stream:
        head = _header(stream.read)
    if head.stop != found.file_size:
        raise ValueError(f"{name} declares {head.stop} bytes and has {found.file_size}")
    return head


def _member(file: Path, archive: zipfile.ZipFile, name: str, advice: str) -> npt.NDArray[Any]:
    """Return one array of an archive."""
    head = member_header(file, archive, name)
    size = head.stop - head.offset
    reserve(size // 8, f"{name} of {file}", advice)
    with archive.open(f"{name}.npy") as stream:
        stream.read(head.offset)
        content = bytearray(size)
        _fill(stream, memoryview(content))
    return np.frombuffer(content, head.dtype).reshape(head.shape, order=head.order)


def _refuse_impossible(found: zipfile.ZipInfo, file: Path) -> None:
    """Raise if a member cannot have the size that the archive declares for it."""
    if found.flag_bits & 1 or found.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(
            f"{found.filename} is encrypted, or compressed in another way than deflate"
        )
    most = found.compress_size * (MOST_FROM_A_BYTE if found.compress_type else 1)
    if found.compress_size > file.stat().st_size or found.file_size > most:
        raise ValueError(
            f"{found.filename} declares {found.file_size} bytes from {found.compress_size}"
        )


def _fill(stream: IO[bytes], room: memoryview) -> None:
    """Read until there is no room; the end must come there, where the checksum is compared."""
    place = 0
    while place < len(room):
        piece = stream.read(min(len(room) - place, 2**20))
        if not piece:
            raise ValueError("an array ends before its last number")
        room[place : place + len(piece)] = piece
        place += len(piece)
    if stream.read(1):
        raise ValueError("an array goes on after its last number")


def sparse_shape(file: Path, archive: zipfile.ZipFile) -> tuple[str, int, int]:
    """Return the format of SciPy's sparse matrix in an archive, and its size."""
    format = np.asarray(_member(file, archive, "format", IN_BLOCKS)).item()
    format = format.decode("latin-1") if isinstance(format, bytes) else str(format)
    if format not in SPARSE_PARTS:
        raise ValueError(f"its format is {format[:20]!r}")
    n, d = (int(size) for size in _member(file, archive, "shape", IN_BLOCKS))
    if min(n, d) < 0:
        raise ValueError(f"its shape is {(n, d)}")
    return format, n, d


def _sparse(file: Path, archive: zipfile.ZipFile) -> Any:
    from scipy import sparse

    format, n, d = sparse_shape(file, archive)
    data, *rest = (_member(file, archive, part, IN_BLOCKS) for part in SPARSE_PARTS[format])
    if any(part.dtype.kind not in "iu" for part in rest):
        raise ValueError("its indices are no integers")
    reserve(n, f"a row index of {n:,} rows in {file}", "use a part of the data")
    make = getattr(sparse, f"{format}_array")
    parts = (data, tuple(rest)) if format == "coo" else (data, *rest)
    matrix = make(parts, shape=(n, d))
    if format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)  # compiled code follows the indices unchecked
    return sparse.csr_array(matrix)
