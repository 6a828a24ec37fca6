"""Tables of any format, one column of any file, and columns that are written to a file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dmsgd.files.arrays import load_array
from dmsgd.files.contract import Column, Table
from dmsgd.files.parquet_tables import ParquetTable
from dmsgd.files.paths import LABEL_NAMES, TABLES, find_file, open_text
from dmsgd.files.text_tables import WHOLE, CsvTable, JsonTable
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import cell
from dmsgd.runtime.memory import reserve

#: Suffixes of files that `read_column` reads.
COLUMN_FILES = (".npy", ".npz", *TABLES, ".zarr", ".txt")
#: Files that `write_rows` writes, and those of them that hold item numbers alone.
NUMBERS_ALONE = (".txt", ".npy")
OUTPUTS = (".csv", ".parquet", ".jsonl", *NUMBERS_ALONE)


def find_table(path: str | Path) -> Table | None:
    """Return the table in a file, and None if the file is of another kind."""
    if Path(path).suffix.lower() not in TABLES:
        return None
    return open_table(find_file(path, TABLES)[0])


def open_table(file: Path) -> Table:
    """Return the table in a file that is there."""
    kinds = {".parquet": ParquetTable, ".jsonl": JsonTable}
    return kinds.get(file.suffix.lower(), CsvTable)(file)


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a table, and none for other kinds of file."""
    return getattr(find_table(path), "names", [])


def read_column(path: str | Path) -> npt.NDArray[Any]:
    """Return one label per item from the file at `path`: whole numbers or text.

    path: `table:NAME` is a column, `archive.npz:NAME` and `store.zarr:NAME` an array.
    """
    found = _read(path)
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
    found = _read(path, blank=n is not None)
    found = found if isinstance(found, list) else np.atleast_1d(found).tolist()
    if n is not None and len(found) != n:
        raise ValueError(
            f"{path} has {len(found):,} entries for {n:,} items; it needs one per item"
        )
    entries = ("" if each is None else each for each in found)
    return np.fromiter(entries, dtype=object, count=len(found))


def _read(path: str | Path, blank: bool = False) -> list[str] | npt.NDArray[Any]:
    """Return the cells of a text file, or the array of another file.

    blank: keep empty lines at the end of a .txt file, as entries.
    """
    file, name = find_file(path, COLUMN_FILES)
    suffix = file.suffix.lower()
    if suffix in TABLES:
        return open_table(file).column(name)
    if suffix != ".txt":
        return load_array(file, name, LABEL_NAMES)
    with open_text(file) as text:
        lines = text.read().replace("\r\n", "\n").replace("\r", "\n")
    return (lines.removesuffix("\n") if blank else lines.rstrip()).split("\n")


def write_rows(file: IO[bytes], suffix: str, columns: Sequence[Column]) -> None:
    """Write columns as a table, .csv, .parquet or .jsonl, or the first as numbers, .txt or .npy."""
    names = [name for name, _ in columns]
    if suffix in NUMBERS_ALONE:
        numbers = columns[0][1]
        np.save(file, numbers) if suffix == ".npy" else np.savetxt(file, numbers, fmt="%d")
        return
    if suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table([_as_arrow(each) for _, each in columns], names), file)
        return
    rows = zip(*(_as_list(each) for _, each in columns), strict=True)
    if suffix == ".jsonl":
        for row in rows:
            entries = dict(zip(names, map(_as_json, row), strict=True))
            line = json.dumps(entries, ensure_ascii=False, default=str) + "\n"
            file.write(line.encode("utf-8", "backslashreplace"))  # halves of surrogate pairs
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(cell, names))
    writer.writerows([_as_cell(each) for each in row] for row in rows)
    file.write(text.getvalue().encode())


def _as_list(column: Any) -> list[Any]:
    if hasattr(column, "to_pylist"):
        return column.to_pylist()  # type: ignore[no-any-return]
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _as_cell(value: Any) -> str:
    if value is None:
        return ""
    return cell(json.dumps(value, default=str) if isinstance(value, list | dict) else value)


def _as_json(value: Any) -> Any:
    """Return a value without NaN and infinities, which JSON does not have."""
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _as_json(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_arrow(column: Any) -> Any:
    """Return a column for Parquet; one of mixed types becomes text."""
    import pyarrow as pa

    if hasattr(column, "to_pylist"):
        return column
    try:
        return pa.array(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([None if each is None else _as_text(each) for each in _as_list(column)])


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "backslashreplace").decode()
