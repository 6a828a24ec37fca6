"""Tables whose columns have names, frames and files: one column may be the labels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dmsgd.features.door import named_columns, open_features, recognise
from dmsgd.inputs.arrays import as_dense
from dmsgd.inputs.texts import few


def separated(X: Any, labels: Any) -> tuple[Any, Any]:
    """Return X and the labels; where these are the name of a column of X, it is taken out of X.

    X may then be the path of a table, or a frame of pandas, polars or Dask.
    """
    if not isinstance(labels, str):
        return X, labels
    if isinstance(X, str | os.PathLike):
        return _of_file(Path(os.fspath(X)), labels)
    names = named_columns(X)
    if not names:
        raise TypeError(
            f"labels={labels!r} names a column, but X is a {type(X).__name__} without names; pass "
            f"an array with the class of each item"
        )
    if names.count(labels) != 1:
        raise ValueError(
            f"labels={labels!r} must name one column of X, which has {names.count(labels)} of that "
            f"name; it has {few(names)}"
        )
    return X[[name for name in names if name != labels]], as_dense(X[labels], "labels")


def _of_file(path: Path, name: str) -> tuple[Any, Any]:
    from dmsgd.files import tables
    from dmsgd.files.paths import column_number, existing

    if path.suffix.lower() not in tables.TABLES:
        raise ValueError(
            f"labels={name!r} names a column, but {path} is no table ({', '.join(tables.TABLES)}); "
            f"pass an array with the class of each item"
        )
    file, _ = existing(path, tables.TABLES)
    column_number(file, tables.column_names(file), name)
    y = tables.labels(file, name)
    if tables.is_text_table(file):
        return recognise(tables.numbers(file, (name,)), str(file)), y
    return open_features(file, (name,)), y
