"""A schedule on disk: its files, how they are filled and published, and what may be replaced.

    NAME.npy            batches, int64, (steps, k): a plain NumPy file
    NAME.inclusion.npy  b, float64, (n,); absent if the design has no closed form for it
    NAME.json           the record: format version, provenance, checksums
    NAME.part/          unfinished work: batches.npy, inclusion.npy, record.json and a lock

All files are written and synced in NAME.part/, then renamed, the record last. A kill leaves the
old schedule; or files that do not have the checksums of NAME.json, which `load` refuses, and a
NAME.part/record.json that lets the next call go on renaming; or unfinished work. Batch t is a
function of (seed, t), so the next call goes on after the batches that NAME.part/record.json counts,
if they still have its checksum, to the same bytes. Checksums are of what was drawn, hashed on its
way to the disk, never of what is found there.

One process holds the lock of NAME.part/, the others wait. Where the file system has no locks, each
fills a folder of its own, NAME.part-*/, and reads the published schedule back. Nothing is replaced
that is not part of a schedule, and renaming never writes through a link.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Any, final

import numpy as np

from dmsgd.errors import InputError
from dmsgd.files.paths import check_path
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import format_bytes

log = logging.getLogger("dmsgd")

FORMAT = "dmsgd schedule"
#: Goes up when this version of the package can no longer read what was written before.
FORMAT_VERSION = 3
#: No record is larger; nothing beyond this is read.
MAX_RECORD_BYTES = 2**20
#: At most about this many seconds of work are lost when the process is killed.
SAVE_SECONDS = 1.0
#: Bytes at either end of a file that `ends` hashes.
END = 2**16

#: Names in NAME.part/.
BATCHES, INCLUSION, RECORD, LOCK = "batches.npy", "inclusion.npy", "record.json", "lock"
NEW_RECORD = f"{RECORD}.new"


@final
@dataclass(frozen=True)
class Record:
    """What a schedule's array holds: size, seed, origin, and checksums of what is on disk.

    design, kernel, sampler: in words.
    data:        fingerprint of the kernel ("" for designs without one).
    fingerprint: of the design.
    dmsgd:       version that made the draws.
    done:        number of batches on disk, and `checksum` the sha256 of the file up to them.
    ends:        sha256 of the file's first and last 64 KB; "" until everything is on disk.
    inclusion_checksum: sha256 of the file of b; "" if there is none.
    """

    steps: int
    k: int
    n: int
    seed: int
    design: str
    kernel: str
    sampler: str
    data: str
    fingerprint: str
    dmsgd: str
    done: int = 0
    checksum: str = ""
    ends: str = ""
    inclusion_checksum: str = ""

    def difference(self, asked: Record, *, versions: bool = False) -> str:
        """Return in words how this is another schedule than `asked`, "" if it is the same.

        `versions`: draws made by another version of dmsgd count as different.
        """
        names = ["steps", "k", "n", "seed", "sampler", "data", *(["dmsgd"] if versions else [])]
        named = [name for name in names if getattr(self, name) != getattr(asked, name)]
        if not named and self.fingerprint != asked.fingerprint:
            named = ["fingerprint"]
        words = ", ".join(
            f"{name} is {short(getattr(self, name))}, not {short(getattr(asked, name))}"
            for name in named
        )
        return f"{words} (other features, labels, w or scaling)" if "data" in named else words

    def is_possible(self) -> bool:
        """Return whether all fields have their types, and sizes and checksums can be."""
        if any(type(getattr(self, field.name)).__name__ != field.type for field in fields(self)):
            return False
        sums = self.checksum, self.ends or self.checksum, self.inclusion_checksum or self.checksum
        hashed = all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in sums)
        sizes = 0 <= self.done <= self.steps and 1 <= self.k <= self.n and self.steps >= 1
        return hashed and sizes and self.seed >= 0

    def to_json(self) -> bytes:
        """Return the record as a JSON file, with the checksum of all its fields."""
        content = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(self)}
        content["json_checksum"] = json_checksum(content)
        return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


def short(value: Any) -> str:
    """Return a value as it goes into a message: hashes by their first digits."""
    return f"{value[:12] or 'none'}" if isinstance(value, str) else str(value)


def json_checksum(content: dict[str, Any]) -> str:
    """Return the sha256 of fields and values, however they are laid out."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_record(path: Path) -> Record:
    """Return the record in a JSON file; raise ValueError if it is damaged, or of another format."""
    content: Any = None
    with suppress(ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= MAX_RECORD_BYTES:
            content = json.loads(path.read_bytes())
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is damaged, or not the record of a schedule")
    if content.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {short(content.get('version'))}, written by dmsgd "
            f"{short(content.get('dmsgd'))}; this one reads version {FORMAT_VERSION}: use that "
            f"dmsgd, or draw the schedule again"
        )
    whole = content.pop("json_checksum", None) == json_checksum(content)
    values: dict[str, Any] = {field.name: content.get(field.name) for field in fields(Record)}
    record = Record(**values)
    if not (whole and record.is_possible()):
        raise ValueError(f"{path} was altered, or is damaged: its contents do not fit together")
    return record


@final
@dataclass(frozen=True)
class ScheduleFiles:
    """The files of one schedule; `work` is the folder of unfinished work."""

    batches: Path
    inclusion: Path
    record: Path
    work: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> ScheduleFiles:
        """Return the files of the schedule at `path`, given with or without .npy."""
        if not isinstance(path, str | bytes | os.PathLike):
            raise TypeError(f"path must be that of a file, such as batches.npy, got {path!r}")
        given = os.fsdecode(path)
        name = given.removesuffix(".npy")
        named = os.path.basename(name) not in ("", ".", "..")
        if not named or name.lower().endswith((".npy", ".inclusion")):
            raise ValueError(
                f"{given!r} cannot be the path of a schedule; use another, such as batches.npy"
            )
        name = os.path.abspath(name)
        files = cls(*(Path(name + end) for end in (".npy", ".inclusion.npy", ".json", ".part")))
        for each in (*files.all(), files._with_own_folder().work):
            check_path(each)  # names have a longest length
        return files

    def all(self) -> list[Path]:
        """Return everything that drawing a schedule may create, replace or remove."""
        return [self.batches, self.inclusion, self.record, self.work]

    def exist(self) -> bool:
        """Return whether there are batches and a record of them."""
        return self.batches.exists() and self.record.exists()

    def finished(self) -> Record | None:
        """Return the record in NAME.json, None if there is none that can be trusted."""
        with suppress(OSError, ValueError):
            return read_record(self.record)
        return None

    def unfinished(self) -> Record | None:
        """Return the record of unfinished work, None if there is none that can be trusted."""
        return replace(self, record=self.work / RECORD).finished()

    # --- one process at a time

    @contextmanager
    def locked(self) -> Iterator[ScheduleFiles]:
        """Hold NAME.part/, created if absent; wait while another process holds it.

        The lock of a killed process vanishes with it. Where the file system has no locks, the files
        that are yielded have a folder of their own, which is removed at the end.
        """
        while True:
            with suppress(FileExistsError):
                os.mkdir(self.work)
            self._check_folder()
            try:
                file = open(self.work / LOCK, "ab")  # noqa: SIM115
            except FileNotFoundError:  # another process has just finished, and removed the folder
                continue
            with file:
                there_are_locks = lock(file)
                if there_are_locks and not _has_name(self.work / LOCK, file):
                    continue  # it was removed while this process waited
                try:
                    if there_are_locks:
                        yield self
                finally:
                    self._unlock(file)
            if not there_are_locks:
                own = self._with_own_folder()
                os.mkdir(own.work)
                try:
                    yield own
                finally:
                    shutil.rmtree(own.work, ignore_errors=True)
            return

    def _unlock(self, file: IO[bytes]) -> None:
        """Release the lock, and remove the folder unless there are draws in it."""
        if os.name == "nt":
            file.close()  # Windows removes no open file, and none that another process has opened
        with suppress(OSError):
            if not self._names():
                os.unlink(self.work / LOCK)  # while it is held, so that nobody else holds it
        file.close()
        with suppress(OSError):
            os.rmdir(self.work)

    def _with_own_folder(self) -> ScheduleFiles:
        return replace(self, work=self.work.with_name(f"{self.work.name}-{secrets.token_hex(4)}"))

    def _names(self) -> list[str]:
        """Return the names in NAME.part/ except the lock, and hidden ones, such as NFS makes."""
        names = os.listdir(self.work) if self.work.is_dir() else []
        return [name for name in names if name != LOCK and not name.startswith(".")]

    def abandoned(self) -> bool:
        """Return whether NAME.part/ holds a lock alone: a process begins, or was killed."""
        return self.work.is_dir() and not self._names()

    # --- what may be replaced

    def _check_folder(self) -> None:
        """Raise if NAME.part is a file or a link, or holds links or files of others."""
        if self.work.is_symlink() or (os.path.lexists(self.work) and not self.work.is_dir()):
            raise _stranger(self.work)
        with suppress(FileNotFoundError):  # another process has removed the folder
            for name in (LOCK, *self._names()):
                path = self.work / name
                if path.is_symlink() or name not in (LOCK, BATCHES, INCLUSION, RECORD, NEW_RECORD):
                    raise _stranger(path)

    def refuse_strangers(self) -> None:
        """Raise if a file that would be replaced is not part of a schedule."""
        self._check_folder()
        if os.path.lexists(self.record) and not _names_format(self.record):
            raise _stranger(self.record)
        for file, name in ((self.batches, "checksum"), (self.inclusion, "inclusion_checksum")):
            if os.path.lexists(file) and not self._is_known(file, name):
                raise _stranger(file)

    def _is_known(self, file: Path, name: str) -> bool:
        """Return whether a record vouches for NAME.npy or b, by the checksum of that name.

        NAME.json is asked last, because a process that publishes moves its record there at the end.
        """
        if file.is_dir():
            return False
        for folder in self.work.parent.glob(f"{glob.escape(self.batches.stem)}.part*"):
            found = replace(self, work=folder).unfinished()
            if found and found.ends and getattr(found, name) == sha256(file):
                return True
        if name == "checksum" or not self.record.exists():
            return self.record.exists()
        found = self.finished()
        return found is None or found.inclusion_checksum != ""  # damaged, it may have had one

    def refuse_inputs(self, inputs: Iterable[Path]) -> None:
        """Raise if a file that would be replaced is one of these, or lies in one of them."""
        for given in inputs:
            for file in (*self.all(), *self.batches.parents):
                with suppress(OSError):  # one of them is not there, or was renamed just now
                    if file.samefile(given):
                        raise ValueError(
                            f"{given} is an input, and would be lost to the schedule "
                            f"{self.batches}; choose another path"
                        )

    def check_disk(self, steps: int, k: int, n: int) -> None:
        """Raise OSError if the disk has no room for `steps` batches of k, and b of n items."""
        needed = 8 * (steps * k + n) + 2**14  # which is more than headers and records take
        with suppress(FileNotFoundError):
            needed -= (self.work / BATCHES).stat().st_size
        free = shutil.disk_usage(self.batches.parent).free
        if needed > free:
            raise OSError(
                errno.ENOSPC,
                f"{steps:,} batches of {k:,} need {format_bytes(needed)}, and "
                f"{format_bytes(free)} are free; ask for fewer steps, or write to another disk",
            )

    def resume(self, asked: Record, overwrite: bool) -> Record:
        """Return `asked` with the batches that are on disk in `done`.

        Raises ValueError if they are of another schedule, or damaged, unless `overwrite`.
        """
        found = self.unfinished()
        if found and not found.difference(asked, versions=True):
            return found
        if not overwrite:
            self.refuse_another_beginning(asked)
            damaged = {BATCHES, RECORD}.intersection(self._names())
            if damaged or (self.record.exists() and not self.batches.exists()):
                raise InputError(
                    f"{self.work if damaged else self.record} is not part of a finished schedule; "
                    f"choose another path, or replace it",
                    overwrite=True,
                )
        return asked

    def refuse_another_beginning(self, asked: Record) -> None:
        """Raise if the batches that were drawn here so far are not of this very schedule."""
        found = self.unfinished()
        difference = found.difference(asked, versions=True) if found else ""
        if difference:
            raise InputError(
                f"{self.work} is the beginning of another schedule: {difference}; choose another "
                f"path, or replace it",
                overwrite=True,
            )

    # --- writing

    def fill(
        self,
        record: Record,
        draw: Callable[[int], Iterable[IntArray]],
        inclusion: Callable[[], FloatArray | None],
    ) -> None:
        """Append draws to NAME.part/batches.npy; sync and record them every second.

        record:    what `resume` returned.
        draw:      from the number of the first batch to all batches from there on, in pieces.
        inclusion: b; called last, because designs that read data in blocks find it on the way.
        """
        path, head = self.work / BATCHES, header("<i8", (record.steps, record.k))
        digest, done = self._digest(record, len(head) + 8 * record.k * record.done), record.done
        if digest is None:
            digest, done = hashlib.sha256(head), 0
            self.write_record(replace(record, done=0, checksum=digest.hexdigest()))
            _write_new(path, head)
        with open(path, "r+b") as file:
            file.seek(len(head) + 8 * record.k * done)
            file.truncate()
            saved = time.monotonic()
            for batches in draw(done):
                content = batches.astype("<i8", copy=False).tobytes()
                digest.update(content)
                file.write(content)
                done += len(batches)
                if time.monotonic() - saved > SAVE_SECONDS:
                    _sync(file)
                    self.write_record(replace(record, done=done, checksum=digest.hexdigest()))
                    saved = time.monotonic()
            _sync(file)
        record = replace(record, done=done, checksum=digest.hexdigest(), ends=ends(path))
        b = inclusion()
        (self.work / INCLUSION).unlink(missing_ok=True)
        if b is not None:
            numbers = np.ascontiguousarray(b, dtype="<f8")
            content_of_b = header("<f8", numbers.shape), numbers.data
            _write_new(self.work / INCLUSION, *content_of_b)
            record = replace(record, inclusion_checksum=_sha256_of(content_of_b))
        sync_folder(self.work)
        self.write_record(record)

    def _digest(self, record: Record, size: int) -> Any:
        """Return the running hash of the batches on disk, None if they are not as recorded."""
        path, digest = self.work / BATCHES, hashlib.sha256()
        if record.done == 0 or not path.is_file() or path.stat().st_size < size:
            return None
        with open(path, "rb", buffering=0) as file:
            while size and (piece := file.read(min(size, 2**20))):
                digest.update(piece)
                size -= len(piece)
        if digest.hexdigest() == record.checksum:
            return digest
        log.warning("the %d draws in %s were altered; drawing them again", record.done, self.work)
        return None

    def write_record(self, record: Record) -> None:
        """Replace the record of unfinished work; the batches it counts must be on the disk."""
        _write_new(self.work / NEW_RECORD, record.to_json())
        os.replace(self.work / NEW_RECORD, self.work / RECORD)

    def publish(self) -> None:
        """Rename the complete files into place; after a kill the same call goes on."""
        if not read_record(self.work / RECORD).inclusion_checksum:
            self.inclusion.unlink(missing_ok=True)
        # Between two renames the files do not have the checksums of NAME.json: `load` refuses them.
        for name, target in ((INCLUSION, self.inclusion), (BATCHES, self.batches)):
            with suppress(FileNotFoundError):  # renamed before the kill
                os.replace(self.work / name, target)
        sync_folder(self.batches.parent)  # or a power failure may keep the record without batches
        os.replace(self.work / RECORD, self.record)
        sync_folder(self.batches.parent)


def _stranger(file: Path) -> ValueError:
    return ValueError(
        f"{file} is not part of a schedule, and would be lost; move it away, or choose another path"
    )


def _names_format(path: Path) -> bool:
    """Return whether a file is a record, perhaps a damaged one."""
    try:
        with open(path if path.is_file() else os.devnull, "rb") as file:
            return f'"{FORMAT}"'.encode() in file.read(4096)
    except OSError:
        return False


def lock(file: IO[bytes]) -> bool:
    """Wait for the lock of `file`; return False where there are no locks."""
    if sys.platform == "win32":
        import msvcrt

        while True:
            with suppress(OSError):  # Windows gives up after ten seconds
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # some network file systems
        return False
    return True


def _has_name(path: Path, file: IO[bytes]) -> bool:
    """Return whether an open file still has this name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def header(kind: str, shape: tuple[int, ...]) -> bytes:
    """Return the first 128 bytes of a NumPy file.

    Spelled out, so that another version of NumPy cannot move the draws of an unfinished file.
    """
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n"


def _write_new(path: Path, *content: bytes | memoryview) -> None:
    """Write a new file, synced; what is at `path` goes, and so does a file that has no room."""
    path.unlink(missing_ok=True)
    try:
        with open(path, "xb") as file:
            for part in content:
                file.write(part)
            _sync(file)
    except BaseException:  # Ctrl-C too
        path.unlink(missing_ok=True)
        raise


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until renames are on the disk, so that none overtakes another."""
    with suppress(OSError):  # Windows and some network file systems cannot
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _sha256_of(content: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for part in content:
        digest.update(part)
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    with open(path, "rb", buffering=0) as file:
        return _sha256_of(iter(lambda: file.read(2**20), b""))


def ends(path: Path) -> str:
    """Return the sha256 of a file's first and last 64 KB."""
    with open(path, "rb", buffering=0) as file:
        first = file.read(END)
        file.seek(max(os.fstat(file.fileno()).st_size - END, 0))
        return _sha256_of((first, file.read(END)))
