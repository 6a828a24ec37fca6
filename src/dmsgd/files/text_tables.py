"""Tables in .csv, .tsv and .jsonl files (JSON Lines: an object per line)."""

from __future__ import annotations

import csv
import json
import re
from array import array
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import InputError, warn_kernel
from dmsgd.files.contract import LISTS, NUMBERS, TEXT, Column, Table
from dmsgd.files.paths import open_text
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import counted, few, visible
from dmsgd.runtime.memory import reserve

#: A cell that is a whole number; "007" is none, as a number would lose its zeros.
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
#: A cell of a CSV file that is a number.
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)
#: Cells of a CSV file that are numbers in a column whose first cell is one of these.
BOOLEANS = {"true": 1.0, "false": 0.0}
#: Characters of an entry that messages show.
SHOWN = 40


class CsvTable(Table):
    """A .csv file with commas, or semicolons or tabs if it has no comma; a .tsv file with tabs.

    Where the first line has numbers it is no header, and columns are numbered from 1.

    skip:  lines up to the end of the header.
    first: the first row of data.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        with open_text(file) as text:
            line = next((line for line in text if line.strip()), "")
            line = re.sub('"[^"]*"', "", line)  # names between quotes may hold commas
            self.delimiter = next((each for each in ",;\t" if each in line), ",")
            if file.suffix.lower() == ".tsv":
                self.delimiter = "\t"
            text.seek(0)
            reader = csv.reader(text, delimiter=self.delimiter)
            filled = (row for row in reader if row)
            first = next(filled, [])
            skip = reader.line_num
            second = next(filled, [])
        if not first:
            raise ValueError(f"{file} holds blank lines only; write it again")
        if _is_header(first, second):
            self.names, self.skip, self.first = [cell.strip() for cell in first], skip, second
        else:
            self.names, self.skip, self.first = [str(j + 1) for j in range(len(first))], 0, first
        if "" in self.names:
            where = self.names.index("") + 1
            raise ValueError(
                f"{file}: column {where} has no name (pandas: to_csv(..., index=False))"
            )

    def kinds(self, drop: Collection[str]) -> dict[str, str]:
        """Return what columns hold, by the first row; an empty cell is taken for a number."""
        cells = {self.names[j]: "".join(self.first[j : j + 1]) for j in self.kept(drop)}
        return {
            name: NUMBERS
            if not cell.strip() or _is_number(cell) or _is_boolean(cell)
            else f"{TEXT}, the first row has {cell[:SHOWN]!r}"
            for name, cell in cells.items()
        }

    def numbers(self, drop: Collection[str], named: bool) -> FloatArray:
        """Return all columns but those in `drop`; they must be numeric."""
        if not self.first:
            raise ValueError(f"{self.file} has a header ({few(self.names)}) but no rows")
        self.features(drop, named)
        kept = self.kept(drop)
        dropped = set(range(len(self.names))) - set(kept)
        converters: dict[int | str, Any] = dict.fromkeys(dropped, lambda cell: 0.0)
        booleans = {j for j in kept if _is_boolean("".join(self.first[j : j + 1]))}
        converters |= dict.fromkeys(booleans, _as_number)
        with open_text(self.file) as text:
            try:
                found = np.loadtxt(
                    text,
                    delimiter=self.delimiter,
                    comments=None,
                    quotechar='"',
                    skiprows=self.skip,
                    converters=converters,
                    encoding=None,  # converters take text, as of NumPy 2
                    ndmin=2,
                )
            except UnicodeDecodeError:
                raise
            except ValueError as error:
                other = ValueError(f"{self.file}: {error}")
                raise self._bad_cell(kept, booleans) or other from None
        if found.shape[1] != len(self.names):
            counts = f"{len(self.names)} names and {found.shape[1]} columns"
            raise ValueError(f"{self.file} has {counts}")
        found = np.ascontiguousarray(found[:, kept])
        if kept[0] == 0 and self.skip and _counts_up(found[:, 0]):
            name = self.names[0]
            warn_kernel(
                f"{self.file}: column {name!r} counts upwards, as row numbers and ids do, and is "
                f"used as a feature; if it is not one, name it by --id or drop it",
                drop=name,
            )
        return found

    def _bad_cell(self, kept: list[int], booleans: Collection[int]) -> InputError | None:
        """Return the error about the first cell of these columns that is no number, if one is."""
        for line, row in self.cells():
            for j in kept:
                if _is_number(row[j]) or (j in booleans and _is_boolean(row[j])):
                    continue
                name, shown = self.names[j], visible(repr(row[j]), SHOWN)
                what = f"has {shown} in line {line}, which is not a number: correct it"
                if not row[j].strip():
                    what = f"has an empty cell in line {line}, a missing value: impute it"
                problem = f"{self.file}: column {name!r} {what}, or leave out the row or the column"
                return InputError(problem, **({"drop": name} if len(kept) > 1 else {}))
        return None

    def column(self, name: str | None) -> list[str]:
        """Return the cells."""
        place = self.place(name)
        return [row[place] for _, row in self.cells()]

    def rows(
        self, items: IntArray, leave_out: Collection[str], verbatim: bool
    ) -> tuple[list[Column], int]:
        """Return columns of text, or of numbers; an empty cell is no number."""
        places = {item: place for place, item in enumerate(items.tolist())}
        kept = [j for j, name in enumerate(self.names) if name not in leave_out]
        columns: dict[int, list[Any]] = {j: [""] * len(places) for j in kept}
        whole, numeric = (set[int]() if verbatim else set(kept) for _ in range(2))
        n = 0
        for _, row in self.cells():
            whole -= {j for j in whole if row[j] and not WHOLE.fullmatch(row[j])}
            numeric -= {j for j in numeric if row[j] and not NUMBER.fullmatch(row[j])}
            if (place := places.get(n)) is not None:
                for j in kept:
                    columns[j][place] = row[j]
            n += 1
        for j in numeric:
            kind = int if j in whole else float
            columns[j] = [kind(cell) if cell else None for cell in columns[j]]
        return [(self.names[j], columns[j]) for j in kept], n

    def cells(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the line that each row after the header ends in, and its cells."""
        with open_text(self.file) as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            for row in reader:
                if not row or reader.line_num <= self.skip:
                    continue
                if len(row) != len(self.names):
                    counts = f"{counted(len(row), 'cell')}, the first line {len(self.names):,}"
                    raise ValueError(f"{self.file}: line {reader.line_num} has {counts}")
                yield reader.line_num, row


def _is_header(first: list[str], second: list[str]) -> bool:
    numeric = [_is_number(cell) for cell in first]
    numbered = [str(j) for j in range(len(first))]
    if not any(numeric) or (len(first) > 2 and first == numbered):  # pandas numbers columns so
        return True
    pairs = zip(first, numeric, second, strict=False)
    return any(cell.strip() and not number and _is_number(below) for cell, number, below in pairs)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, other readers do not


def _is_boolean(cell: str) -> bool:
    return cell.strip().lower() in BOOLEANS


def _as_number(cell: str) -> float:
    """Return the number in a cell of a column of booleans."""
    found = BOOLEANS.get(cell.strip().lower())
    return float(cell) if found is None else found


def _counts_up(first: FloatArray) -> bool:
    """Return whether these are ascending whole numbers, too many for chance."""
    if first.size < 10 or not np.isfinite(first).all():
        return False
    return bool((np.diff(first) > 0).all() and (first % 1 == 0).all())


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

    def column(self, name: str | None) -> npt.NDArray[np.object_]:
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
