"""Tell features that are to be read in blocks from those that fit in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from dmsgd.inputs.memory import memory_limit
from dmsgd.streams.rows import Rows


def as_rows(value: Any) -> Rows | None:
    """Return `value` as rows to be read in blocks, or None if it is to be held in memory.

    Read in blocks are: paths of .npy, .zarr and .parquet files; Zarr and Dask arrays and Dask data
    frames; memory-mapped arrays that would take more than an eighth of the memory as float64.
    """
    if isinstance(value, Rows):
        return value
    if isinstance(value, str | os.PathLike):
        return open_rows(value)
    if isinstance(value, np.memmap):
        return _mapped(value)
    kind = type(value).__module__.partition(".")[0]
    if kind == "zarr":
        from dmsgd.streams.files import ZarrRows

        return ZarrRows(value)
    if kind in ("dask", "dask_expr"):
        from dmsgd.streams.cluster import DaskRows

        return DaskRows(value)
    return None


def _mapped(array: np.memmap[Any, Any]) -> Rows | None:
    whole = array.base is None or not isinstance(array.base, np.memmap)
    if not whole or array.ndim != 2 or 8 * array.size <= memory_limit() // 8:
        return None
    from dmsgd.streams.files import NpyRows

    return NpyRows(array)


def open_rows(path: str | os.PathLike[str], drop: str | None = None) -> Rows:
    """Return the features in a .npy, .zarr or .parquet file as rows to be read in blocks.

    `drop` is the column of a table that is no feature.
    """
    from dmsgd.files.numpy_files import load_npy
    from dmsgd.streams.files import NpyRows, ParquetRows, ZarrRows

    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    kind = file.suffix.lower()
    if kind == ".npy":
        return NpyRows(load_npy(file))  # type: ignore[arg-type]
    if kind == ".parquet":
        return ParquetRows(file, drop)
    if kind == ".zarr":
        return ZarrRows(_open_zarr(file))
    raise ValueError(f"{file}: only .npy, .zarr and .parquet files are read in blocks")


def _open_zarr(file: Path) -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError(f"{file}: reading Zarr needs zarr; pip install 'dmsgd[zarr]'") from None
    found = zarr.open(str(file), mode="r")
    if not hasattr(found, "ndim"):
        raise ValueError(f"{file} is a Zarr group; give the path of one of its arrays")
    return found
