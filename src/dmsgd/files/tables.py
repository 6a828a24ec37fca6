"""Tables in files, .csv, .tsv and .parquet: their columns, one of which may be the labels."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy.typing as npt

from dmsgd.files import csv_files, parquet_files
from dmsgd.files.paths import existing
from dmsgd.inputs.arrays import FloatArray

#: How the names of tables end; those of text are read as a whole.
TEXT_TABLES = (".csv", ".tsv")
TABLES = (*TEXT_TABLES, ".parquet")


def is_text_table(path: str | Path) -> bool:
    """Return whether a path is that of a .csv or .tsv file."""
    return Path(path).suffix.lower() in TEXT_TABLES


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a table, and none for other kinds of file."""
    if Path(path).suffix.lower() not in TABLES:
        return []
    file, _ = existing(path, TABLES)
    if is_text_table(file):
        return csv_files.layout(file).names
    return list(parquet_files.open_parquet(file).schema_arrow.names)


def numbers(file: Path, drop: Collection[str] = ()) -> FloatArray:
    """Return all columns of a table but those to `drop`, in memory."""
    if is_text_table(file):
        return csv_files.numbers(file, drop)
    return parquet_files.numbers(file, drop)


def labels(file: Path, name: str | None, n: int | None = None) -> npt.NDArray[Any]:
    """Return the column `name` of a table, or its only one; `n`: as for `csv_files.labels`."""
    if is_text_table(file):
        return csv_files.labels(file, name, n)
    return parquet_files.labels(file, name)
