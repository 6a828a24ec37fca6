"""What users pass as features becomes `Features` here: arrays, tables, tensors, paths, Dask.

Data that fit in memory (`fits_in_memory`) are read whole, others in blocks: arrays, memory maps,
Zarr arrays, and files. Dask arrays and frames stay where they are, and so do CUDA tensors. No
framework is imported: their objects are known by name.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from dmsgd.errors import InputError
from dmsgd.features.array import InMemory
from dmsgd.features.blocks import Blocks, in_blocks, is_large
from dmsgd.features.contract import Features
from dmsgd.features.readers import NpyReader, ParquetReader, Reader, SparseReader, ZarrReader
from dmsgd.files.arrays import holds_sparse, load_npy, load_npz, npz_sizes, open_zarr
from dmsgd.files.paths import FEATURE_NAMES, TABLES, find_file
from dmsgd.files.tables import read_column
from dmsgd.files.text_tables import CsvTable, JsonTable
from dmsgd.inputs.alignment import aligned
from dmsgd.inputs.arrays import as_matrix, to_numpy
from dmsgd.inputs.messages import few
from dmsgd.runtime.memory import fits_in_memory, reserve

#: Suffixes of files of features.
FEATURE_FILES = (".npy", ".npz", *TABLES, ".zarr")


def as_frozen_features(value: Any, name: str = "X") -> Features:
    """Return `value` as features that no later change of the caller's array can reach."""
    return value if isinstance(value, Features) else as_features(value, name).copied()


def as_features(
    value: Any, name: str = "X", *, allow_tiny: bool = False, takes_labels: bool = False
) -> Features:
    """Return `value` as features; `allow_tiny`: as for `as_matrix`.

    takes_labels: whether the caller has an argument `labels`, as the errors about text then say.
    """
    if isinstance(value, Features):
        return value
    if hasattr(value, "landmark_features") or hasattr(value, "eigenvectors"):
        kind = type(value).__name__
        raise TypeError(f"{name} is a {kind}, not features; pass it to dmsgd.KDPP(L, k)")
    if isinstance(value, str | os.PathLike):
        if not os.fspath(value):
            raise ValueError(f"{name} is an empty path; pass an (n, d) array, or a file of one")
        try:
            return open_features(value, allow_tiny=allow_tiny)
        except InputError as error:
            if not takes_labels:
                error.fixes.pop("labels", None)
            raise
    value = _as_frame(value)
    module = type(value).__module__.partition(".")[0]
    if module == "zarr":
        return _read_or_block(ZarrReader(value), "the Zarr array", allow_tiny)
    if module in ("dask", "dask_expr"):
        from dmsgd.features.dask import dask_features

        return dask_features(value)
    if module == "torch" and getattr(value, "is_cuda", False):
        from dmsgd.features.cuda import cuda_features

        return cuda_features(value, name, allow_tiny)
    if isinstance(value, np.memmap) and _is_large_file(value):
        return Blocks(NpyReader(value))
    array = isinstance(value, np.ndarray) or module == "torch"
    if array and is_large(raw := to_numpy(value, name)):
        return in_blocks(raw)
    try:
        matrix = as_matrix(value, name, allow_tiny=allow_tiny)
    except TypeError:
        _check_text(value, name, takes_labels)
        raise
    shared = not isinstance(value, np.ndarray) or np.may_share_memory(matrix, value)
    return InMemory(matrix, shared=shared)


def open_features(
    path: str | os.PathLike[str],
    drop: Collection[str] = frozenset(),
    *,
    named: bool = False,
    allow_tiny: bool = False,
) -> Features:
    """Return the features in a file, or in a folder of SciPy's sparse .npz files.

    path:  `archive.npz:NAME` and `store.zarr:NAME` are one array of several.
    drop:  columns of a table that are no features, as labels are.
    named: whether the user named the other columns; if not, only lists of numbers are features
           where a table has such a column.
    """
    file, name = find_file(os.fspath(path), FEATURE_FILES, folders=True)
    file, suffix = file.absolute(), file.suffix.lower()
    if suffix in TABLES and name is not None:
        raise ValueError(f"{path}: features are all columns of a table; give the file alone")
    if drop and suffix not in TABLES:
        raise ValueError(f"{path} has no columns to drop {few(drop)} from; only tables do")
    found: Any
    if suffix == ".parquet":
        found = ParquetReader(file, drop, named)
    elif suffix in TABLES:
        table = JsonTable(file) if suffix == ".jsonl" else CsvTable(file)
        found = table.numbers(drop, named)
    elif suffix == ".zarr":
        array = open_zarr(file, name, FEATURE_NAMES)
        found = ZarrReader(array, str(file) + f":{name}" * (name is not None))
    elif suffix == ".npy":
        found = load_npy(file)
        if found.ndim == 2 and found.size and found.flags.c_contiguous:
            found = NpyReader(found)
        else:
            advice = "save it in C order: np.save(path, np.ascontiguousarray(X))"
            reserve(found.size, f"all of {file}", advice)
    elif suffix == ".npz" and (name is not None or not holds_sparse(npz_sizes(file))):
        found = load_npz(file, name, FEATURE_NAMES)
    else:
        found = SparseReader(file)
    if isinstance(found, Reader):
        return _read_or_block(found, str(path), allow_tiny)
    return InMemory(as_matrix(found, str(path), allow_tiny=allow_tiny))


def _read_or_block(reader: Reader, name: str, allow_tiny: bool) -> Features:
    """Return the rows of a reader: in memory if they fit, otherwise in blocks."""
    if not fits_in_memory(reader.bytes):
        return Blocks(reader)
    advice = "free some; with a smaller DMSGD_MEMORY it is read in blocks"
    reserve(reader.bytes // 8, f"all of {name}", advice)
    return InMemory(as_matrix(reader.read(0, reader.n), name, allow_tiny=allow_tiny))


def split_label_column(X: Any, labels: Any) -> tuple[Any, Any]:
    """Return X and the labels; labels that name a column of X are taken out of it.

    For a name X may be the path of a table, a frame of pandas, polars or Dask, an Arrow table or a
    Hugging Face dataset. Labels that are a Series are `aligned` with the rows of a frame.
    """
    if not isinstance(labels, str):
        return X, aligned(labels, X, "labels")
    X = _as_frame(X)
    if isinstance(X, str | os.PathLike):
        if Path(X).suffix.lower() not in TABLES:
            raise ValueError(
                f"labels={labels!r} names a column, but {os.fspath(X)} is no table "
                f"({', '.join(TABLES)}); pass an array with the class of each item"
            )
        return open_features(X, {labels}), read_column(f"{os.fspath(X)}:{labels}")
    names = _column_names(X)
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
    others = [name for name in names if name != labels]
    rest = X.select(others) if hasattr(X, "column_names") else X[others]
    return rest, to_numpy(X[labels], "labels")


def _as_frame(value: Any) -> Any:
    """Return a Hugging Face dataset as an Arrow table, and a query of polars as its result."""
    module = type(value).__module__.partition(".")[0]
    if module == "datasets" and hasattr(value, "with_format") and hasattr(value, "__len__"):
        return value.with_format("arrow")[:]
    return value.collect() if module == "polars" and hasattr(value, "collect") else value


def _column_names(frame: Any) -> list[Any]:
    """Return the names of the columns of a frame or an Arrow table, and none for anything else."""
    names = getattr(frame, "column_names", getattr(frame, "columns", ()))
    return [] if callable(names) or isinstance(frame, type) else list(names)


def _check_text(frame: Any, name: str, takes_labels: bool) -> None:
    """Raise an error that names the columns of text, if a frame has any."""
    found = [column for column in _column_names(frame) if _has_text(to_numpy(frame[column], name))]
    if found:
        columns, them = ("column", "it") if len(found) == 1 else ("columns", "them")
        labels = f"pass labels={found[0]!r} if that is the class of the items, " * takes_labels
        raise TypeError(
            f"{name} holds text in its {columns} {few(map(repr, found))}; {labels}encode {them} "
            f"as numbers (pandas.get_dummies, scikit-learn's OneHotEncoder), or drop {them}"
        ) from None


def _has_text(entries: Any) -> bool:
    """Return whether these entries of a column are text, or some of them."""
    text = entries.dtype.kind in "UST"
    return text or any(isinstance(each, str) for each in entries.flat)


def _is_large_file(array: np.memmap[Any, Any]) -> bool:
    """Return whether this is all of a .npy file in C order that is read in blocks."""
    whole = array.base is None or not isinstance(array.base, np.memmap)
    rows = array.ndim == 2 and array.flags.c_contiguous and array.filename is not None
    return whole and rows and not fits_in_memory(8 * array.size)
