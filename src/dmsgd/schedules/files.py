"""A schedule on disk: its files, how they are filled and published, and what may be replaced.

    NAME.npy            batches, int64, (steps, k): a plain NumPy file
    NAME.inclusion.npy  b, float64, (n,); absent if the design has no closed form for it
    NAME.json           the record: format version, provenance, checksums of all fields and files
    NAME.part/          unfinished work: batches.npy, inclusion.npy, record.json and a lock

All files are written and synced in NAME.part/, then renamed, the record last. A kill leaves the
old schedule; or files that do not have the checksums of NAME.json, which `load` refuses, and a
NAME.part/record.json that lets the next call go on renaming; or unfinished work. Batch t is a
function of (seed, t), so the next call goes on after the batches that NAME.part/record.json counts,
if they still have its checksum, to the same bytes. Checksums are of what was drawn, hashed on its
way to the disk, never of what is found there.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Any, final

from dmsgd.errors import InputError
from dmsgd.files.paths import check_path
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import format_bytes
from dmsgd.schedules.locks import has_name, is_locked, lock

log = logging.getLogger("dmsgd")

FORMAT = "dmsgd schedule"
#: Goes up when this version of the package can no longer read what was written before.
FORMAT_VERSION = 3
#: At most about this many seconds of work are lost when the process is killed.
SAVE_SECONDS = 1.0
#: Bytes of the header of a NumPy file.
HEADER = 128

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
    complete:    whether all files are on disk, perhaps not yet under their final names.
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
    complete: bool = False
    inclusion_checksum: str = ""

    def is_of(self, asked: Record, place: str, overwrite: bool) -> bool:
        """Return whether this is the schedule `asked`; raise for another one unless `overwrite`."""
        for name in ("steps", "k", "n", "seed", "data", "sampler", "dmsgd", "fingerprint"):
            mine, theirs = getattr(self, name), getattr(asked, name)
            if mine != theirs and not overwrite:
                why = " (other features, labels, w or scaling)" * (name == "data")
                problem = f"{place} another schedule: {name} is {short(mine)}, not {short(theirs)}"
                raise InputError(f"{problem}{why}; choose another path", overwrite=True)
            if mine != theirs:
                return False
        return True

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
        content = json.loads(path.read_bytes() if path.is_file() else "")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is damaged, or not the record of a schedule")
    if content.get("version") != FORMAT_VERSION:
        written = f"{short(content.get('version'))}, written by dmsgd {short(content.get('dmsgd'))}"
        raise ValueError(f"{path} has format version {written}; this one reads {FORMAT_VERSION}")
    if content.pop("json_checksum", None) != json_checksum(content):
        raise ValueError(f"{path} was altered, or is damaged: its checksum is wrong")
    values: dict[str, Any] = {field.name: content.get(field.name) for field in fields(Record)}
    return Record(**values)


def trusted_record(path: Path) -> Record | None:
    """Return the record in a JSON file, None if there is none or it cannot be read."""
    with suppress(OSError, ValueError):
        return read_record(path)
    return None


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
            raise ValueError(f"{given!r} cannot be the path of a schedule, as batches.npy can")
        name = os.path.abspath(name)
        files = cls(*(Path(name + end) for end in (".npy", ".inclusion.npy", ".json", ".part")))
        check_path(files.inclusion)  # the longest name
        return files

    def exist(self) -> bool:
        """Return whether there are batches and a record of them."""
        return self.batches.exists() and self.record.exists()

    def finished(self) -> Record | None:
        """Return the record in NAME.json, None if there is none that can be trusted."""
        return trusted_record(self.record)

    def unfinished(self) -> Record | None:
        """Return the record of unfinished work, None if there is none that can be trusted."""
        return trusted_record(self.work / RECORD)

    def is_published(self) -> bool | None:
        """Return whether a process that has made all draws publishes them; None if none can tell.

        It holds the lock of NAME.part/.
        """
        found = self.unfinished()
        return is_locked(self.work / LOCK) if found and found.complete else False

    def is_abandoned(self) -> bool:
        """Return whether NAME.part/ holds no draws: a process begins, or was killed."""
        return self.work.is_dir() and not (self.work / RECORD).exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold NAME.part/, created if absent; wait while another process holds it.

        The lock of a killed process vanishes with it. Where the file system has no locks, only the
        process that has created the folder holds it, and others raise OSError.
        """
        while True:
            try:
                os.mkdir(self.work)
                created = True
            except FileExistsError:
                created = False
            self._check_folder()
            try:
                file = open(self.work / LOCK, "ab")  # noqa: SIM115
            except FileNotFoundError:  # another process has just finished, and removed the folder
                continue
            with file:
                if not lock(file) and not created:
                    why = f"the disk has no locks; unless another process draws, remove {self.work}"
                    raise OSError(errno.ENOLCK, why)
                if not has_name(self.work / LOCK, file):
                    continue  # it was removed while this process waited
                try:
                    yield
                finally:
                    self._unlock(file)
            return

    def _unlock(self, file: IO[bytes]) -> None:
        """Release the lock, and remove the folder unless there are draws in it."""
        if os.name == "nt":
            file.close()  # Windows removes no open file, and none that another process has opened
        with suppress(OSError):
            (self.work / NEW_RECORD).unlink(missing_ok=True)
            if self.is_abandoned():
                os.unlink(self.work / LOCK)  # while it is held, so that nobody else holds it
        file.close()
        with suppress(OSError):
            os.rmdir(self.work)

    # --- what may be replaced

    def _check_folder(self) -> None:
        with suppress(OSError):  # one call, because another process may remove the folder
            if not stat.S_ISDIR(os.lstat(self.work).st_mode):
                raise _stranger(self.work)

    def refuse_strangers(self) -> None:
        """Raise if a file that would be replaced is not part of a schedule."""
        self._check_folder()
        publishing = self.unfinished()
        known = _names_format(self.record) or bool(publishing and publishing.complete)
        for file in (self.record, self.batches, self.inclusion):
            if os.path.lexists(file) and (not known or file.is_dir()):
                raise _stranger(file)

    def check_disk(self, steps: int, k: int, n: int) -> None:
        """Raise OSError if the disk has no room for `steps` batches of k, and b of n items."""
        needed = 8 * (steps * k + n) + 2**14  # which is more than headers and records take
        with suppress(FileNotFoundError):
            needed -= (self.work / BATCHES).stat().st_size
        free = shutil.disk_usage(self.batches.parent).free
        if needed > free:
            sizes = f"{format_bytes(needed)}, and {format_bytes(free)} are free; ask for fewer"
            raise OSError(errno.ENOSPC, f"{steps:,} batches of {k:,} need {sizes}")

    def record_to_continue(self, asked: Record, overwrite: bool) -> Record:
        """Return the record of unfinished work if it is of the same schedule, else `asked`.

        Raises InputError if it is of another schedule, unless `overwrite`. Nothing is deleted here:
        `fill` begins anew where batches on disk do not have the checksum of the record.
        """
        found, place = self.unfinished(), f"{self.work} is the beginning of"
        return found if found and found.is_of(asked, place, overwrite) else asked

    # --- writing

    def fill(
        self,
        record: Record,
        draw: Callable[[int], Iterable[IntArray]],
        inclusion: Callable[[], FloatArray | None],
    ) -> None:
        """Append draws to NAME.part/batches.npy; sync and record them every second.

        record:    what `record_to_continue` returned.
        draw:      from the number of the first batch to all batches from there on, in pieces.
        inclusion: b; called last, because designs that read data in blocks find it on the way.
        """
        path, head, done = self.work / BATCHES, header("<i8", (record.steps, record.k)), record.done
        size = len(head) + 8 * record.k * done
        digest = sha256(path, size) if path.is_file() else hashlib.sha256()
        if digest.hexdigest() != record.checksum:
            if done:
                log.warning("%d draws in %s are lost or altered; drawing again", done, self.work)
            digest, done, size = hashlib.sha256(head), 0, len(head)
            self._write_record(replace(record, done=0, checksum=digest.hexdigest()))
            _write_new(path, head)
        with open(path, "r+b") as file:
            file.seek(size)
            file.truncate()
            saved = time.monotonic()
            for batches in draw(done):
                content = batches.astype("<i8", copy=False).tobytes()
                digest.update(content)
                file.write(content)
                done += len(batches)
                if time.monotonic() - saved > SAVE_SECONDS:
                    _sync(file)
                    self._write_record(replace(record, done=done, checksum=digest.hexdigest()))
                    saved = time.monotonic()
            _sync(file)
        record = replace(record, done=done, checksum=digest.hexdigest(), complete=True)
        b = inclusion()
        (self.work / INCLUSION).unlink(missing_ok=True)
        if b is not None:
            content = header("<f8", b.shape) + b.astype("<f8").tobytes()
            _write_new(self.work / INCLUSION, content)
            record = replace(record, inclusion_checksum=hashlib.sha256(content).hexdigest())
        sync_folder(self.work)
        self._write_record(record)

    def _write_record(self, record: Record) -> None:
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
    return ValueError(f"{file} is not part of a schedule, and would be lost; choose another path")


def _names_format(path: Path) -> bool:
    """Return whether a file is a record, perhaps a damaged one."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return f'"{FORMAT}"'.encode() in file.read(4096)


def header(kind: str, shape: tuple[int, ...]) -> bytes:
    """Return the first 128 bytes of a NumPy file.

    Spelled out, so that another version of NumPy cannot move the draws of an unfinished file.
    """
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n"


def _write_new(path: Path, content: bytes) -> None:
    """Write a new file, synced; a link or second name of what was at `path` is not written to."""
    path.unlink(missing_ok=True)
    with open(path, "xb") as file:
        file.write(content)
        _sync(file)


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


def sha256(path: Path, size: int = 2**63) -> Any:
    """Return the running sha256 of the first `size` bytes of a file."""
    with open(path, "rb", buffering=0) as file:
        return sha256_of_open(file, size)


def sha256_of_open(file: IO[bytes], size: int = 2**63) -> Any:
    """Return the running sha256 of the next `size` bytes of an open file."""
    digest = hashlib.sha256()
    while piece := file.read(min(size, 2**20)):
        digest.update(piece)
        size -= len(piece)
    return digest
