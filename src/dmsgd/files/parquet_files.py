"""Numbers and labels from .parquet files; needs pyarrow (the extra `dmsgd[parquet]`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from warnings import catch_warnings, simplefilter, warn

import numpy as np
import numpy.typing as npt

from dmsgd.errors import KernelWarning
from dmsgd.files.paths import column_number, kept, not_numeric, readable
from dmsgd.inputs.arrays import FloatArray
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import counted, require


def open_parquet(file: Path) -> Any:
    """Return the opened Parquet file."""
    require("parquet", f"{file}: reading Parquet")
    from pyarrow import parquet

    with readable(file, "Parquet"):
        source = parquet.ParquetFile(file, page_checksum_verification=True)
        source.schema_arrow  # noqa: B018 - made here, where what is wrong with it is told
        return source


def entries(file: Path, drop: Collection[str] = ()) -> int:
    """Return the number of rows times that of features."""
    source = open_parquet(file)
    with catch_warnings():
        simplefilter("ignore", KernelWarning)  # said when they are read
        return sum(group_sizes(file, source)) * feature_columns(file, source, drop).d


def group_sizes(file: Path, source: Any) -> list[int]:
    """Return the number of rows of each row group, which its columns must agree about."""
    with readable(file, "Parquet"):
        metadata = source.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        sizes = [int(group.num_rows) for group in groups]
        if min(sizes, default=0) < 0 or sum(sizes) != metadata.num_rows:
            raise ValueError(f"its {metadata.num_rows} rows are not those of its groups")
        return sizes


@final
@dataclass(frozen=True)
class Columns:
    """The columns of a Parquet file that are features: a number each, or a list of so many."""

    names: list[str]
    widths: list[int]

    @property
    def d(self) -> int:
        """How many features they are."""
        return sum(self.widths)


def feature_columns(file: Path, source: Any, drop: Collection[str] = ()) -> Columns:
    """Return all columns but those to `drop`: numbers, or lists of numbers of one length.

    The index of a pandas frame is no feature.
    """
    with readable(file, "Parquet"):
        index = _pandas_index(source)
    fields, names = list(source.schema_arrow), source.schema_arrow.names
    used = [fields[j] for j in kept(file, names, drop) if names[j] not in index]
    if not used:
        raise ValueError(f"{file} has no column of features")
    times = Counter(names)
    for field in used:
        if times[field.name] > 1:
            raise ValueError(f"{file} has two columns {field.name!r}; name them apart")
        kind = field.type.value_type if _is_list(field.type) else field.type
        if not _is_number(kind):
            raise not_numeric(file, field.name, f"it holds {field.type}")
    for name in index:
        if name not in drop and "__index_level_" not in name:
            warn(
                f"{file}: column {name!r} is the index of the pandas frame it was written from and "
                f"left out; write frame.reset_index() if it is a feature",
                KernelWarning,
                stacklevel=2,
            )
    return Columns([field.name for field in used], [_width(file, source, f) for f in used])


def _pandas_index(source: Any) -> list[str]:
    """Return the columns that pandas keeps the index of a frame in."""
    said = source.schema_arrow.pandas_metadata or {}
    named = [each for each in said.get("index_columns", ()) if isinstance(each, str)]
    plain = [each for each in source.schema_arrow.names if "__index_level_" in each]
    return list(dict.fromkeys([*named, *plain]))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    is_list = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in is_list)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return kind == pa.bool_() or any(check(kind) for check in is_number)


def _width(file: Path, source: Any, field: Any) -> int:
    """Return how many numbers a column has in a row; of lists, those of the first row."""
    import pyarrow as pa

    if not _is_list(field.type):
        return 1
    if pa.types.is_fixed_size_list(field.type):
        return int(field.type.list_size)
    with readable(file, "Parquet"):
        for batch in source.iter_batches(1, columns=[field.name]):
            return len(batch.column(0)[0].as_py() or ())
    return 0


def numbers(file: Path, drop: Collection[str] = ()) -> FloatArray:
    """Return all columns of a Parquet file but those to `drop`."""
    source = open_parquet(file)
    columns = feature_columns(file, source, drop)
    rows = sum(group_sizes(file, source))
    reserve(2 * rows * columns.d, f"all of {file}", "use a part of the data")
    with readable(file, "Parquet"):
        table = source.read(columns=columns.names)
    return as_numbers(file, table, columns)


def as_numbers(file: Path, table: Any, columns: Columns) -> FloatArray:
    """Return the columns of a table side by side, lists as so many columns."""
    out, first = np.empty((table.num_rows, columns.d)), 0
    for name, width in zip(columns.names, columns.widths, strict=True):
        with readable(file, "Parquet"):
            column = table[name]
            lists = _is_list(column.type)
        if lists:
            out[:, first : first + width] = _flattened(file, name, column, width)
        else:
            with readable(file, "Parquet"):
                out[:, first] = _as_floats(column)
        first += width
    return out


def _flattened(file: Path, name: str, column: Any, width: int) -> FloatArray:
    from pyarrow import compute

    if column.null_count:
        rows = counted(column.null_count, "row")
        raise ValueError(f"{file}: column {name!r} is missing in {rows}; fill or drop them")
    lengths = compute.unique(compute.list_value_length(column)).to_pylist()
    if lengths not in ([], [width]):
        raise ValueError(
            f"{file}: column {name!r} holds lists of different lengths ({min(lengths)} to "
            f"{max(lengths)}); features need as many numbers in each row"
        )
    with readable(file, "Parquet"):
        return _as_floats(compute.list_flatten(column)).reshape(-1, width)


def _as_floats(column: Any) -> FloatArray:
    """Return a column of numbers as the nearest float64 of each; NaN where it is missing."""
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        column = column.cast("string")  # from decimals Arrow does not always find the nearest
    return np.asarray(column.cast("float64", safe=False).to_numpy())


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
        raise ValueError(
            f"{file} has {counted(column.null_count, 'missing label')}; drop or fill them"
        )
    values = column.to_numpy()
    return np.array(values.tolist()) if values.dtype == object else np.asarray(values)
