"""Two pictures as functions of coordinates: an elevation map and a photograph.

They come with other packages: the map of the Jacksboro fault (344 x 403, USGS) with matplotlib,
the photograph of the Summer Palace (427 x 640, by Li Zhenyu) with scikit-learn, both free to use.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from experiments.datasets.files import load_arrays, locate, write_whole

NAMES = ("elevation", "photograph")


def picture(name: str, data_dir: str | os.PathLike[str] | None = None) -> np.ndarray:
    """Return a picture of NAMES with values in 0..1, shape (height, width, channels), float32.

    The photograph is halved: 213 x 320 means of four pixels.
    """
    if name not in NAMES:
        raise ValueError(f"unknown picture {name!r}; use {' or '.join(NAMES)}")
    path = locate(f"pictures/{name}.npz", data_dir, _fill)
    raw = load_arrays(path, ["values"])["values"].astype(np.float32)
    raw -= raw.min()
    return np.asarray(raw / raw.max())


def _fill(path: Path) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, values=_elevation() if path.stem == NAMES[0] else _photograph())
    write_whole(path, content.getvalue())


def _elevation() -> np.ndarray:
    from matplotlib import cbook

    with cbook.get_sample_data("jacksboro_fault_dem.npz") as found:
        return np.asarray(found["elevation"])[..., None]


def _photograph() -> np.ndarray:
    from sklearn.datasets import load_sample_image

    whole = load_sample_image("china.jpg")[:426].astype(np.float32)
    return np.asarray(whole.reshape(213, 2, 320, 2, 3).mean(axis=(1, 3)))
