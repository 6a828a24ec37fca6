"""Columns written to a file: .csv, .parquet, .jsonl, or the first alone as .txt or .npy."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from dmsgd.files.contract import Column
from dmsgd.inputs.messages import cell

#: Files that `write_rows` writes, and those of them that hold item numbers alone.
NUMBERS_ALONE = (".txt", ".npy")
OUTPUTS = (".csv", ".parquet", ".jsonl", *NUMBERS_ALONE)


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
