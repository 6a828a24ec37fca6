"""Softmax regression on labelled features: the task, and training on given batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.flowers.result import Config
from dmsgd.paper.models import softmax

if TYPE_CHECKING:
    from dmsgd.datasets import Flowers


@dataclass(frozen=True, eq=False)
class Task:
    """X of unit rows for the kernel; inputs in float32 for the classifier; one-hot targets."""

    X: FloatArray
    y: IntArray
    inputs: FloatArray
    targets: FloatArray
    test: tuple[FloatArray, IntArray]
    valid: tuple[FloatArray, IntArray]

    def only(self, items: IntArray) -> Task:
        """Return the task with fewer training items."""
        chosen = self.X[items], self.y[items], self.inputs[items], self.targets[items]
        return Task(*chosen, self.test, self.valid)


def make_task(config: Config, data: Flowers) -> Task:
    """Return the swapped split, kernel features of unit rows and the classifier's inputs."""
    X = np.asarray(dmsgd.normalize(data.X))
    train, test, valid = (data.split == part for part in ("test", "train", "valid"))
    inputs = config.length * X
    if config.centre:
        inputs -= inputs[train].mean(axis=0)
    inputs = inputs.astype(np.float32)
    y = data.y
    targets = np.eye(int(y.max()) + 1, dtype=np.float32)[y[train]]
    return Task(
        X[train], y[train], inputs[train], targets,
        (inputs[test], y[test]), (inputs[valid], y[valid]),
    )  # fmt: skip


def steps_at(epochs: Sequence[float] | FloatArray, task: Task, k: int) -> IntArray:
    """Return the numbers of steps, at least one, that batches of k need for some epochs."""
    return np.maximum(1, np.rint(np.asarray(epochs) * task.y.size / k)).astype(np.int64)


def train(
    task: Task,
    batches: IntArray,
    checkpoints: IntArray,
    rates: FloatArray,
    item_weights: FloatArray | None,
    seed: int,
    judge: tuple[FloatArray, IntArray],
) -> tuple[FloatArray, float]:
    """Return accuracy on `judge` at every checkpoint, and the CPU seconds of all updates."""
    weights = start(task, seed)
    accuracy, seconds, first = [], 0.0, 0
    for last in checkpoints:
        begun = process_time()
        part = slice(first, last)
        weights = softmax.train(
            weights, task.inputs, task.targets, batches[part], rates[part], item_weights
        )
        seconds += process_time() - begun
        accuracy.append(np.mean(softmax.predict(weights, judge[0]) == judge[1]))
        first = last
    return np.array(accuracy), seconds


def start(task: Task, seed: int) -> FloatArray:
    """Return the random start of a seed, in float32."""
    rng = np.random.default_rng([seed, 1])
    shape = task.inputs.shape[1], task.targets.shape[1]
    return softmax.initial_weights(*shape, rng).astype(np.float32)
