"""Rows of a table that were chosen: read with all their columns, and written to another table."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from dmsgd.files.json_lines import field_names, read_objects
from dmsgd.files.parquet_tables import group_sizes, open_parquet
from dmsgd.files.paths import TABLES, find_file, readable
from dmsgd.files.tables import csv_rows, read_layout
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.messages import cell

#: Files that `write_rows` writes, and those of them that hold item numbers alone.
NUMBERS_ALONE = (".txt", ".npy")
OUTPUTS = (".csv", ".parquet", ".jsonl", *NUMBERS_ALONE)
#: A column: its name, and one entry per row, in a list or an array of NumPy or Arrow.
Column = tuple[str, Any]
#: Cells of a CSV file that are numbers; "007" is none, as a number would lose its zeros.
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)


def read_rows(
    path: str | Path, items: IntArray, n: int, leave_out: Collection[str], verbatim: bool = False
) -> list[Column]:
    """Return the columns of a table for these items, in their order; none of other files.

    n:         rows that the table must have.
    leave_out: columns that are not wanted.
    verbatim:  leave cells of a CSV file as they are; otherwise a column is one of numbers if all
               its cells are.
    """
    if Path(path).suffix.lower() not in TABLES:
        return []
    file, _ = find_file(path, TABLES)
    places = {item: place for place, item in enumerate(items.tolist())}
    if file.suffix.lower() == ".parquet":
        found, rows = _parquet_rows(file, items, set(leave_out))
    elif file.suffix.lower() == ".jsonl":
        found, rows = _json_rows(file, places, set(leave_out))
    else:
        found, rows = _csv_rows(file, places, set(leave_out), verbatim)
    if rows != n:
        raise ValueError(f"{file} has {rows:,} rows and had {n:,}: it changed meanwhile; try again")
    return found


def _csv_rows(
    file: Path, places: Mapping[int, int], leave_out: set[str], verbatim: bool
) -> tuple[list[Column], int]:
    """Return the columns of a CSV file, as text or numbers; an empty cell is no number.

    places: where items come in the result.
    """
    layout, rows = read_layout(file), 0
    kept = [j for j, name in enumerate(layout.names) if name not in leave_out]
    cells = [[""] * len(places) for _ in kept]
    whole, numeric = (set[int]() if verbatim else set(kept) for _ in range(2))
    for row in csv_rows(file, layout, layout.skip):
        whole -= {j for j in whole if row[j] and not WHOLE.fullmatch(row[j])}
        numeric -= {j for j in numeric if row[j] and not NUMBER.fullmatch(row[j])}
        place = places.get(rows)
        if place is not None:
            for column, j in zip(cells, kept, strict=True):
                column[place] = row[j]
        rows += 1

    def typed(j: int, column: list[str]) -> list[Any]:
        kind = int if j in whole else float if j in numeric else str
        return column if kind is str else [kind(each) if each else None for each in column]

    found = [(layout.names[j], typed(j, each)) for j, each in zip(kept, cells, strict=True)]
    return found, rows


def _json_rows(
    file: Path, places: Mapping[int, int], leave_out: set[str]
) -> tuple[list[Column], int]:
    """Return the fields of objects; those that the first line lacks come last."""
    found: dict[str, list[Any]] = {}
    names, rows = field_names(file), 0
    for _, each in read_objects(file, places):
        if (place := places.get(rows)) is not None:
            for name in (*names, *each):
                if name not in leave_out:
                    found.setdefault(name, [None] * len(places))[place] = each.get(name)
        rows += 1
    return list(found.items()), rows


def _parquet_rows(file: Path, items: IntArray, leave_out: set[str]) -> tuple[list[Column], int]:
    """Return columns of Arrow, read from one row group at a time."""
    import pyarrow as pa

    source = open_parquet(file)
    bounds = np.cumsum([0, *group_sizes(file, source)])
    names = [name for name in dict.fromkeys(source.schema_arrow.names) if name not in leave_out]
    if not names:
        return [], int(bounds[-1])
    order = np.argsort(items, kind="stable")
    parts = []
    with readable(file, "Parquet"):
        for group in np.unique(np.searchsorted(bounds, items, side="right")).tolist():
            first, last = bounds[group - 1 : group + 1]
            inside = items[order][(items[order] >= first) & (items[order] < last)] - first
            parts.append(source.read_row_group(group - 1, columns=names).take(pa.array(inside)))
        if not parts:
            parts = [source.schema_arrow.empty_table().select(names)]
        table = pa.concat_tables(parts).take(pa.array(np.argsort(order)))
    return list(zip(table.column_names, table.columns, strict=True)), int(bounds[-1])


def distinct_names(first: Sequence[Column], others: Sequence[Column]) -> list[Column]:
    """Return all columns; a name of the others that is taken gets "input_" before it."""
    taken, found = {name for name, _ in first}, list(first)
    for name, column in others:
        while name in taken:
            name = f"input_{name}"
        taken.add(name)
        found.append((name, column))
    return found


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
