"""Columns of .jsonl files: an object per line, whose fields are the columns (JSON Lines)."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import InputError
from dmsgd.files.columns import (
    LISTS,
    NUMBERS,
    TEXT,
    column_number,
    features_among,
    kept_columns,
    warn_left_out,
)
from dmsgd.files.paths import open_text
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.messages import visible
from dmsgd.runtime.memory import reserve

#: Characters of an entry that messages show.
SHOWN = 40


def read_objects(
    file: Path, rows: Collection[int] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each line, from 1, and its object; blank lines are skipped.

    rows: numbers of objects, from 0, the only ones that are looked at; of others the number alone
          is yielded, with no fields.
    """
    with open_text(file) as text:
        row = -1
        for number, line in enumerate(text, 1):
            if line.isspace():
                continue
            row += 1
            yield number, _parse(file, number, line) if rows is None or row in rows else {}


def _parse(file: Path, number: int, line: str) -> dict[str, Any]:
    """Return the object in a line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise ValueError(
            f"{file}: line {number} is not JSON ({why}); write one object per line"
        ) from None
    if not isinstance(found, dict):
        shown = visible(line.strip(), SHOWN)
        raise ValueError(
            f"{file}: line {number} is {shown}, not an object; write one object per line"
        )
    return found


def field_names(file: Path) -> list[str]:
    """Return the names of the columns: the fields of the first object."""
    for _, each in read_objects(file):
        return list(each)
    raise ValueError(f"{file} holds blank lines only; write it again")


def field_kinds(file: Path, drop: Collection[str] = ()) -> dict[str, str]:
    """Return what each column that is not in `drop` holds, by its first entry that is not null."""
    names = field_names(file)
    missing = [names[j] for j in kept_columns(file, names, drop)]
    kinds = dict.fromkeys(missing, "null")
    for _, each in read_objects(file):
        for name in [name for name in missing if each.get(name) is not None]:
            kinds[name] = _kind(each[name])
            missing.remove(name)
        if not missing:
            break
    return kinds


def _kind(value: Any) -> str:
    if isinstance(value, list):
        numbers = value and all(isinstance(each, int | float) for each in value)
        return LISTS if numbers else "lists of other things than numbers"
    if isinstance(value, int | float):
        return NUMBERS
    return TEXT if isinstance(value, str) else "objects"


def read_features(file: Path, drop: Collection[str] = (), named: bool = False) -> FloatArray:
    """Return the columns of features side by side, a list as one column per entry.

    drop, named: as for `parquet_tables.feature_columns`. A number that is missing is NaN.
    """
    kinds, known = field_kinds(file, drop), set(field_names(file))
    columns = features_among(file, kinds, named)
    warn_left_out(file, kinds, columns)
    reserve(file.stat().st_size // 8, f"the features in {file}", "save them as .npy or .parquet")
    widths: dict[str, int] = {}
    found, n = array("d"), 0
    for number, each in read_objects(file):
        n += 1
        for name in columns:
            value: Any = each.get(name)
            try:
                if kinds[name] == NUMBERS:
                    found.append(np.nan if value is None else value)
                    continue
                if len(value) != widths.setdefault(name, len(value)):
                    raise InputError(
                        f"{file}: column {name!r} holds lists of different lengths: line {number} "
                        f"has {len(value)} numbers, and the first line {widths[name]}",
                        drop=name,
                    )
                found.extend(value)
            except (TypeError, OverflowError):
                shown = visible(json.dumps(value), SHOWN)
                raise ValueError(
                    f"{file}: {name!r} is {shown} in line {number}, and holds {kinds[name]} before"
                ) from None
        for name in each.keys() - known:
            if _kind(each[name]) in (LISTS, NUMBERS):
                raise ValueError(
                    f"{file}: line {number} has a field {name!r} that the first line lacks; write "
                    f"it in every line"
                )
    return np.frombuffer(found).reshape(n, -1)


def read_field(file: Path, name: str | None) -> npt.NDArray[np.object_]:
    """Return the column `name`, or the only one, as Python objects; None where it is missing."""
    names = field_names(file)
    name = names[column_number(file, names, names[0] if name is None and len(names) == 1 else name)]
    entries = [each.get(name) for _, each in read_objects(file)]
    return np.fromiter(entries, dtype=object, count=len(entries))
