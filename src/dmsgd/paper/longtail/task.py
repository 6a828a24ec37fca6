"""The long-tailed digits of a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.longtail.result import Config


@dataclass(frozen=True, eq=False)
class Task:
    """One draw of the data: features in [0, 1], labels numbered from the commonest class."""

    X: FloatArray
    y: IntArray
    test_X: FloatArray
    test_y: IntArray


def class_sizes(config: Config, classes: int = 10) -> IntArray:
    """Return the number of training items of each class, commonest first."""
    sizes = config.largest * config.decay ** np.arange(classes)
    return np.asarray(np.rint(sizes), dtype=np.int64)


def make_task(config: Config, seed: int) -> Task:
    """Return the long-tailed training set and the balanced test set of this seed."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng([seed, 0])
    train, test = [], []
    for size, digit in zip(class_sizes(config), rng.permutation(10), strict=True):
        items = rng.permutation(np.flatnonzero(digits == digit))
        test.append(items[: config.test_per_class])
        train.append(items[config.test_per_class :][:size])
    y, test_y = (
        np.repeat(np.arange(10), [part.size for part in parts]).astype(np.int64)
        for parts in (train, test)
    )
    X, test_X = (pixels[np.concatenate(parts)] / 16 for parts in (train, test))
    return Task(X, y, test_X, test_y)
