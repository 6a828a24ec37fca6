"""What a schedule says about itself, and its JSON form."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, final

FORMAT = "dmsgd schedule"
#: Goes up when earlier versions of the package cannot read what is written any more.
FORMAT_VERSION = 2
#: Version 1 had no checksum of the JSON file itself and none of its journal's draws.
READABLE_VERSIONS = (1, 2)
#: What a JSON file of ours begins with: also one that was cut short or damaged further on.
MARK = b'{\n "format": "dmsgd schedule"'
#: No JSON file of ours is larger; nothing beyond this is read.
MOST_BYTES = 2**20
#: Fields of a file besides those of the record.
CHECKSUMS = ("checksum", "inclusion_checksum", "ends")


@final
@dataclass(frozen=True)
class Record:
    """The size of a schedule, its seed, and where its draws come from.

    design, kernel, sampler: in words.
    data:        fingerprint of the kernel ("" for designs without one).
    fingerprint: of the design.
    dmsgd:       version that made the draws.
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

    def difference(self, asked: Record, *, versions: bool = False) -> str:
        """Return in words how this is another schedule than the one `asked` for, "" if it is not.

        `versions`: count draws made by another version of dmsgd as different.
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


def short(value: Any) -> str:
    """Return a value as it goes into a message: hashes by their first digits."""
    return f"{value[:12] or 'none'}" if isinstance(value, str) else str(value)


def write_json(record: Record, **more: Any) -> bytes:
    """Return the JSON form of `record`, with further fields and the checksum of it all."""
    content = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(record), **more}
    content["json_checksum"] = _checksum(content)
    return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


def read_json(path: Path) -> tuple[Record, dict[str, Any]]:
    """Return the record in a JSON file and all its fields, or say why there is none."""
    content = _parsed(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not the record of a schedule")
    version = content.get("version")
    if type(version) is not int or version not in READABLE_VERSIONS:
        raise ValueError(
            f"{path} has format version {short(version)}, written by dmsgd "
            f"{short(content.get('dmsgd'))}; this one reads versions "
            f"{' and '.join(map(str, READABLE_VERSIONS))}: upgrade dmsgd, or restore the file"
        )
    kinds = {field.name: field.type for field in fields(Record)}
    for name in kinds:
        if name not in content or type(content[name]).__name__ != kinds[name]:
            raise ValueError(f"{path} is damaged: {name} is {_told(content.get(name))}")
    for name in CHECKSUMS:
        if name in content and not _is_checksum(content[name], name):
            raise ValueError(f"{path} is damaged: {name} is {_told(content[name])}")
    stored = content.pop("json_checksum", None)
    if stored != (_checksum(content) if version > 1 else None):
        raise ValueError(f"{path} was altered: its contents do not have its checksum")
    record = Record(**{name: content[name] for name in kinds})
    if not (record.steps >= 1 and 1 <= record.k <= record.n and record.seed >= 0):
        raise ValueError(
            f"{path} is damaged: {short(record.steps)} batches of {short(record.k)} out of "
            f"{short(record.n)} items, seed {short(record.seed)}, cannot be"
        )
    return record, content


def _parsed(path: Path) -> Any:
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is not the record of a schedule: no file, or too large a one")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is damaged or not a JSON file") from None


def _is_checksum(value: Any, name: str) -> bool:
    """Return whether this is a sha256, or "" for an absent b."""
    if not isinstance(value, str):
        return False
    return bool(re.fullmatch("[0-9a-f]{64}", value)) or (name, value) == ("inclusion_checksum", "")


def _checksum(content: dict[str, Any]) -> str:
    """Return the sha256 of fields and values, however they are laid out."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _told(value: Any) -> str:
    return repr(value)[:40]
