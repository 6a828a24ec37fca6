"""Tables in .csv and .tsv files, tables of any format, and one column of any file."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import warn_kernel
from dmsgd.files.arrays import load_array
from dmsgd.files.contract import NUMBERS, TEXT, Column, Table
from dmsgd.files.json_lines import JsonTable
from dmsgd.files.parquet_tables import ParquetTable
from dmsgd.files.paths import LABEL_NAMES, TABLES, find_file, open_text
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import few
from dmsgd.runtime.memory import reserve

#: Suffixes of files that `read_column` reads.
COLUMN_FILES = (".npy", ".npz", *TABLES, ".zarr", ".txt")
#: Cells of a CSV file that are numbers; "007" is none, as a number would lose its zeros.
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)


class CsvTable(Table):
    """A .csv file with commas, or semicolons or tabs if it has no comma; a .tsv file with tabs.

    Without a header columns are numbered from 1.

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
            if not cell.strip() or _is_number(cell)
            else f"{TEXT}, the first row has {cell[:40]!r}"
            for name, cell in cells.items()
        }

    def numbers(self, drop: Collection[str], named: bool) -> FloatArray:
        """Return all columns but those in `drop`; they must be numeric."""
        if not self.first:
            raise ValueError(f"{self.file} has a header ({few(self.names)}) but no rows")
        self.features(drop, named)
        kept = self.kept(drop)
        dropped = set(range(len(self.names))) - set(kept)
        with open_text(self.file) as text:
            try:
                found = np.loadtxt(
                    text,
                    delimiter=self.delimiter,
                    comments=None,
                    quotechar='"',
                    skiprows=self.skip,
                    converters=dict.fromkeys(dropped, lambda cell: 0.0),  # so that all cells count
                    ndmin=2,
                )
            except UnicodeDecodeError:
                raise
            except ValueError as error:
                raise ValueError(f"{self.file}: {error}") from None
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

    def column(self, name: str | None, n: int | None) -> list[str]:
        """Return the cells.

        Of a single column of text the first line is the header if there is one line too many and
        its text occurs nowhere else.
        """
        single = name is None and len(self.names) == 1
        column = self.place(name)
        cells = [row[column] for row in self.cells(0 if single else self.skip)]
        first, rest = cells[0], cells[1:]
        if single and not _is_number(first) and rest:
            one_too_many = n is not None and len(rest) == n and first not in rest
            cells = rest if one_too_many or all(map(_is_number, rest)) else cells
        return cells

    def rows(
        self, items: IntArray, leave_out: Collection[str], verbatim: bool
    ) -> tuple[list[Column], int]:
        """Return columns of text, or of numbers; an empty cell is no number."""
        places = {item: place for place, item in enumerate(items.tolist())}
        kept = [j for j, name in enumerate(self.names) if name not in leave_out]
        columns: dict[int, list[Any]] = {j: [""] * len(places) for j in kept}
        whole, numeric = (set[int]() if verbatim else set(kept) for _ in range(2))
        n = 0
        for row in self.cells(self.skip):
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

    def cells(self, skip: int) -> Iterator[list[str]]:
        """Yield the cells of each row after `skip` lines."""
        with open_text(self.file) as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            for row in reader:
                if not row or reader.line_num <= skip:
                    continue
                if len(row) != len(self.names):
                    counts = f"{len(row)} cells, the first line {len(self.names)}"
                    raise ValueError(f"{self.file}: line {reader.line_num} has {counts}")
                yield row


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


def _counts_up(first: FloatArray) -> bool:
    """Return whether these are ascending whole numbers, too many for chance."""
    return first.size >= 10 and bool((np.diff(first) > 0).all() and (first % 1 == 0).all())


def find_table(path: str | Path) -> Table | None:
    """Return the table in a file, and None if the file is of another kind."""
    if Path(path).suffix.lower() not in TABLES:
        return None
    return open_table(find_file(path, TABLES)[0])


def open_table(file: Path) -> Table:
    """Return the table in a file that is there."""
    return ParquetTable(file) if file.suffix.lower() == ".parquet" else open_text_table(file)


def open_text_table(file: Path) -> CsvTable | JsonTable:
    """Return the table in a text file."""
    return JsonTable(file) if file.suffix.lower() == ".jsonl" else CsvTable(file)


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a table, and none for other kinds of file."""
    table = find_table(path)
    return [] if table is None else table.names


def read_column(path: str | Path, n: int | None = None) -> npt.NDArray[Any]:
    """Return one label per item from the file at `path`: whole numbers or text.

    path: `table:NAME` is a column, `archive.npz:NAME` and `store.zarr:NAME` an array.
    n:    how many there should be; tells a header from a label where a CSV file has one column.
    """
    found = _read(path, n)
    return as_labels(_as_array(path, found) if isinstance(found, list) else found, name=str(path))


def _as_array(path: str | Path, cells: list[str]) -> npt.NDArray[Any]:
    """Return cells as integers if all are written as such, otherwise as text."""
    longest = max(map(len, cells), default=0)
    advice = f"shorten the longest, of {longest:,} characters"
    reserve(len(cells) * longest, f"two tables of the {len(cells):,} labels in {path}", advice)
    text = [cell.strip() or "nan" for cell in cells]  # missing, as for `as_labels`
    if all(map(WHOLE.fullmatch, text)):
        return np.array(list(map(int, text)), dtype=np.int64)
    return np.array(text)


def read_entries(path: str | Path, n: int | None = None) -> npt.NDArray[np.object_]:
    """Return the entries of a column as they stand in the file: ids, texts, numbers.

    Files are those of `read_column`; entries may be empty, and what is missing is "".

    n: how many there must be, if that is known.
    """
    found = _read(path, n, blank=n is not None)
    found = found if isinstance(found, list) else np.atleast_1d(found).tolist()
    if n is not None and len(found) != n:
        raise ValueError(
            f"{path} has {len(found):,} entries for {n:,} items; it needs one per item"
        )
    entries = ("" if each is None else each for each in found)
    return np.fromiter(entries, dtype=object, count=len(found))


def _read(path: str | Path, n: int | None, blank: bool = False) -> list[str] | npt.NDArray[Any]:
    """Return the cells of a text file, or the array of another file.

    blank: keep empty lines at the end of a .txt file, as entries.
    """
    file, name = find_file(path, COLUMN_FILES)
    suffix = file.suffix.lower()
    if suffix in TABLES:
        return open_table(file).column(name, n)
    if suffix != ".txt":
        return load_array(file, name, LABEL_NAMES)
    with open_text(file) as text:
        lines = text.read().replace("\r\n", "\n").replace("\r", "\n")
    return (lines.removesuffix("\n") if blank else lines.rstrip()).split("\n")
