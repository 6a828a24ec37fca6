"""Numbers and labels from .csv and .tsv files, and labels from .txt files."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from warnings import warn

import numpy as np
import numpy.typing as npt

from dmsgd.errors import KernelWarning
from dmsgd.files.paths import column_number, kept, not_numeric
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import counted, few


@dataclass(frozen=True)
class Layout:
    """How a CSV file is laid out."""

    names: list[str]
    delimiter: str
    skip: int  # lines up to the end of the header


def layout(file: Path) -> Layout:
    """Return the columns of a CSV file; commas, or semicolons or tabs if there is no comma.

    Those of a .tsv file are between tabs.
    """
    with open_text(file) as text:
        line = next((line for line in text if line.strip()), "")
        line = re.sub('"[^"]*"', "", line)  # names between quotes may hold commas
        delimiter = "," if "," in line else ";" if ";" in line else "\t" if "\t" in line else ","
        delimiter = "\t" if file.suffix.lower() == ".tsv" else delimiter
        text.seek(0)
        reader = csv.reader(text, delimiter=delimiter)
        filled = (row for row in reader if row)
        first = next(filled, [])
        skip = reader.line_num
        second = next(filled, [])
    if not first:
        raise ValueError(f"{file} holds blank lines only; write it again")
    if not _is_header(first, second):
        return Layout([str(j + 1) for j in range(len(first))], delimiter, 0)
    names = [cell.strip() for cell in first]
    if "" in names:
        raise ValueError(
            f"{file}: column {names.index('') + 1} has no name; name it, or leave it out (pandas: "
            f"to_csv(..., index=False))"
        )
    return Layout(names, delimiter, skip)


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
    return "_" not in cell  # which Python would take, and no other reader


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file; what is not text or CSV gets a message that names the file."""
    with open(file, encoding="utf-8-sig", newline="") as text:
        try:
            yield text
        except UnicodeDecodeError:
            raise ValueError(f"{file} is not UTF-8 text; convert it, or save .npy") from None
        except csv.Error as error:
            raise ValueError(
                f"{file} is not a CSV file, or has a quote that never ends ({error}); mend it, or "
                f"save .parquet"
            ) from None


def _rows(file: Path, columns: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of each row below the header."""
    with open_text(file) as text:
        reader = csv.reader(text, delimiter=columns.delimiter)
        for row in reader:
            if not row or reader.line_num <= columns.skip:
                continue
            if len(row) != len(columns.names):
                raise ValueError(
                    f"{file}: line {reader.line_num} has {len(row)} cells, the first line "
                    f"{len(columns.names)}; every line needs the same number"
                )
            yield reader.line_num, row


def numbers(file: Path, drop: Collection[str] = ()) -> FloatArray:
    """Return all columns of a CSV file but those to `drop`, which must be numeric."""
    columns = layout(file)
    used = kept(file, columns.names, drop)
    if not used:
        raise ValueError(f"{file} has no column of features besides {few(list(drop))}")
    rows = _rows(file, columns)
    if next(rows, None) is None:
        raise ValueError(f"{file} has a header ({few(columns.names)}) but no rows")
    for _ in rows if drop else ():  # NumPy does not count the cells that it is not to use
        pass
    try:
        with open_text(file) as text:
            found = np.loadtxt(
                text,
                delimiter=columns.delimiter,
                comments=None,
                quotechar='"',
                skiprows=columns.skip,
                usecols=used if drop else None,
                ndmin=2,
            )
    except ValueError as error:
        _explain(file, columns, used)
        raise ValueError(f"{file}: {error}") from None
    if used[0] == 0 and columns.skip and _counts_rows(found[:, 0]):
        name = columns.names[0]
        warn(
            KernelWarning(
                f"{file}: column {name!r} counts upwards, as row numbers and ids do, and is used "
                f"as a feature; drop it if it is none",
                drop=name,
            ),
            stacklevel=2,
        )
    return found


def _counts_rows(first: FloatArray) -> bool:
    """Return whether these are whole numbers that ascend, too many to do so by chance."""
    return first.size >= 10 and bool((np.diff(first) > 0).all() and (first % 1 == 0).all())


def _explain(file: Path, columns: Layout, used: list[int]) -> None:
    """Raise an error about the first cell that is not a number."""
    for line, row in _rows(file, columns):
        for j in used:
            if not row[j].strip():
                raise ValueError(
                    f"{file}: column {columns.names[j]!r} is empty in line {line}; fill or drop it"
                )
            if _is_number(row[j]):
                continue
            if _is_number(row[j].replace(",", "")):
                raise ValueError(
                    f"{file}: column {columns.names[j]!r} has {row[j]!r} in line {line}; write "
                    f"numbers with a decimal point, and no commas in them"
                )
            raise not_numeric(file, columns.names[j], f"line {line} has {row[j][:40]!r}")


def labels(file: Path, name: str | None, n: int | None) -> npt.NDArray[Any]:
    """Return the column `name` of a CSV file, or its only one, without its header."""
    columns = layout(file)
    if name is not None or len(columns.names) > 1:
        column = column_number(file, columns.names, name)
        return typed(file, [row[column] for _, row in _rows(file, columns)])
    cells = [row[0] for _, row in _rows(file, Layout(columns.names, columns.delimiter, 0))]
    first, rest = cells[0], cells[1:]
    if not _is_number(first) and rest:
        above_numbers = all(map(_is_number, rest))
        one_too_many = n is not None and len(rest) == n and first not in rest
        cells = rest if above_numbers or one_too_many else cells
    return typed(file, cells)


def typed(file: Path, cells: list[str]) -> npt.NDArray[Any]:
    """Return the cells as integers if all are written as such, otherwise as text."""
    longest = max(map(len, cells), default=0)
    advice = f"shorten the longest, of {longest:,} characters"
    reserve(len(cells) * longest, f"two tables of the {len(cells):,} labels in {file}", advice)
    text = np.char.strip(np.array(cells, dtype=np.str_))
    missing = np.flatnonzero(np.isin(text, ["", "nan", "NaN"]))
    if missing.size:
        raise ValueError(
            f"{file} has {counted(missing.size, 'missing label')} (the first is number "
            f"{missing[0] + 1}); drop or fill them"
        )
    try:
        whole = text.astype(np.int64)
    except (ValueError, OverflowError):
        return text
    return whole if np.array_equal(whole.astype(np.str_), text) else text  # "07" is not "7"
