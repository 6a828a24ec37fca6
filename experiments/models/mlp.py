"""A network with one hidden layer of rectified units, in NumPy: the smallest one that can be wrong
about a hidden subgroup and right about the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from experiments.models.softmax import probabilities


@final
@dataclass(frozen=True, eq=False)
class Network:
    """Weights of both layers, the last row of each being the bias; float32 for speed."""

    hidden: np.ndarray
    output: np.ndarray

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return the activations of the hidden layer."""
        return np.asarray(np.maximum(X @ self.hidden[:-1] + self.hidden[-1], 0))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable class of each row of X."""
        return np.asarray(probabilities(self.output, self.features(X)).argmax(axis=1))


def initial(inputs: int, units: int, classes: int, rng: np.random.Generator) -> Network:
    """Return random weights of the usual size (variance 2 / inputs), biases zero."""
    hidden = rng.standard_normal((inputs + 1, units)) * np.sqrt(2 / inputs)
    output = rng.standard_normal((units + 1, classes)) * np.sqrt(2 / units)
    hidden[-1], output[-1] = 0, 0
    return Network(hidden.astype(np.float32), output.astype(np.float32))


def train(
    network: Network,
    X: np.ndarray,
    targets: np.ndarray,
    batches: np.ndarray,
    rate: float,
    item_weights: np.ndarray | None = None,
) -> Network:
    """Return the network after one SGD step on each row of `batches`.

    A step follows the mean gradient of the batch's cross-entropy or, with `item_weights` (n,), the
    sum of its gradients so weighted. X and `targets` (one-hot) are float32.
    """
    W, V = network.hidden.copy(), network.output.copy()
    for batch in batches:
        x = X[batch]
        active = Network(W, V).features(x)
        error = probabilities(V, active) - targets[batch]
        if item_weights is None:
            error *= rate / batch.size
        else:
            error *= rate * item_weights[batch, None]
        back = (error @ V[:-1].T) * (active > 0)
        V[:-1] -= active.T @ error
        V[-1] -= error.sum(axis=0)
        W[:-1] -= x.T @ back
        W[-1] -= back.sum(axis=0)
    return Network(W, V)
