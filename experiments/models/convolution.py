"""A 1-d convolution of rectified units, averaged over time, and a softmax, in NumPy.

An item is (places, inputs): the patches of its window that the filters see. With one place it is a
network with one hidden layer, and without filters a softmax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from experiments.models.softmax import probabilities


@final
@dataclass(frozen=True, eq=False)
class Network:
    """Filters (inputs + 1, units) or None; output (units + 1, classes); last rows are biases."""

    filters: np.ndarray | None
    output: np.ndarray

    def flat(self) -> np.ndarray:
        """Return all weights as one row."""
        parts = (self.output,) if self.filters is None else (self.filters, self.output)
        return np.concatenate([each.ravel() for each in parts])

    def pooled(self, x: np.ndarray) -> np.ndarray:
        """Return what the softmax sees of items (n, places, inputs)."""
        if self.filters is None:
            return np.asarray(x[:, 0])
        return np.asarray(np.maximum(x @ self.filters[:-1] + self.filters[-1], 0).mean(axis=1))

    def loss(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the mean cross-entropy, inf where it is lost."""
        with np.errstate(all="ignore"):
            p = probabilities(self.output, self.pooled(x))[np.arange(len(y)), y]
            found = float(-np.log(np.maximum(p, 1e-30)).mean(dtype=np.float64))
        return found if np.isfinite(found) else np.inf

    def accuracy(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return the percentage of items whose class is right."""
        with np.errstate(all="ignore"):
            right = probabilities(self.output, self.pooled(x)).argmax(axis=1) == y
        return float(100 * right.mean())


def initial(inputs: int, units: int, classes: int, rng: np.random.Generator) -> Network:
    """Return random filters of the usual size (none for 0 units), small outputs, biases zero."""
    filters = rng.standard_normal((inputs + 1, units)) * np.sqrt(2 / inputs)
    output = 0.01 * rng.standard_normal(((units or inputs) + 1, classes))
    filters[-1], output[-1] = 0, 0
    kept = filters.astype(np.float32) if units else None
    return Network(kept, output.astype(np.float32))


def train(
    network: Network, x: np.ndarray, targets: np.ndarray, batches: np.ndarray, rate: float
) -> Network:
    """Return the network after one SGD step on each row of `batches`; `targets` are one-hot."""
    V, W = network.output.copy(), None if network.filters is None else network.filters.copy()
    places, inputs = x.shape[1:]
    for batch in batches:
        given = x[batch]
        if W is None:
            pooled = given[:, 0]
        else:
            active = given.reshape(-1, inputs) @ W[:-1]
            active += W[-1]
            np.maximum(active, 0, out=active)
            pooled = active.reshape(batch.size, places, -1).mean(axis=1) if places > 1 else active
        error = probabilities(V, pooled)
        error -= targets[batch]
        error *= np.float32(rate / batch.size)
        if W is not None:
            back = np.repeat(error @ V[:-1].T / places, places, axis=0) * (active > 0)
            W[:-1] -= given.reshape(-1, inputs).T @ back
            W[-1] -= back.sum(axis=0)
        V[:-1] -= pooled.T @ error
        V[-1] -= error.sum(axis=0)
    return Network(W, V)


def variance(network: Network, x: np.ndarray, targets: np.ndarray, batches: np.ndarray) -> float:
    """Return the estimated trace of the covariance of the mean gradient of a batch."""
    at = network.flat()
    steps = [at - train(network, x, targets, batch[None], 1.0).flat() for batch in batches]
    return float(np.var(np.array(steps, dtype=np.float64), axis=0, ddof=1).sum())
