"""Features and labels from files: .npy, .npz (NumPy or SciPy sparse), tables, .zarr, .txt.

Features may be a folder of SciPy's sparse .npz files, too.

`file:NAME` names one array of an .npz archive or a Zarr group, or one column of a table. A column
of a CSV file without a header is named by its number, from 1. Tables are .csv, .tsv and .parquet.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy.typing as npt

from dmsgd.features import Features, as_features
from dmsgd.features.convert import open_features
from dmsgd.files import csv_files, parquet_files, tables, zarr_files
from dmsgd.files.numpy_files import load_npy, load_npz
from dmsgd.files.paths import USUAL_NAMES, existing
from dmsgd.files.sparse_files import is_large_sparse
from dmsgd.files.tables import TABLES, is_text_table
from dmsgd.inputs.labels import as_labels
from dmsgd.inputs.memory import memory_limit

LABEL_FILES = (".npy", ".npz", *TABLES, ".zarr", ".txt")
#: Which array of several is taken for the labels.
LABEL_NAMES = ("y", "labels", "label")
FEATURE_FILES = (".npy", ".npz", *TABLES, ".zarr")


def load_features(path: str | Path, drop: Collection[str] = ()) -> Features:
    """Return the features in the file at `path`.

    .zarr files, folders of SciPy's sparse .npz files, and .npy, .parquet and such .npz files that
    would take more than an eighth of the memory, are read in blocks. Smaller .npy files of float64
    stay on disk as a memory map. `drop`: columns of a table that are no features, as labels are.
    """
    if _is_folder(path) and not drop:
        return open_features(path)
    file, name = existing(path, FEATURE_FILES)
    kind = file.suffix.lower()
    value: Any
    if kind in TABLES:
        if name is not None:
            raise ValueError(f"{path}: features are all columns of a table; give the file alone")
        if not is_text_table(file) and 8 * parquet_files.entries(file, drop) > memory_limit() // 8:
            return open_features(file, drop)
        value = tables.numbers(file, drop)
    elif drop:
        raise ValueError(f"{path} has no columns to drop {', '.join(drop)} from; only tables do")
    elif kind == ".zarr" or (kind == ".npz" and name is None and is_large_sparse(file)):
        return open_features(path)
    else:
        value = load_npy(file) if kind == ".npy" else load_npz(file, name, USUAL_NAMES)
    if value.ndim == 1:
        raise ValueError(
            f"{path} has shape {value.shape}, features need (items, features); "
            f"save a single feature as X.reshape(-1, 1)"
        )
    return as_features(value, str(path))


def _is_folder(path: str | Path) -> bool:
    """Return whether this is a folder, and not one that is named like a file."""
    return os.path.isdir(path) and Path(path).suffix.lower() not in FEATURE_FILES


def load_labels(path: str | Path, n: int | None = None) -> npt.NDArray[Any]:
    """Return the labels in the file at `path`, a 1-D array: whole numbers or text.

    `n`, the number of items, tells a header from a label when a CSV file holds text: a first line
    that occurs nowhere else is the header if there is one line too many.
    """
    file, name = existing(path, LABEL_FILES)
    kind = file.suffix.lower()
    value: Any
    if kind == ".txt":
        with csv_files.open_text(file) as text:
            value = csv_files.typed(file, text.read().rstrip().splitlines())
    elif kind in TABLES:
        value = tables.labels(file, name, n)
    elif kind == ".zarr":
        value = zarr_files.labels(file, name, LABEL_NAMES)
    else:
        value = load_npy(file) if kind == ".npy" else load_npz(file, name, LABEL_NAMES)
    return as_labels(value, name=str(path))
