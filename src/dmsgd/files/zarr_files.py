"""Arrays from Zarr stores; needs zarr (the extra `dmsgd[zarr]`)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.files.paths import chosen, readable
from dmsgd.inputs.memory import reserve
from dmsgd.inputs.messages import require


def open_zarr(file: Path, name: str | None, usual: tuple[str, ...]) -> Any:
    """Return the array of a store, or of a group the array `name`, its only or a usual one."""
    require("zarr", f"{file}: reading Zarr")
    import zarr

    with readable(file, "Zarr"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about stray files in a store, which are not asked for
        found = zarr.open(str(file), mode="r")
        group = not hasattr(found, "ndim")
        members = found.members(max_depth=None) if group else ()
        arrays = {path: member for path, member in members if hasattr(member, "ndim")}
    if group:
        return arrays[chosen(file, sorted(arrays), name, usual)]
    if name is not None:
        raise ValueError(f"{file} is a single Zarr array, no group; give it without :{name}")
    return found


def labels(file: Path, name: str | None, usual: tuple[str, ...]) -> npt.NDArray[Any]:
    """Return a whole array."""
    array = open_zarr(file, name, usual)
    with readable(file, "Zarr"):
        refuse_large_chunks(array, str(file))
        reserve(array.size * array.dtype.itemsize // 8, f"all of {file}", "use a part of the data")
        return np.asarray(array[...])


def refuse_large_chunks(array: Any, name: str) -> None:
    """Raise if one chunk, which is read as a whole, cannot be held in memory."""
    chunk = getattr(array, "shards", None) or array.chunks
    numbers = int(np.prod([float(size) for size in chunk])) * array.dtype.itemsize // 8
    reserve(numbers, f"one chunk of {name}", "store it in smaller chunks")
