"""Training on epochs of batches, and how far their gradients are from that of all items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.partitions.arms import Drawn, GraB
from dmsgd.paper.partitions.tasks import Task

#: The loss of a run that was lost.
LOST = 1e6


def train(
    task: Task, epochs: Drawn | GraB, length: int, rate: float, looks: Sequence[float] = ()
) -> tuple[FloatArray, FloatArray]:
    """Return the weights after `length` epochs, and the loss after each of the epochs `looks`.

    The rate, in units of 1/L, falls in a line to 0 at the end.
    """
    weights, errors, found, step = task.start(), None, [], 0
    count = task.n // task.k
    at = {max(1, round(look * count)) for look in looks}
    with np.errstate(over="ignore", invalid="ignore"):  # rates that are too large are tried, too
        for number in range(length):
            batches = epochs.epoch(number, errors)
            errors = np.empty_like(task.T)
            for batch in batches:
                share = rate / task.curvature * (1 - step / (length * count))
                error = task.errors(weights, batch)
                errors[batch] = error
                slope = task.A[batch].T @ (error / task.k)
                weights -= share * (slope + task.ridge * weights)
                step += 1
                if step in at:
                    found.append(bounded(task.loss(weights)))
    return weights, np.array(found)


def bounded(loss: float) -> float:
    """Return the loss, LOST where it is more or no number."""
    return loss if loss < LOST else LOST


def deviations(
    task: Task, epochs: Drawn | GraB, weights: FloatArray, first: int, count: int
) -> FloatArray:
    """Return squared errors over those of uniform batches: of a batch, a quarter, half an epoch.

    They are means over `count` epochs after the first ones, at fixed weights. Uniform batches have
    σ²/k (n - k)/(n - 1), and the mean of m independent ones an m-th of it, without any drawing.
    """
    errors = task.errors(weights, slice(None))
    mean = task.A.T @ errors / task.n
    size = np.einsum("ij,ij->i", task.A, task.A) @ np.einsum("ij,ij->i", errors, errors)
    spread = float(size) / task.n - float(np.sum(mean * mean))
    plain = spread / task.k * (task.n - task.k) / (task.n - 1)
    parts, found = task.n // task.k, []
    for number in range(first + count):
        batches = epochs.epoch(number, None if number == 0 else errors)
        if number >= first:
            away = np.array([task.A[b].T @ errors[b] / task.k - mean for b in batches])
            away = away.reshape(parts, -1)
            row = [float(np.einsum("ij,ij->", away, away)) / parts]
            for part in (parts // 4, parts // 2):
                row.append(float(np.sum(away[:part].mean(axis=0) ** 2)) * part)
            found.append(np.array(row) / plain)
    return np.asarray(np.mean(found, axis=0))
