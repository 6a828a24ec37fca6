"""Numbers and labels from .parquet files; needs pyarrow (the extra `dmsgd[parquet]`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.files.paths import column_number, not_numeric, readable
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.memory import reserve


def open_parquet(file: Path) -> Any:
    """Return the opened Parquet file."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{file}: reading Parquet needs pyarrow; pip install 'dmsgd[parquet]'"
        ) from None
    with readable(file, "Parquet"):
        source = parquet.ParquetFile(file, page_checksum_verification=True)
        source.schema_arrow  # noqa: B018 - made here, where what is wrong with it is told
        return source


def entries(file: Path) -> int:
    """Return the number of rows times that of columns."""
    source = open_parquet(file)
    return sum(group_sizes(file, source)) * int(source.metadata.num_columns)


def group_sizes(file: Path, source: Any) -> list[int]:
    """Return the number of rows of each row group, which its columns must agree about."""
    with readable(file, "Parquet"):
        metadata = source.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        sizes = [int(group.num_rows) for group in groups]
        if min(sizes, default=0) < 0 or sum(sizes) != metadata.num_rows:
            raise ValueError(f"its {metadata.num_rows} rows are not those of its groups")
        return sizes


def feature_columns(file: Path, source: Any, drop: str | None) -> list[str]:
    """Return the names of all columns but `drop`, which must be numeric."""
    import pyarrow as pa

    # pandas stores a row index that is not 0..n-1 as a column of this name; it is no feature.
    used = [f for f in source.schema_arrow if f.name != drop and "__index_level_" not in f.name]
    if not used:
        raise ValueError(f"{file} has no column of features")
    names = source.schema_arrow.names
    for field in used:
        if names.count(field.name) > 1:
            raise ValueError(f"{file} has two columns {field.name!r}; name them apart")
        kind = field.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or kind == pa.bool_()):
            raise ValueError(not_numeric(file, field.name, f"it holds {kind}"))
    return [field.name for field in used]


def numbers(file: Path, drop: str | None) -> FloatArray:
    """Return all columns of a Parquet file but `drop`, which must be numeric."""
    source = open_parquet(file)
    columns = feature_columns(file, source, drop)
    reserve(2 * entries(file), f"all of {file}", "use a part of the data")
    with readable(file, "Parquet"):
        return as_numbers(source.read(columns=columns))


def as_numbers(table: Any) -> FloatArray:
    """Return the columns of a table side by side."""
    import pyarrow as pa

    out = np.empty((table.num_rows, table.num_columns))
    for j, column in enumerate(table.columns):
        out[:, j] = column.cast(pa.float64()).to_numpy()
    return out


def labels(file: Path, name: str | None) -> npt.NDArray[Any]:
    """Return the column `name` of a Parquet file, or its only one."""
    source = open_parquet(file)
    import pyarrow as pa

    names = list(source.schema_arrow.names)
    reserve(sum(group_sizes(file, source)), f"the labels in {file}", "use a part of the data")
    j = column_number(file, names, names[0] if name is None and len(names) == 1 else name)
    with readable(file, "Parquet"):
        column = source.read(columns=[names[j]])[names[j]]
        column.validate(full=True)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)  # to_numpy makes a category of nulls
    if column.null_count:
        raise ValueError(f"{file} has {column.null_count} missing labels; drop or fill them")
    values = column.to_numpy()
    return np.array(values.tolist()) if values.dtype == object else np.asarray(values)
