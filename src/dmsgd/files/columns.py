"""One column of a file, such as labels, and the names of a table's columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from dmsgd.files.arrays import load_array
from dmsgd.files.csv_tables import as_column, open_text, read_cells, read_layout
from dmsgd.files.parquet_tables import open_parquet, read_values
from dmsgd.files.paths import LABEL_NAMES, TABLES, TEXT_TABLES, find_file
from dmsgd.inputs.labels import as_labels

#: Suffixes of files that `read_column` reads.
COLUMN_FILES = (".npy", ".npz", *TABLES, ".zarr", ".txt")


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a table, and none for other kinds of file.

    The columns of a CSV file without a header are named by their numbers, from 1.
    """
    if Path(path).suffix.lower() not in TABLES:
        return []
    file, _ = find_file(path, TABLES)
    if file.suffix.lower() in TEXT_TABLES:
        return read_layout(file).names
    return list(open_parquet(file).schema_arrow.names)


def read_column(path: str | Path, n: int | None = None) -> npt.NDArray[Any]:
    """Return one label per item from the file at `path`: whole numbers or text.

    path: `table:NAME` is a column, `archive.npz:NAME` and `store.zarr:NAME` an array.
    n:    how many there should be; tells a header from a label where a CSV file has one column.
    """
    file, name = find_file(path, COLUMN_FILES)
    suffix = file.suffix.lower()
    if suffix == ".txt":
        with open_text(file) as text:
            value: Any = as_column(file, text.read().rstrip().splitlines())
    elif suffix in TEXT_TABLES:
        value = read_cells(file, name, n)
    elif suffix == ".parquet":
        value = read_values(file, name)
    else:
        value = load_array(file, name, LABEL_NAMES)
    return as_labels(value, name=str(path))
