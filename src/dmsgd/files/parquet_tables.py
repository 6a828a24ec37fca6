"""Tables in .parquet files; needs pyarrow (the extra `dmsgd[parquet]`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.errors import InputError
from dmsgd.files.contract import LISTS, NUMBERS, TEXT, Column, Table
from dmsgd.files.paths import readable
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.messages import few, require
from dmsgd.runtime.memory import reserve


class ParquetTable(Table):
    """A .parquet file, opened; `sizes` are the numbers of rows of its row groups."""

    def __init__(self, file: Path) -> None:
        require("parquet", f"{file}: reading Parquet")
        from pyarrow import parquet

        self.file = file
        with readable(file, "Parquet"):
            self.source = parquet.ParquetFile(file, page_checksum_verification=True)
            self.schema, metadata = self.source.schema_arrow, self.source.metadata
            self.names = list(self.schema.names)
            groups = range(metadata.num_row_groups)
            self.sizes = [int(metadata.row_group(j).num_rows) for j in groups]
            if min(self.sizes, default=0) < 0 or sum(self.sizes) != metadata.num_rows:
                raise ValueError(f"its {metadata.num_rows} rows are not those of its groups")

    def kinds(self, drop: Collection[str]) -> dict[str, str]:
        """Return what columns hold, by their type; those of a pandas index are left out."""
        kept = self.kept(drop)
        with readable(self.file, "Parquet"):
            metadata = self.schema.pandas_metadata or {}
            index = [each for each in metadata.get("index_columns", ()) if isinstance(each, str)]
            fields = [self.schema.field(j) for j in kept]
            kinds = {each.name: _kind(each.type) for each in fields if each.name not in index}
        kinds = {name: kind for name, kind in kinds.items() if "__index_level_" not in name}
        if not kinds:
            raise ValueError(f"{self.file} has no column of features")
        return kinds

    def widths(self, drop: Collection[str], named: bool) -> dict[str, int]:
        """Return how many features each column of them has: 1, or the length of its first list."""
        kinds = self.features(drop, named, warn=True)
        for name in kinds:
            self.place(name)  # raises if there are two
        return {name: self._width(name) if kinds[name] == LISTS else 1 for name in kinds}

    def _width(self, name: str) -> int:
        with readable(self.file, "Parquet"):
            for batch in self.source.iter_batches(1, columns=[name]):
                return len(batch.column(0)[0].as_py() or ())
        return 0

    def read_groups(self, groups: Sequence[int], widths: dict[str, int]) -> FloatArray:
        """Return these columns of some row groups side by side, a list as one column per entry.

        Each number becomes the nearest float64; NaN where it is missing.
        """
        from pyarrow import compute, types

        with readable(self.file, "Parquet"):
            table = self.source.read_row_groups(list(groups), columns=list(widths))
            out, first = np.empty((table.num_rows, sum(widths.values()))), 0
            for name, width in widths.items():
                column = table[name]
                if _is_list(column.type):
                    lengths = compute.unique(compute.list_value_length(column)).to_pylist()
                    if lengths not in ([], [width]):
                        raise InputError(
                            f"{self.file}: column {name!r} holds lists of different lengths, or "
                            f"none ({few(lengths)})",
                            drop=name,
                        )
                    column = compute.list_flatten(column)
                if types.is_decimal(column.type):
                    column = column.cast("string")  # Arrow's cast is not always the nearest
                numbers = np.asarray(column.cast("float64", safe=False).to_numpy())
                out[:, first : first + width] = numbers.reshape(-1, width)
                first += width
        return out

    def column(self, name: str | None) -> npt.NDArray[Any]:
        """Return the entries; text as Python objects."""
        from pyarrow import types

        name = self.names[self.place(name)]
        reserve(sum(self.sizes), f"a column of {self.file}", "use a part of the data")
        with readable(self.file, "Parquet"):
            column = self.source.read(columns=[name])[name]
            column.validate(full=True)
            if types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)  # to_numpy makes a category of nulls
            return np.asarray(column.to_numpy())

    def rows(
        self, items: IntArray, leave_out: Collection[str], verbatim: bool
    ) -> tuple[list[Column], int]:
        """Return columns of Arrow."""
        import pyarrow as pa
        from pyarrow.dataset import dataset

        names = [name for name in self.names if name not in leave_out]
        with readable(self.file, "Parquet"):
            found = dataset(self.file, format="parquet")
            kinds = {"string_view": pa.string(), "binary_view": pa.binary()}  # Arrow takes no views
            fields = [each.with_type(kinds.get(str(each.type), each.type)) for each in found.schema]
            if (plain := pa.schema(fields, found.schema.metadata)) != found.schema:
                found = dataset(self.file, format="parquet", schema=plain)
            table = found.take(items, columns=names)
        return list(zip(names, table.columns, strict=True)), sum(self.sizes)


def _kind(kind: Any) -> str:
    """Return what a column of this Arrow type holds."""
    from pyarrow import types

    if _is_list(kind):
        return LISTS if _is_number(kind.value_type) else f"lists of {kind.value_type}"
    inner = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(inner) or types.is_large_string(inner) or str(inner) == "string_view":
        return TEXT
    return NUMBERS if _is_number(kind) else str(kind)


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    checks = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(check(kind) for check in checks)
