"""Columns of .csv and .tsv files, lines of .txt files, and names and columns of any table."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import warn_kernel
from dmsgd.files.arrays import load_array
from dmsgd.files.columns import TEXT, column_number, features_among, kept_columns, not_numeric
from dmsgd.files.json_lines import field_kinds, field_names, read_field
from dmsgd.files.parquet_tables import column_kinds, open_parquet, read_values
from dmsgd.files.paths import LABEL_NAMES, TABLES, TEXT_TABLES, find_file, open_text
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import few
from dmsgd.runtime.memory import reserve

#: Suffixes of files that `read_column` reads.
COLUMN_FILES = (".npy", ".npz", *TABLES, ".zarr", ".txt")


@dataclass(frozen=True)
class Layout:
    """Columns of a CSV file, what separates them, and its first row of data."""

    names: list[str]
    delimiter: str
    skip: int  # lines up to the end of the header
    first: list[str]


def read_layout(file: Path) -> Layout:
    """Return how a file is laid out: commas, or semicolons or tabs if there is no comma.

    A .tsv file has tabs. Without a header columns are numbered from 1.
    """
    with open_text(file) as text:
        line = next((line for line in text if line.strip()), "")
        line = re.sub('"[^"]*"', "", line)  # names between quotes may hold commas
        delimiter = next((each for each in ",;\t" if each in line), ",")
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
        return Layout([str(j + 1) for j in range(len(first))], delimiter, 0, first)
    names = [cell.strip() for cell in first]
    if "" in names:
        where = names.index("") + 1
        raise ValueError(f"{file}: column {where} has no name (pandas: to_csv(..., index=False))")
    return Layout(names, delimiter, skip, second)


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


def read_numbers(file: Path, drop: Collection[str] = ()) -> FloatArray:
    """Return all columns of a CSV file but those in `drop`; they must be numeric."""
    layout = read_layout(file)
    kept = kept_columns(file, layout.names, drop)
    if not layout.first:
        raise ValueError(f"{file} has a header ({few(layout.names)}) but no rows")
    cells = {layout.names[j]: "".join(layout.first[j : j + 1]) for j in kept}
    words = {name: cell for name, cell in cells.items() if cell.strip() and not _is_number(cell)}
    if words:
        held = {name: f"{TEXT}, the first row has {cell[:40]!r}" for name, cell in words.items()}
        raise not_numeric(file, held, list(cells))
    dropped = set(range(len(layout.names))) - set(kept)
    with open_text(file) as text:
        try:
            found = np.loadtxt(
                text,
                delimiter=layout.delimiter,
                comments=None,
                quotechar='"',
                skiprows=layout.skip,
                converters=dict.fromkeys(dropped, lambda cell: 0.0),  # so that all cells count
                ndmin=2,
            )
        except UnicodeDecodeError:
            raise
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
    if found.shape[1] != len(layout.names):
        raise ValueError(f"{file} has {len(layout.names)} names and {found.shape[1]} columns")
    found = np.ascontiguousarray(found[:, kept])
    if kept[0] == 0 and layout.skip and _counts_up(found[:, 0]):
        name = layout.names[0]
        warn_kernel(
            f"{file}: column {name!r} counts upwards, as row numbers and ids do, and is used as a "
            f"feature; if it is not one, name it by --id or drop it",
            drop=name,
        )
    return found


def _counts_up(first: FloatArray) -> bool:
    """Return whether these are ascending whole numbers, too many for chance."""
    return first.size >= 10 and bool((np.diff(first) > 0).all() and (first % 1 == 0).all())


def read_cells(file: Path, name: str | None, n: int | None) -> list[str]:
    """Return the column `name` of a CSV file, or its only one, as text.

    n: how many there should be. Of a single column of text the first line is the header if there
       is one line too many and its text occurs nowhere else.
    """
    layout = read_layout(file)
    single = name is None and len(layout.names) == 1
    column = column_number(file, layout.names, name)
    cells = [row[column] for row in csv_rows(file, layout, 0 if single else layout.skip)]
    first, rest = cells[0], cells[1:]
    if single and not _is_number(first) and rest:
        one_too_many = n is not None and len(rest) == n and first not in rest
        cells = rest if one_too_many or all(map(_is_number, rest)) else cells
    return cells


def csv_rows(file: Path, layout: Layout, skip: int) -> Iterator[list[str]]:
    """Yield the cells of each row of a CSV file after `skip` lines."""
    with open_text(file) as text:
        reader = csv.reader(text, delimiter=layout.delimiter)
        for row in reader:
            if not row or reader.line_num <= skip:
                continue
            if len(row) != len(layout.names):
                counts = f"{len(row)} cells, the first line {len(layout.names)}"
                raise ValueError(f"{file}: line {reader.line_num} has {counts}")
            yield row


def as_column(file: str | Path, cells: list[str]) -> npt.NDArray[Any]:
    """Return the cells as integers if all are written as such, otherwise as text."""
    longest = max(map(len, cells), default=0)
    advice = f"shorten the longest, of {longest:,} characters"
    reserve(len(cells) * longest, f"two tables of the {len(cells):,} labels in {file}", advice)
    text = np.char.strip(np.array(cells, dtype=np.str_))
    try:
        whole = text.astype(np.int64)
    except (ValueError, OverflowError):
        return np.where(text == "", "nan", text)  # missing, as for `as_labels`
    return whole if np.array_equal(whole.astype(np.str_), text) else text  # "07" is not "7"


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a table, and none for other kinds of file.

    The columns of a CSV file without a header are named by their numbers, from 1.
    """
    if Path(path).suffix.lower() not in TABLES:
        return []
    file, _ = find_file(path, TABLES)
    if file.suffix.lower() in TEXT_TABLES:
        return read_layout(file).names
    if file.suffix.lower() == ".jsonl":
        return field_names(file)
    return list(open_parquet(file).schema_arrow.names)


def feature_names(path: str | Path, drop: Collection[str], named: bool) -> list[str]:
    """Return the columns of a table that are its features; arguments as for `open_features`."""
    file, _ = find_file(path, TABLES)
    if file.suffix.lower() in TEXT_TABLES:
        names = read_layout(file).names
        return [names[j] for j in kept_columns(file, names, drop)]
    lines = file.suffix.lower() == ".jsonl"
    kinds = field_kinds(file, drop) if lines else column_kinds(file, open_parquet(file), drop)
    return features_among(file, kinds, named)


def read_column(path: str | Path, n: int | None = None) -> npt.NDArray[Any]:
    """Return one label per item from the file at `path`: whole numbers or text.

    path: `table:NAME` is a column, `archive.npz:NAME` and `store.zarr:NAME` an array.
    n:    how many there should be; tells a header from a label where a CSV file has one column.
    """
    found = _read(path, n)
    found = as_column(path, found) if isinstance(found, list) else found
    return as_labels(found, name=str(path))


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
    if suffix == ".txt":
        with open_text(file) as text:
            lines = text.read().replace("\r\n", "\n").replace("\r", "\n")
        return (lines.removesuffix("\n") if blank else lines.rstrip()).split("\n")
    if suffix in TEXT_TABLES:
        return read_cells(file, name, n)
    if suffix == ".parquet":
        return read_values(file, name)
    if suffix == ".jsonl":
        return read_field(file, name)
    return load_array(file, name, LABEL_NAMES)
