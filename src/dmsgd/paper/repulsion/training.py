"""Stochastic gradient descent at many rates at once, and the steps it takes to a given loss."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.repulsion.models import Model

#: The loss is looked at after steps that grow by this factor, and is the mean of so many looks:
#: one that is low by luck does not count.
GROWTH, LOOKS = 1.07, 4
#: A run whose loss is this many times that of the start is given up.
LOST = 1e3


def looks(steps: int) -> IntArray:
    """Return the steps after which the loss is looked at; the last is `steps`."""
    count = int(np.log(steps) / np.log(GROWTH)) + 1
    return np.unique(np.append(GROWTH ** np.arange(count), steps).astype(np.int64))


def descend(
    model: Model, batches: IntArray, rates: FloatArray, decayed: bool = False
) -> FloatArray:
    """Return the excess loss over that of the start, shape (looks, streams, rates).

    batches: (steps, streams, k).
    rates:   in units of 1/L. Decayed, they fall in a line to 0 at the last step.

    It is infinite where a stream was lost.
    """
    steps, streams, _ = batches.shape
    at, begun = set(looks(steps).tolist()), float(model.excess(model.start))
    theta = np.tile(model.start, (streams, rates.size, 1))
    step = (rates / model.curvature)[:, None]
    lost, found = np.zeros((streams, rates.size), dtype=bool), []
    for t, batch in enumerate(batches, 1):
        share = 1 - (t - 1) / steps if decayed else 1.0
        theta -= share * step * model.gradient(theta, batch)
        if t in at:
            left = model.excess(theta) / begun
            lost |= ~(left < LOST)
            theta[lost] = model.start
            found.append(np.where(lost, np.inf, left))
    return np.array(found)


def smooth(curves: FloatArray) -> FloatArray:
    """Return the mean of each look and those before it, LOOKS in all; looks are the first axis."""
    padded = np.concatenate([np.repeat(curves[:1], LOOKS - 1, axis=0), curves])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, LOOKS, axis=0).mean(axis=-1))


def steps_to(level: float, curves: FloatArray, at: IntArray) -> FloatArray:
    """Return the first of the steps `at` at which a smoothed curve is at `level` or below.

    It is the last of them where that never is so.
    """
    below = curves <= level
    return at[np.where(below.any(axis=0), below.argmax(axis=0), -1)].astype(np.float64)


def best(costs: FloatArray) -> IntArray:
    """Return the rate of the least cost, rates being the last axis, by geometric means of three.

    A rate and its neighbours are taken together, so that no single lucky one is chosen.
    """
    logs = np.log(costs)
    ends = np.concatenate([logs[..., :1], logs, logs[..., -1:]], axis=-1)
    return np.asarray((ends[..., :-2] + ends[..., 1:-1] + ends[..., 2:]).argmin(axis=-1))
