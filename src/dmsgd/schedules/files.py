"""A schedule on disk: which files there are, and how they change without ever being half true.

    NAME.npy            batches, int64, (steps, k): a plain NumPy file
    NAME.inclusion.npy  b, float64, (n,); absent if the design has no closed form for it
    NAME.json           format version, provenance, checksums of both ("" for an absent b)
    NAME.part           batches while they are drawn; it becomes NAME.npy at the end
    NAME.part.json      whose draws these are, and how many of them are safely on the disk

Draw t is a function of (seed, t), so a process that was killed goes on after the draws that
NAME.part.json vouches for, and writes the same bytes as one that was not.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.schedules.record import Record, read_json, write_json

#: Bytes, or an array's memory.
Buffer = bytes | memoryview


@final
@dataclass(frozen=True)
class Files:
    """The files of one schedule."""

    batches: Path
    inclusion: Path
    sidecar: Path
    part: Path
    journal: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Files:
        """Return the files of the schedule at `path`, given with or without .npy."""
        name = os.path.abspath(os.fspath(path)).removesuffix(".npy")
        endings = ("npy", "inclusion.npy", "json", "part", "part.json")
        return cls(*(Path(f"{name}.{ending}") for ending in endings))

    def read_journal(self) -> tuple[Record, int] | None:
        """Return whose draws `part` holds and how many, or None if nothing vouches for it."""
        try:
            record, content = read_json(self.journal)
            return record, int(content["done"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_journal(self, record: Record, done: int) -> None:
        """Vouch for the first `done` draws of `part`, which must be on the disk."""
        os.replace(_staged(self.journal, write_json(record, done=done)), self.journal)

    def publish(self, record: Record, inclusion: FloatArray | None) -> None:
        """Turn a complete `part` into a schedule.

        All that needs room on the disk is written before anything is replaced. The draws come
        last: until then there are none beside the sidecar, or old ones that fail its checksum.
        """
        b = () if inclusion is None else _npy(inclusion)
        inclusion_checksum = _sha256_of(b) if b else ""
        sidecar = write_json(
            record, checksum=sha256(self.part), inclusion_checksum=inclusion_checksum
        )
        new_inclusion = _staged(self.inclusion, *b)
        try:
            new_sidecar = _staged(self.sidecar, sidecar)
        except OSError:
            new_inclusion.unlink()
            raise
        os.replace(new_inclusion, self.inclusion)
        if not b:  # nothing took the place of what was there, and now goes too
            self.inclusion.unlink()
        os.replace(new_sidecar, self.sidecar)
        os.replace(self.part, self.batches)
        self.journal.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove the journal that a process killed in its very last step leaves behind."""
        if not self.part.exists():
            with suppress(OSError):  # a finished schedule may lie in a read-only folder
                self.journal.unlink(missing_ok=True)


@contextmanager
def locked(part: Path) -> Iterator[io.FileIO]:
    """Yield the file `part`, created if need be, once no other process holds it.

    After a wait the file may have been renamed; then it is opened anew. The lock of a killed
    process vanishes with it. A file that is still empty at the end is removed.
    """
    while True:
        part.touch()
        try:
            file = io.FileIO(part, "r+")
        except FileNotFoundError:  # renamed since
            continue
        with file:
            _lock(file)
            if not part.exists() or not os.path.samestat(part.stat(), os.fstat(file.fileno())):
                continue
            try:
                yield file
            finally:
                if not file.closed and os.fstat(file.fileno()).st_size == 0:
                    part.unlink(missing_ok=True)
            return


def _lock(file: io.FileIO) -> None:
    """Wait for `file`; where there are no locks, two processes write the same bytes twice."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    with suppress(OSError):  # some network file systems
        fcntl.flock(file, fcntl.LOCK_EX)


def header(steps: int, k: int) -> bytes:
    """Return the first 128 bytes of a NumPy file of (steps, k) int64.

    Spelled out, so that another version of NumPy cannot move the draws of an unfinished file.
    """
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({steps}, {k}), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n"


def write_rows(file: io.FileIO, batches: IntArray) -> None:
    """Write batches at the position of `file`."""
    write_bytes(file, batches.astype("<i8", copy=False).tobytes())


def write_bytes(file: io.FileIO, content: Buffer) -> None:
    """Write all of `content` at the position of `file`; one call may take a part of it only."""
    rest = memoryview(content).cast("B")
    while rest:
        rest = rest[file.write(rest) :]


def _npy(array: FloatArray) -> tuple[Buffer, Buffer]:
    """Return the header and the numbers of a NumPy file of float64, without a copy of these."""
    numbers = np.ascontiguousarray(array, dtype="<f8")
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(numbers))
    return head.getvalue(), numbers.data


def _sha256_of(content: Iterable[Buffer]) -> str:
    digest = hashlib.sha256()
    for part in content:
        digest.update(part)
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(2**20):
            digest.update(piece)
    return digest.hexdigest()


def _staged(path: Path, *content: Buffer) -> Path:
    """Return a new file beside `path` that holds `content`, safely on the disk."""
    new = path.with_name(f"{path.name}.new")
    try:
        with io.FileIO(new, "w") as file:
            for part in content:
                write_bytes(file, part)
            os.fsync(file.fileno())
    except OSError:
        new.unlink(missing_ok=True)
        raise
    return new
