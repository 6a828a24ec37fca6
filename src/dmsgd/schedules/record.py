"""The record of a schedule, NAME.json: what its batches are, where they come from, checksums."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, final

from dmsgd.errors import InputError

FORMAT = "dmsgd schedule"
#: Goes up when this version of the package can no longer read what was written before.
FORMAT_VERSION = 3


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
