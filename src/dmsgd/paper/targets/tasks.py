"""Two long-tailed tasks: Oxford-102 and the digits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.flowers.result import Config as FlowersConfig
from dmsgd.paper.flowers.training import Task
from dmsgd.paper.flowers.training import make_task as make_flowers
from dmsgd.paper.longtail.result import Config as DigitsConfig
from dmsgd.paper.longtail.task import make_task as make_digits
from dmsgd.paper.targets.result import Config

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers


def flowers_task(config: Config, data: Flowers) -> Task:
    """Return the paper's task; the kernel sees the leading directions of the unit rows."""
    task = make_flowers(FlowersConfig(), data)
    _, U = np.linalg.eigh(task.X.T @ task.X)
    return replace(task, X=task.X @ U[:, -config.directions :])


def digits_task(seed: int) -> Task:
    """Return the long-tailed digits of a seed."""
    task = make_digits(DigitsConfig(), seed)
    judge = _single(task.test_X), task.test_y
    X = np.asarray(dmsgd.normalize(task.X))
    return Task(X, task.y, _single(task.X), _single(np.eye(10)[task.y]), judge, judge)


def _single(array: FloatArray) -> FloatArray:
    """Return the numbers in float32: training is twice as fast."""
    return np.asarray(array, dtype=np.float32)
