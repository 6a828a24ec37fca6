"""Which store the rows of a path are read by."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dmsgd.features.files import FileStore, NpyStore, ParquetStore, ZarrStore
from dmsgd.features.sparse_store import SparseStore, in_folder
from dmsgd.files.numpy_files import load_npy
from dmsgd.files.paths import USUAL_NAMES
from dmsgd.files.zarr_files import open_zarr


def open_store(file: Path, drop: Collection[str] = (), name: str | None = None) -> FileStore:
    """Return the rows of a .npy, .zarr or .parquet file, of a sparse .npz, or a folder of these.

    drop: columns that are no features.
    name: which array of a Zarr group.
    """
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    if not (file.is_file() or file.is_dir()):
        raise ValueError(f"{file} is a device or a pipe; give a file")
    file = file.absolute()  # it is read again after the process may have changed its folder
    kind = file.suffix.lower()
    if kind == ".zarr":
        return ZarrStore(
            open_zarr(file, name, USUAL_NAMES), str(file) + f":{name}" * (name is not None)
        )
    if file.is_dir() and kind not in (".npy", ".npz", ".parquet"):
        return SparseStore(in_folder(file), str(file))
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder; give a file")
    if kind == ".npy":
        return NpyStore(load_npy(file))
    if kind == ".parquet":
        return ParquetStore(file, drop)
    if kind == ".npz" and name is None:
        return SparseStore([file], str(file))
    raise ValueError(
        f"{file}: only .npy, .zarr and .parquet files, SciPy's sparse .npz files and folders of "
        f"these are read in blocks"
    )
