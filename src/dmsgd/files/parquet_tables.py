"""Columns of .parquet files; needs pyarrow (the extra `dmsgd[parquet]`)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import InputError, warn_kernel
from dmsgd.files.columns import (
    LISTS,
    NUMBERS,
    TEXT,
    column_number,
    features_among,
    kept_columns,
    warn_left_out,
)
from dmsgd.files.paths import readable
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.messages import counted, require
from dmsgd.runtime.memory import reserve


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


def column_kinds(file: Path, source: Any, drop: Collection[str] = ()) -> dict[str, str]:
    """Return what each column holds that is not in `drop` and no index of a pandas frame."""
    with readable(file, "Parquet"):
        fields, names = list(source.schema_arrow), list(source.schema_arrow.names)
        index = {*_index(source), *(name for name in names if "__index_level_" in name)}
    used = [fields[j] for j in kept_columns(file, names, drop) if names[j] not in index]
    if not used:
        raise ValueError(f"{file} has no column of features")
    return {each.name: _kind(each.type) for each in used}


def _index(source: Any) -> list[str]:
    """Return the columns that were the index of the pandas frame that was written."""
    metadata = source.schema_arrow.pandas_metadata or {}
    return [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]


def _kind(kind: Any) -> str:
    """Return what a column of this Arrow type holds."""
    from pyarrow import types

    if _is_list(kind):
        return LISTS if _is_number(kind.value_type) else f"lists of {kind.value_type}"
    inner = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(inner) or types.is_large_string(inner):
        return TEXT
    return NUMBERS if _is_number(kind) else str(kind)


def feature_columns(
    file: Path, source: Any, drop: Collection[str] = (), named: bool = False
) -> dict[str, int]:
    """Return how many features each column of them has: 1, or the length of its lists.

    Columns in `drop` and the index of a pandas frame are no features. If there are lists of
    numbers, numbers and texts beside them are none either, unless they are `named` by the user.
    """
    kinds = column_kinds(file, source, drop)
    used = features_among(file, kinds, named)
    warn_left_out(file, kinds, used)
    names = list(source.schema_arrow.names)
    for name in used:
        if names.count(name) > 1:
            raise ValueError(f"{file} has two columns {name!r}; name them apart")
    for name in _index(source):
        if name not in drop and "__index_level_" not in name:
            warn_kernel(
                f"{file}: column {name!r} is the index of the pandas frame it was written from and "
                f"left out; write frame.reset_index() if it is a feature"
            )
    return {name: _width(file, source, name, kinds[name] == LISTS) for name in used}


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    checks = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(check(kind) for check in checks)


def _width(file: Path, source: Any, name: str, lists: bool) -> int:
    """Return how many numbers a column has in a row; of lists, those of the first row."""
    if not lists:
        return 1
    with readable(file, "Parquet"):
        for batch in source.iter_batches(1, columns=[name]):
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
        raise InputError(
            f"{file}: column {name!r} holds lists of different lengths ({span})", drop=name
        )


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
