"""Arrays from .npy and .npz files, NumPy's and SciPy's sparse ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dmsgd.files.paths import readable


def load_npy(file: Path) -> npt.NDArray[Any]:
    """Return the array of a .npy file as a memory map."""
    with readable(file, "NumPy"):
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{file} is an archive of arrays; rename it to {file.stem}.npz")
    return array


def load_npz(file: Path, name: str | None, usual: tuple[str, ...]) -> Any:
    """Return the array `name` of an archive, its only one, one of a usual name, or CSR."""
    with open(file, "rb") as stream:  # np.load(path) leaves a broken archive open
        with readable(file, "NumPy"):
            archive = np.load(stream, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError(f"{file} is a single array; rename it to {file.stem}.npy")
        held = list(archive.files)
        if name is None and {"format", "shape", "data"} <= set(held):
            return _sparse(file)
        if name is None:
            found = held if len(held) == 1 else [n for n in usual if n in held]
            name = found[0] if found else None
        if name not in held:
            raise ValueError(
                f"{file} holds the arrays {', '.join(held) or '(none)'}; "
                f"select one as {file.name}:NAME"
            )
        with readable(file, "NumPy"):
            return archive[name]


def _sparse(file: Path) -> Any:
    from scipy import sparse

    with readable(file, "SciPy sparse"):
        matrix = sparse.csr_array(sparse.load_npz(file))
        matrix.check_format(full_check=True)  # compiled code follows the indices unchecked
    return matrix
