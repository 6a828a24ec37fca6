"""Tables in .jsonl files: an object per line, whose fields are the columns (JSON Lines)."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import InputError
from dmsgd.files.contract import LISTS, NUMBERS, TEXT, Column, Table
from dmsgd.files.paths import open_text
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import visible
from dmsgd.runtime.memory import reserve

#: Characters of an entry that messages show.
SHOWN = 40


class JsonTable(Table):
    """A .jsonl file; its columns are the fields of the first object."""

    def __init__(self, file: Path) -> None:
        self.file = file
        first = next((each for _, each in self.objects()), None)
        if first is None:
            raise ValueError(f"{file} holds blank lines only; write it again")
        self.names = list(first)

    def objects(self, rows: Collection[int] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of each line, from 1, and its object; blank lines are skipped.

        rows: parse only these objects, counted from 0; the others are yielded without fields.
        """
        with open_text(self.file) as text:
            row = -1
            for number, line in enumerate(text, 1):
                if not line.isspace():
                    row += 1
                    yield number, self._parse(number, line) if rows is None or row in rows else {}

    def _parse(self, number: int, line: str) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = f"not JSON ({' '.join(str(error).split())})"
        else:
            if isinstance(found, dict):
                return found
            why = f"{visible(line.strip(), SHOWN)}, not an object"
        raise ValueError(f"{self.file}: line {number} is {why}; write one object per line")

    def kinds(self, drop: Collection[str]) -> dict[str, str]:
        """Return what columns hold, by their first entry that is not null."""
        missing = [self.names[j] for j in self.kept(drop)]
        kinds = dict.fromkeys(missing, "null")
        for _, each in self.objects():
            for name in [name for name in missing if each.get(name) is not None]:
                kinds[name] = _kind(each[name])
                missing.remove(name)
            if not missing:
                break
        return kinds

    def numbers(self, drop: Collection[str], named: bool) -> FloatArray:
        """Return the features side by side, a list as one column per entry; NaN if one is null."""
        columns, known = self.features(drop, named, warn=True), set(self.names)
        what = f"the features in {self.file}"
        reserve(self.file.stat().st_size // 8, what, "save them as .npy or .parquet")
        widths: dict[str, int] = {}
        found, n = array("d"), 0
        for number, each in self.objects():
            n += 1
            for name in columns:
                value: Any = each.get(name)
                entries = value if isinstance(value, list) else [np.nan if value is None else value]
                try:
                    found.extend(entries)
                except (TypeError, OverflowError):
                    shown = visible(json.dumps(value), SHOWN)
                    raise ValueError(
                        f"{self.file}: {name!r} is {shown} in line {number}; give finite numbers"
                    ) from None
                if len(entries) != widths.setdefault(name, len(entries)):
                    raise InputError(
                        f"{self.file}: column {name!r} holds lists of different lengths: line "
                        f"{number} has {len(entries)} numbers, and the first line {widths[name]}",
                        drop=name,
                    )
            for name in each.keys() - known:
                if _kind(each[name]) in (LISTS, NUMBERS):
                    raise ValueError(
                        f"{self.file}: line {number} has a field {name!r} that the first line "
                        f"lacks; write it in every line"
                    )
        return np.frombuffer(found).reshape(n, -1)

    def column(self, name: str | None, n: int | None) -> npt.NDArray[np.object_]:
        """Return the entries as Python objects; None where one is missing."""
        name = self.names[self.place(name)]
        entries = [each.get(name) for _, each in self.objects()]
        return np.fromiter(entries, dtype=object, count=len(entries))

    def rows(
        self, items: IntArray, leave_out: Collection[str], verbatim: bool
    ) -> tuple[list[Column], int]:
        """Return the fields; those that the first line lacks come last."""
        places = {item: place for place, item in enumerate(items.tolist())}
        found: dict[str, list[Any]] = {}
        n = 0
        for _, each in self.objects(places):
            if (place := places.get(n)) is not None:
                for name in (*self.names, *each):
                    if name not in leave_out:
                        found.setdefault(name, [None] * len(places))[place] = each.get(name)
            n += 1
        return list(found.items()), n


def _kind(value: Any) -> str:
    if isinstance(value, list):
        numbers = value and all(isinstance(each, int | float) for each in value)
        return LISTS if numbers else "lists of other things than numbers"
    if isinstance(value, int | float):
        return NUMBERS
    return TEXT if isinstance(value, str) else "objects"
