"""A schedule on disk: which files there are, and how they change without ever being half true.

    NAME.npy            batches, int64, (steps, k): a plain NumPy file
    NAME.inclusion.npy  b, float64, (n,); absent if the design has no closed form for it
    NAME.json           the sidecar: format version, provenance, checksums
    NAME.part           batches while they are drawn; it becomes NAME.npy at the end
    NAME.part.json      the journal: whose draws these are, how many are safely on the disk, and
                        their checksum
    *.new               a file about to take the place of the one without this ending

What is promised, and why every kill leaves a true state:

- While there is a sidecar, the batches and b beside it are its own. To publish, the new sidecar is
  written aside, the old one removed, batches and b are renamed, and the new one is renamed last;
  the folder is synced in between. Before it begins, the journal says so: whoever calls next finds
  all draws made and only goes on renaming. A reader looks at the sidecar before and after.
- Checksums are of what was drawn, hashed on its way to the disk, and never of what is found there.
  The sidecar's `checksum` is of all of NAME.npy, `inclusion_checksum` of b ("" for none),
  `json_checksum` of all other fields of the JSON file. The journal's `checksum` is of the draws it
  vouches for. (`ends` is of the first and last 64 KB as they lie there: a cheap look, which only
  tells another schedule's batches.)
- Draw t is a function of (seed, t), so a process that was killed goes on after the draws that the
  journal vouches for, if they still have its checksum, and writes the same bytes as one that was
  not. If they do not, they are drawn again.
- One process writes, the others wait for its lock on NAME.part. Where the file system has no locks,
  they all write the same bytes to the same places, never fewer, and the result is read back.
- Nothing is replaced that is not recognisably part of a schedule, even if a schedule may be
  (overwrite=True), and nothing is written through links.
"""

from __future__ import annotations

import io
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from dmsgd.files.paths import refuse_impossible
from dmsgd.inputs.arrays import FloatArray
from dmsgd.schedules.disk import (
    PLAIN,
    Buffer,
    as_npy,
    begins,
    ends,
    header,
    holds,
    sha256,
    sha256_of,
    write_bytes,
)
from dmsgd.schedules.record import MARK, Record, read_json, write_json


@final
@dataclass(frozen=True)
class Journal:
    """What vouches for the draws in `part`: how many there are, and their checksum.

    publishing: files were being renamed, so batches and b without a sidecar are of a schedule.
    """

    record: Record
    done: int
    checksum: str
    publishing: bool


@final
@dataclass(frozen=True)
class Files:
    """The files of one schedule. `token` keeps processes without locks apart while they stage."""

    batches: Path
    inclusion: Path
    sidecar: Path
    part: Path
    journal: Path
    token: str = ""

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Files:
        """Return the files of the schedule at `path`, given with or without .npy."""
        if not isinstance(path, str | bytes | os.PathLike):
            raise TypeError(f"path must be that of a file, such as batches.npy, got {path!r}")
        given = os.fsdecode(path)
        if os.path.basename(given) in ("", ".npy", ".", ".."):
            raise ValueError(
                f"{given!r} names no file; a schedule needs a path such as batches.npy"
            )
        if given.lower().endswith(".npy") and not given.endswith(".npy"):
            raise ValueError(
                f"{given!r} ends in {given[-4:]}, which a schedule's file does not; write .npy"
            )
        refuse_impossible(given)
        name = os.path.abspath(given).removesuffix(".npy")
        return cls(
            batches=Path(f"{name}.npy"),
            inclusion=Path(f"{name}.inclusion.npy"),
            sidecar=Path(f"{name}.json"),
            part=Path(f"{name}.part"),
            journal=Path(f"{name}.part.json"),
        )

    def refuse_impossible(self) -> None:
        """Raise if the name leaves no room for those of all files that drawing may create."""
        for path in self.all():
            refuse_impossible(path)

    def without_locks(self) -> Files:
        """Return the same files, staged under names that no other process uses."""
        return replace(self, token=f".{secrets.token_hex(4)}")

    def all(self) -> list[Path]:
        """Return every file that drawing a schedule may create, replace or remove."""
        final = [self.batches, self.inclusion, self.sidecar, self.part, self.journal]
        return [*final, *map(self.aside, (self.inclusion, self.sidecar, self.journal))]

    def read_journal(self) -> Journal | None:
        """Return what vouches for `part`, None if nothing does."""
        try:
            record, content = read_json(self.journal)
            done, publishing = int(content["done"]), bool(content.get("publishing"))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Journal(record, done, str(content.get("checksum", "")), publishing)

    def write_journal(self, record: Record, done: int, checksum: str, *, publishing: bool) -> None:
        """Vouch for the first `done` draws of `part`, which must be on the disk."""
        content = write_json(record, done=done, checksum=checksum, publishing=publishing)
        os.replace(self._staged(self.journal, content), self.journal)

    def publish(self, record: Record, checksum: str, inclusion: FloatArray | None) -> None:
        """Turn a complete `part`, or what a killed process made of it, into a schedule.

        All that needs room on the disk is written before anything is replaced.
        """
        b = () if inclusion is None else as_npy(inclusion)
        source = self.batches if self.published(record, checksum) else self.part
        sidecar = write_json(
            record,
            checksum=checksum,
            ends=ends(source),
            inclusion_checksum=sha256_of(b) if b else "",
        )
        try:
            new_inclusion = self._staged(self.inclusion, *b) if b else None
            new_sidecar = self._staged(self.sidecar, sidecar)
            self.write_journal(record, record.steps, checksum, publishing=True)
            if self.sidecar.exists() and not holds(self.sidecar, sidecar):
                self.sidecar.unlink(missing_ok=True)
            self._sync_folder()
            if new_inclusion:
                os.replace(new_inclusion, self.inclusion)
            else:
                self.inclusion.unlink(missing_ok=True)
            self._place_batches(record, checksum)
            self._sync_folder()
            os.replace(new_sidecar, self.sidecar)
            self._sync_folder()
        except BaseException:  # Ctrl-C too
            for path in (self.inclusion, self.sidecar):
                self.aside(path).unlink(missing_ok=True)
            raise
        self.journal.unlink(missing_ok=True)

    def published(self, record: Record, checksum: str) -> bool:
        """Return whether `part` has already become the batches, by what they hold."""
        if self.part.exists() and self.part.stat().st_size:
            return False
        size = len(header(record.steps, record.k)) + 8 * record.steps * record.k
        there = self.batches.is_file() and self.batches.stat().st_size == size
        return there and sha256(self.batches) == checksum

    def _place_batches(self, record: Record, checksum: str) -> None:
        if not self.published(record, checksum):
            os.replace(self.part, self.batches)

    def tidy(self) -> None:
        """Remove the journal that a process killed in its very last step leaves behind."""
        if not self.part.exists() and begins(self.journal, MARK):
            with suppress(OSError):  # a finished schedule may lie in a read-only folder
                self.journal.unlink(missing_ok=True)

    def aside(self, path: Path) -> Path:
        """Return the file that is about to take the place of this one."""
        return path.with_name(f"{path.name}{self.token}.new")

    def _staged(self, path: Path, *content: Buffer) -> Path:
        """Return a new file beside `path` that holds `content`, safely on the disk."""
        new = self.aside(path)
        new.unlink(missing_ok=True)  # a killed process left it; a link goes, never its target
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN
        try:
            with io.FileIO(os.open(new, flags, 0o666), "w") as file:
                for part in content:
                    write_bytes(file, part)
                os.fsync(file.fileno())
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        return new

    def _sync_folder(self) -> None:
        """Wait until renames are on the disk, so that none overtakes another."""
        with suppress(OSError):  # Windows and some network file systems cannot
            folder = os.open(self.batches.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
