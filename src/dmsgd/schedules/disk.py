"""The bytes of a schedule's files: their locks, what they begin with, and their checksums."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.schedules.record import FORMAT, MARK

#: Bytes, or an array's memory.
Buffer = bytes | memoryview

#: Bytes at either end of a file that `ends` hashes.
END = 2**16

#: Flags of every file that is opened for writing: no links, and bytes as they are.
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
#: Flags of a file that is opened to wait for its lock: never for whoever writes to a pipe.
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | PLAIN


@contextmanager
def locked(part: Path, batches: Path) -> Iterator[tuple[io.FileIO, bool]]:
    """Yield the file `part`, created if need be, once no other process holds it.

    After a wait the file may have been renamed; then it is opened anew. Its name is then `batches`,
    and whoever renamed it holds it until the schedule is complete, which is waited for. The lock of
    a killed process vanishes with it. A file that is still empty at the end is removed. The second
    of what is yielded says if there are locks at all.
    """
    while True:
        with io.FileIO(_opened(part), "r+") as file:
            alone = _lock(file)
            if not _named(part, file):
                continue
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise OSError(
                    errno.EPERM, f"{part} is no plain file, or has a second name (a hard link)"
                )
            with suppress(OSError), io.FileIO(os.open(batches, READ)) as renamed:
                _lock(renamed)
            try:
                yield file, alone
            finally:
                if not file.closed and os.fstat(file.fileno()).st_size == 0:
                    part.unlink(missing_ok=True)
            return


def _named(part: Path, file: io.FileIO) -> bool:
    """Return whether this is still the file's name; any moment it may be renamed or removed."""
    try:
        return os.path.samestat(part.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _opened(part: Path) -> int:
    try:
        return os.open(part, os.O_RDWR | os.O_CREAT | PLAIN, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP or part.is_symlink():
            raise ValueError(
                f"{part} is a link, and nothing is written through links; remove it, or choose "
                f"another path"
            ) from None
        raise


def _lock(file: io.FileIO) -> bool:
    """Wait for `file`; return False where there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # some network file systems
        return False
    return True


def begins(path: Path, mark: bytes) -> bool:
    """Return whether a file is absent, begins with `mark`, or was cut off within it.

    With the mark of JSON files, also if it names our format: damaged, or laid out by others.
    """
    if not path.is_file():
        return not os.path.lexists(path)
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except FileNotFoundError:  # renamed since
        return True
    except OSError:
        return False
    named = mark == MARK and f'"{FORMAT}"'.encode() in head
    return head[: len(mark)] == mark[: len(head)] or named


def holds(path: Path, content: bytes) -> bool:
    """Return whether a file can be read and holds just this."""
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def header(steps: int, k: int) -> bytes:
    """Return the first 128 bytes of a NumPy file of (steps, k) int64.

    Spelled out, so that another version of NumPy cannot move the draws of an unfinished file.
    """
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({steps}, {k}), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n"


def write_bytes(file: io.FileIO, content: Buffer) -> None:
    """Write all of `content` at the position of `file`; one call may take a part of it only."""
    rest = memoryview(content).cast("B")
    while rest:
        rest = rest[file.write(rest) :]


def as_bytes(batches: IntArray) -> bytes:
    """Return batches as they are stored."""
    return batches.astype("<i8", copy=False).tobytes()


def as_npy(array: FloatArray) -> tuple[Buffer, Buffer]:
    """Return the header and the numbers of a NumPy file of float64, without a copy of these."""
    numbers = np.ascontiguousarray(array, dtype="<f8")
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(numbers))
    return head.getvalue(), numbers.data


def sha256_of(content: Iterable[Buffer]) -> str:
    """Return the sha256 of these bytes, one after the other."""
    digest = hashlib.sha256()
    for part in content:
        digest.update(part)
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    with open(path, "rb", buffering=0) as file:
        return sha256_of(iter(lambda: file.read(2**20), b""))


def ends(path: Path) -> str:
    """Return the sha256 of a file's first and last 64 KB."""
    with open(path, "rb", buffering=0) as file:
        first = file.read(END)
        file.seek(max(os.fstat(file.fileno()).st_size - END, 0))
        return sha256_of((first, file.read(END)))
