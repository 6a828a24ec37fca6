"""What a table is, a file whose columns have names, and one column of any file."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import InputError, warn_kernel
from dmsgd.files.arrays import load_array
from dmsgd.files.paths import LABEL_NAMES, TABLES, find_file, open_text
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.messages import few
from dmsgd.runtime.memory import reserve

#: Suffixes of files that `read_column` reads.
COLUMN_FILES = (".npy", ".npz", *TABLES, ".zarr", ".txt")
#: A cell that is a whole number; "007" is none, as a number would lose its zeros.
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
#: What columns hold; of other columns the name of the type is used.
LISTS, NUMBERS, TEXT = "lists of numbers", "numbers", "text"
#: A column: its name, and one entry per row, in a list or an array of NumPy or Arrow.
Column = tuple[str, Any]


class Table(ABC):
    """A file with named columns; `names` are in their order."""

    file: Path
    names: list[str]

    @abstractmethod
    def __init__(self, file: Path) -> None:
        """Open the file, and find the names."""

    @abstractmethod
    def kinds(self, drop: Collection[str]) -> dict[str, str]:
        """Return what each column holds that may be a feature and is not in `drop`."""

    @abstractmethod
    def column(self, name: str | None) -> list[str] | npt.NDArray[Any]:
        """Return the entries of the column `name`, or of the only one: text, or an array."""

    @abstractmethod
    def rows(
        self, items: IntArray, leave_out: Collection[str], verbatim: bool
    ) -> tuple[list[Column], int]:
        """Return the other columns for these items, in their order, and the rows of the file.

        verbatim: leave cells of a CSV file as they are; otherwise a column is one of numbers if
                  all its cells are.
        """

    def place(self, name: str | None) -> int:
        """Return where the column `name`, or the only one, is; raise unless there is one."""
        if name is None and len(self.names) == 1:
            return 0
        if name not in self.names:
            lacks = "" if name is None else f" and no column {name!r}"
            there = f"{few(self.names)}{lacks}; select one as {self.file.name}:NAME"
            raise ValueError(f"{self.file} has the columns {there}")
        if (times := self.names.count(name)) > 1:
            raise ValueError(f"{self.file} has {times} columns {name!r}; name them apart")
        return self.names.index(name)

    def kept(self, drop: Collection[str]) -> list[int]:
        """Return where the columns are that are not in `drop`, or raise if one is missing."""
        known, dropped = set(self.names), set(drop)  # there may be 100,000 of both
        for name in dropped - known:
            self.place(name)
        kept = [j for j, name in enumerate(self.names) if name not in dropped]
        if not kept:
            raise ValueError(f"{self.file} has no column of features besides {few(list(drop))}")
        return kept

    def features(self, drop: Collection[str], named: bool, warn: bool = False) -> dict[str, str]:
        """Return the columns that are features, with what they hold.

        If one holds lists of numbers, such as embeddings, only such columns are; a number beside
        it may be a score or an id.

        drop:  columns that are none.
        named: whether the user named the others, so that all are.
        warn:  whether to warn about numbers that are left out.
        """
        kinds = self.kinds(drop)
        lists = {name: kind for name, kind in kinds.items() if kind == LISTS}
        numbers = [name for name, kind in kinds.items() if kind == NUMBERS]
        if lists and not named:
            if numbers and warn:
                warn_kernel(
                    f"{self.file}: the features are the lists of numbers in {few(list(lists))}; "
                    f"numbers beside them are left out: {few(numbers)}",
                    **({"columns": ",".join([*lists, *numbers])} if len(kinds) <= 5 else {}),
                )
            return lists
        if wrong := [name for name in kinds if name not in lists and name not in numbers]:
            one = len(wrong) == 1
            several = sorted({kinds[name].partition(",")[0] for name in wrong})
            held = kinds[wrong[0]] if one else few(several)
            raise InputError(
                f"{self.file}: column{'s' * (not one)} {few(list(map(repr, wrong)))} "
                f"hold{'s' * one} {held}: encode as numbers, or leave out",
                **({"labels": wrong[0]} if one else {}),
                **({"texts": wrong[0]} if one and held.startswith(TEXT) else {}),
                drop=",".join(wrong),
            )
        return kinds


def find_table(path: str | Path) -> Table | None:
    """Return the table in a file, and None if the file is of another kind."""
    if Path(path).suffix.lower() not in TABLES:
        return None
    return open_table(find_file(path, TABLES)[0])


def open_table(file: Path) -> Table:
    """Return the table in a file that is there."""
    from dmsgd.files.parquet_tables import ParquetTable
    from dmsgd.files.text_tables import CsvTable, JsonTable

    kinds: dict[str, type[Table]] = {".parquet": ParquetTable, ".jsonl": JsonTable}
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
