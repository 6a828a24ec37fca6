"""Tables of any format, and one column of any file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.files.arrays import load_array
from dmsgd.files.contract import Table
from dmsgd.files.parquet_tables import ParquetTable
from dmsgd.files.paths import LABEL_NAMES, TABLES, find_file, open_text
from dmsgd.files.text_tables import WHOLE, CsvTable, JsonTable
from dmsgd.inputs.labels import as_labels
from dmsgd.runtime.memory import reserve

#: Suffixes of files that `read_column` reads.
COLUMN_FILES = (".npy", ".npz", *TABLES, ".zarr", ".txt")


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
