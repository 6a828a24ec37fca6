"""Training at many rates at once, and the steps it takes to a given loss."""

from __future__ import annotations

import numpy as np

from experiments.repulsion.models import Model

#: The loss is measured after steps that grow by this factor, and is the mean of so many
#: measurements: one that is low by luck does not count.
GROWTH, SMOOTHED = 1.07, 4
#: A run whose loss is this many times that of the start is given up.
LOST = 1e3


def checkpoints(steps: int) -> np.ndarray:
    """Return the steps after which the loss is measured; the last is `steps`."""
    count = int(np.log(steps) / np.log(GROWTH)) + 1
    return np.unique(np.append(GROWTH ** np.arange(count), steps).astype(int))


def descend(model: Model, batches: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the excess loss over that of the start, shape (checkpoints, streams, rates).

    batches (steps, streams, k); rates in units of 1/L. The loss of a stream that diverged is inf.
    """
    steps, streams, _ = batches.shape
    at, begun = set(checkpoints(steps).tolist()), float(model.excess(model.start))
    theta = np.tile(model.start, (streams, rates.size, 1))
    step = (rates / model.curvature)[:, None]
    lost, found = np.zeros((streams, rates.size), dtype=bool), []
    for t, batch in enumerate(batches, 1):
        theta -= step * model.gradient(theta, batch)
        if t in at:
            left = model.excess(theta) / begun
            lost |= ~(left < LOST)
            theta[lost] = model.start
            found.append(np.where(lost, np.inf, left))
    return np.array(found)


def smooth(curves: np.ndarray) -> np.ndarray:
    """Return the mean of each checkpoint and those before it, SMOOTHED in all."""
    padded = np.concatenate([np.repeat(curves[:1], SMOOTHED - 1, axis=0), curves])
    return np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED, axis=0).mean(axis=-1)


def steps_to(level: float, curves: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the first of the steps `at` with a loss of `level` or below; else the last."""
    below = curves <= level
    return at[np.where(below.any(axis=0), below.argmax(axis=0), -1)].astype(float)


def best(costs: np.ndarray) -> int:
    """Return the number of the least cost, by geometric means with its two neighbours.

    So no single lucky rate is chosen.
    """
    logs = np.pad(np.log(costs), 1, mode="edge")
    return int((logs[:-2] + logs[1:-1] + logs[2:]).argmin())
