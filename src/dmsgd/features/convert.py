"""The door: whatever users pass as features becomes `Features` here, and only here.

Arrays of any kind that fits in memory, SciPy sparse matrices, pandas and polars frames, torch CPU
tensors, lists, and paths of .npz files (or file.npz:NAME), .csv and .tsv are held in memory. Read
in blocks are: paths of .npy, .zarr (or store.zarr:NAME) and .parquet files, and of folders of
SciPy's sparse .npz files; Zarr arrays; memory maps that would take more than an eighth of the
memory as float64, and sparse .npz files that do, unless they are compressed; arrays and tensors
that would take more than a quarter of it; and Dask arrays, data frames and lists of delayed sparse
matrices, where they are. CUDA tensors stay on their card.
No framework is imported: theirs are recognised by name.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dmsgd.features.interface import Features
from dmsgd.features.resident import held
from dmsgd.inputs.arrays import as_matrix, to_numpy
from dmsgd.inputs.memory import memory_limit
from dmsgd.inputs.messages import few


def as_features(value: Any, name: str = "X", *, allow_tiny: bool = False) -> Features:
    """Return `value` as features; `allow_tiny`: as for `as_matrix`."""
    if isinstance(value, Features):
        return value
    if isinstance(value, str | os.PathLike):
        from dmsgd.files.paths import split

        if not os.fspath(value):
            raise ValueError(f"{name} is an empty path; pass an (n, d) array, or a file of one")

        kind = split(os.fspath(value))[0].suffix.lower()
        if kind in (".csv", ".tsv"):
            return _in_text(os.fspath(value))
        if kind == ".npy":
            return _in_npy(os.fspath(value))
        return _in_archive(os.fspath(value)) if kind == ".npz" else open_features(value)
    if isinstance(value, np.memmap) and _is_large(value):
        from dmsgd.features.blocks import Blocks
        from dmsgd.features.files import NpyStore

        return Blocks(NpyStore(value))
    module = type(value).__module__.partition(".")[0]
    if module == "zarr":
        from dmsgd.features.blocks import Blocks
        from dmsgd.features.files import ZarrStore

        return Blocks(ZarrStore(value))
    if module in ("dask", "dask_expr") or _any_delayed(value):
        from dmsgd.features.blocks import Blocks
        from dmsgd.features.cluster import dask_store

        return Blocks(dask_store(value))
    if module == "torch" and getattr(value, "is_cuda", False):
        from dmsgd.features.device import on_card

        return on_card(value, name, allow_tiny)
    if isinstance(value, np.ndarray) or module == "torch":
        from dmsgd.features.blocks import Blocks
        from dmsgd.features.large import ArrayStore, is_large

        if is_large(raw := to_numpy(value, name)):
            return Blocks(ArrayStore(raw))
    try:
        matrix = as_matrix(value, name, allow_tiny=allow_tiny)
    except TypeError:
        _refuse_text(value, name)
        raise
    return held(matrix, shared=_shared(matrix, value))


def _in_text(path: str) -> Features:
    """Return the features in a .csv or .tsv file, in memory."""
    from dmsgd.files.csv_files import numbers
    from dmsgd.files.paths import existing

    file, name = existing(path, (".csv", ".tsv"))
    if name is not None:
        raise ValueError(f"{path}: features are all columns of a table; give the file alone")
    return as_features(numbers(file), str(file))


def _in_npy(path: str) -> Features:
    """Return the features in a .npy file, in blocks; in memory if it goes column by column."""
    from dmsgd.files.numpy_files import load_npy
    from dmsgd.files.paths import existing

    array = load_npy(existing(path, (".npy",))[0])
    by_columns = array.ndim == 2 and not array.flags.c_contiguous
    return as_features(array, path) if by_columns else open_features(path)


def named_columns(frame: Any) -> list[Any]:
    """Return the names of the columns of a frame, and none for anything else."""
    names = getattr(frame, "columns", ())
    return [] if callable(names) or isinstance(frame, type) else list(names)


def _refuse_text(frame: Any, name: str) -> None:
    """Raise if a frame has a column of text, and say which."""
    for column in named_columns(frame):
        entries = to_numpy(frame[column], name)
        if entries.dtype.kind in "UST" or any(isinstance(each, str) for each in entries.flat):
            raise TypeError(
                f"{name} holds text in its column {column!r}; if it is the class of the items, "
                f"pass labels={column!r}, otherwise encode it as numbers (one-hot, tf-idf) or drop "
                f"column {column!r}"
            ) from None


def _in_archive(path: str) -> Features:
    """Return the features in a .npz file, in memory; SciPy's large ones in blocks."""
    from dmsgd.files.numpy_files import load_npz
    from dmsgd.files.paths import USUAL_NAMES, existing
    from dmsgd.files.sparse_files import is_large_sparse

    file, name = existing(path, (".npz",))
    if name is None and is_large_sparse(file):
        return open_features(path)
    return as_features(load_npz(file, name, USUAL_NAMES), path)


def open_features(
    path: str | os.PathLike[str], drop: Collection[str] = (), *, on_cluster: bool = False
) -> Features:
    """Return the features in a file, or in a folder of sparse .npz files, to be read in blocks.

    path:       `store.zarr:NAME` is one array of a group.
    drop:       the columns of a table that are no features.
    on_cluster: let the workers of a Dask cluster read them, who must see the file.
    """
    from dmsgd.features.blocks import Blocks
    from dmsgd.features.opening import open_store
    from dmsgd.files.paths import split

    file, name = split(os.fspath(path))
    store = open_store(file, drop, name)
    if on_cluster:
        from dmsgd.features.cluster import SharedFileStore

        return Blocks(SharedFileStore(store))
    return Blocks(store)


def _any_delayed(value: Any) -> bool:
    """Return whether this is a list of what Dask is to compute."""
    parts = value if isinstance(value, list | tuple) else ()
    return any(type(part).__module__ == "dask.delayed" for part in parts)


def _is_large(array: np.memmap[Any, Any]) -> bool:
    whole = array.base is None or not isinstance(array.base, np.memmap)
    return whole and array.ndim == 2 and 8 * array.size > memory_limit() // 8


def _shared(matrix: Any, value: Any) -> bool:
    """Return whether a conversion may have left the caller's memory in use."""
    if isinstance(value, np.ndarray):
        return np.may_share_memory(matrix, value)
    if getattr(value, "format", "") != "csr":  # other kinds of sparse matrices are converted
        return not (isinstance(value, list | tuple) or sparse.issparse(value))
    parts = ("data", "indices", "indptr")
    return any(np.may_share_memory(getattr(matrix, p), getattr(value, p)) for p in parts)


def split_label_column(X: Any, labels: Any) -> tuple[Any, Any]:
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
    return X[[name for name in names if name != labels]], to_numpy(X[labels], "labels")


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
        return as_features(tables.numbers(file, (name,)), str(file)), y
    return open_features(file, (name,)), y
