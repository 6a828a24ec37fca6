"""Oxford-102 flowers as features of a network trained on ImageNet.

8,189 images of 102 kinds of flowers (Nilsback and Zisserman, 2008). The paper used the first fully
connected layer of VGG16; here are two stand-ins:

    "efficientnet"  1,280 features: the penultimate layer of EfficientNet-Lite2
    "vgg19"         2,048 features: VGG19's last convolutional block, averaged to 2 x 2 places

The official split has 1,020 images for training, 10 of each kind, and 6,149 for testing, 20 to 238
of each. The paper swaps the two: train on split == "test" and test on split == "train".
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from experiments.datasets.files import VARIABLE, load_arrays, locate

FILES = {
    "efficientnet": "flowers102/features.npz",
    "vgg19": "flowers102/features_vgg19_pool5.npz",
}


@final
@dataclass(frozen=True, eq=False)
class Flowers:
    """Features X (8189, d) in float32, classes y from 0, the official split, the class names."""

    X: npt.NDArray[np.float32]
    y: np.ndarray
    split: npt.NDArray[np.str_]
    names: tuple[str, ...]

    def part(self, split: str) -> tuple[Any, np.ndarray]:
        """Return (X, y) of one part: "train", "valid" or "test"."""
        chosen = self.split == split
        return self.X[chosen], self.y[chosen]


def flowers(
    data_dir: str | os.PathLike[str] | None = None, features: str = "efficientnet"
) -> Flowers:
    """Return the features of all images; `features` is "efficientnet" or "vgg19"."""
    if features not in FILES:
        raise ValueError(f"unknown features {features!r}; use {' or '.join(map(repr, FILES))}")
    path = locate(FILES[features], data_dir, _say_how)
    X, y, split, names = load_arrays(path, ("X", "y", "split", "class_names")).values()
    return Flowers(X.astype(np.float32), y.astype(np.int64), split, tuple(names.tolist()))


def _say_how(path: Path) -> None:
    """Raise: features are computed from images, which are not fetched behind your back."""
    raise FileNotFoundError(
        f"the features of Oxford-102 are nowhere to be fetched: compute them from the images "
        f"(https://www.robots.ox.ac.uk/~vgg/data/flowers/102/, files 102flowers.tgz, "
        f"imagelabels.mat, setid.mat) with a network trained on ImageNet, and save "
        f"np.savez({path}, X=(8189, d) features in the order of the image numbers, y=labels - 1, "
        f"split='train', 'valid' or 'test' for each image, class_names=102 names); "
        f"or name a folder that holds {path.parent.name}/{path.name} with data_dir or {VARIABLE}"
    )
