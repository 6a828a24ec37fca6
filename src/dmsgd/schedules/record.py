"""What a schedule says about itself, and its JSON form."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, final

FORMAT = "dmsgd schedule"
#: Goes up when earlier versions of the package cannot read what is written any more.
FORMAT_VERSION = 1


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
        return ", ".join(
            f"{name} is {short(getattr(self, name))}, not {short(getattr(asked, name))}"
            for name in named
        )


def short(value: Any) -> str:
    """Return a value as it goes into a message: hashes by their first digits."""
    return f"{value[:12] or 'none'}" if isinstance(value, str) else str(value)


def write_json(record: Record, **more: Any) -> bytes:
    """Return the JSON form of `record`, with further fields."""
    content = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(record), **more}
    return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


def read_json(path: Path, *more: str) -> tuple[Record, dict[str, Any]]:
    """Return the record in a JSON file and its further fields, or say why there is none."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        raise ValueError(f"{path} is damaged or not a JSON file") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not the record of a schedule")
    if content.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {content.get('version')}, written by dmsgd "
            f"{content.get('dmsgd')}; this one reads version {FORMAT_VERSION}: upgrade dmsgd"
        )
    kinds = {field.name: field.type for field in fields(Record)}
    for name in (*kinds, *more):
        if name not in content or type(content[name]).__name__ != kinds.get(name, "str"):
            raise ValueError(f"{path} is damaged: {name} is {content.get(name)!r}")
    record = Record(**{name: content[name] for name in kinds})
    return record, content
