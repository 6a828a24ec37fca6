"""Columns of .parquet files; needs pyarrow (the extra `dmsgd[parquet]`)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import InputError, warn_kernel
from dmsgd.files.paths import column_number, kept_columns, not_numeric, readable
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import counted, require


def open_parquet(file: Path) -> Any:
    """Return the opened Parquet file."""
    require("parquet", f"{file}: reading Parquet")
    from pyarrow import parquet

    with readable(file, "Parquet"):
        source = parquet.ParquetFile(file, page_checksum_verification=True)
        source.schema_arrow  # noqa: B018 - raises here if it is damaged
        return source


def group_sizes(file: Path, source: Any) -> list[int]:
    """Return the number of rows of each row group."""
    with readable(file, "Parquet"):
        metadata = source.metadata
        sizes = [int(metadata.row_group(j).num_rows) for j in range(metadata.num_row_groups)]
        if min(sizes, default=0) < 0 or sum(sizes) != metadata.num_rows:
            raise ValueError(f"its {metadata.num_rows} rows are not those of its groups")
        return sizes


def feature_columns(file: Path, source: Any, drop: Collection[str] = ()) -> dict[str, int]:
    """Return how many features each column has: 1, or the length of its lists.

    Columns in `drop` and the index of a pandas frame are no features; others must be numeric.
    """
    with readable(file, "Parquet"):
        fields, names = list(source.schema_arrow), list(source.schema_arrow.names)
        metadata = source.schema_arrow.pandas_metadata or {}
        named = [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]
    index = {*named, *(name for name in names if "__index_level_" in name)}
    used = [fields[j] for j in kept_columns(file, names, drop) if names[j] not in index]
    if not used:
        raise ValueError(f"{file} has no column of features")
    kinds = {each.name: each.type.value_type if _is_list(each.type) else each.type for each in used}
    wrong = {name: str(kind) for name, kind in kinds.items() if not _is_number(kind)}
    if wrong:
        raise not_numeric(file, wrong, list(kinds))
    for name in kinds:
        if names.count(name) > 1:
            raise ValueError(f"{file} has two columns {name!r}; name them apart")
    for name in named:
        if name not in drop and "__index_level_" not in name:
            warn_kernel(
                f"{file}: column {name!r} is the index of the pandas frame it was written from and "
                f"left out; write frame.reset_index() if it is a feature"
            )
    return {field.name: _width(file, source, field) for field in used}


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    checks = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(check(kind) for check in checks)


def _width(file: Path, source: Any, field: Any) -> int:
    """Return how many numbers a column has in a row; of lists, those of the first row."""
    if not _is_list(field.type):
        return 1
    with readable(file, "Parquet"):
        for batch in source.iter_batches(1, columns=[field.name]):
            return len(batch.column(0)[0].as_py() or ())
    return 0


def as_numbers(file: Path, table: Any, columns: dict[str, int]) -> FloatArray:
    """Return the columns of a table side by side, a list as one column per entry.

    Each number becomes the nearest float64; NaN where it is missing.
    """
    from pyarrow import compute, types

    out, first = np.empty((table.num_rows, sum(columns.values()))), 0
    with readable(file, "Parquet"):
        for name, width in columns.items():
            column = table[name]
            if _is_list(column.type):
                _check_lists(file, name, column, width)
                column = compute.list_flatten(column)
            if types.is_decimal(column.type):
                column = column.cast("string")  # Arrow's cast of decimals is not always the nearest
            numbers = np.asarray(column.cast("float64", safe=False).to_numpy())
            out[:, first : first + width] = numbers.reshape(-1, width)
            first += width
    return out


def _check_lists(file: Path, name: str, column: Any, width: int) -> None:
    """Raise unless all lists of a column have `width` entries."""
    from pyarrow import compute

    if column.null_count:
        rows = counted(column.null_count, "row")
        raise InputError(f"{file}: column {name!r} is missing in {rows}; fill or drop them")
    lengths = compute.unique(compute.list_value_length(column)).to_pylist()
    if lengths not in ([], [width]):
        span = f"{min(lengths)} to {max(lengths)}"
        raise InputError(f"{file}: column {name!r} holds lists of different lengths ({span})")


def read_values(file: Path, name: str | None) -> npt.NDArray[Any]:
    """Return the column `name` of a Parquet file, or its only one; text as Python objects."""
    source = open_parquet(file)
    from pyarrow import types

    names = list(source.schema_arrow.names)
    reserve(sum(group_sizes(file, source)), f"a column of {file}", "use a part of the data")
    name = names[column_number(file, names, names[0] if name is None and len(names) == 1 else name)]
    with readable(file, "Parquet"):
        column = source.read(columns=[name])[name]
        column.validate(full=True)
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # to_numpy makes a category of nulls
        return np.asarray(column.to_numpy())
