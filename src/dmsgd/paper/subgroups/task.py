"""Digits by parity, some of them rare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.subgroups.result import Config

if TYPE_CHECKING:
    from dmsgd.datasets import Images


@dataclass(frozen=True, eq=False)
class Task:
    """Pixels in 0..1, parity y, and digits numbered by rank: 0..4 even, 5..9 odd, rarest last."""

    X: FloatArray
    y: IntArray
    digit: IntArray
    test_X: FloatArray
    test_digit: IntArray
    valid_X: FloatArray
    valid_y: IntArray


def sizes(config: Config) -> IntArray:
    """Return the training items of each digit: even from the commonest, then odd."""
    even = config.largest * config.ratio ** (-np.arange(5) / 4)
    return np.asarray(np.rint(np.concatenate([even, config.minority * even])), dtype=np.int64)


def make_task(config: Config, data: Images, seed: int) -> Task:
    """Return the items of a seed; validation items are as rare as training items."""
    rng = np.random.default_rng([seed, 20])
    digits = np.concatenate([rng.permutation([0, 2, 4, 6, 8]), rng.permutation([1, 3, 5, 7, 9])])
    chosen, spare, test = [], [], []
    for digit, size in zip(digits, sizes(config), strict=True):
        items = rng.permutation(np.flatnonzero(data.y_train == digit))
        chosen.append(items[:size])
        spare.append(items[size : 2 * size])
        test.append(rng.permutation(np.flatnonzero(data.y_test == digit))[: config.test_per_digit])

    def ranks(parts: list[IntArray]) -> IntArray:
        return np.repeat(np.arange(10), [part.size for part in parts])

    def pixels(images: object, parts: list[IntArray]) -> FloatArray:
        rows = np.asarray(images)[np.concatenate(parts)]
        pooled = rows.reshape(len(rows), 14, 2, 14, 2).mean(axis=(2, 4))
        return np.asarray(pooled.reshape(len(rows), -1) / 255, dtype=np.float32)

    rank = ranks(chosen)
    return Task(
        pixels(data.x_train, chosen), rank // 5, rank,
        pixels(data.x_test, test), ranks(test),
        pixels(data.x_train, spare), ranks(spare) // 5,
    )  # fmt: skip
