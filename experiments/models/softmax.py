"""Multinomial logistic regression in a few lines of NumPy: the smallest model worth training.

Weights are (features + 1, classes); the last row is the bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def initial_weights(features: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Return small random weights, shape (features + 1, classes)."""
    return 0.01 * rng.standard_normal((features + 1, classes))


def probabilities(weights: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return P(class | x) for the rows of X, shape (n, classes)."""
    scores: np.ndarray = X @ weights[:-1] + weights[-1]
    scores -= scores.max(axis=1, keepdims=True)  # exp never overflows
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def predict(weights: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the most probable class of each row of X."""
    scores: np.ndarray = X @ weights[:-1] + weights[-1]
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def train(
    weights: np.ndarray,
    X: np.ndarray,
    targets: np.ndarray,
    batches: np.ndarray,
    rate: float,
    item_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the weights after one SGD step on each row of `batches`.

    A step follows the mean gradient of the batch's cross-entropy: the paper's update, biased
    towards whatever the batches show more often; or, with `item_weights` (n,), the sum of its
    gradients so weighted. `targets` is one-hot, shape (n, classes). Arithmetic is in the precision
    of `weights` and `X`.
    """
    weights = weights.copy()
    for batch in batches:
        x = X[batch]
        error = probabilities(weights, x)
        error -= targets[batch]
        if item_weights is None:
            error *= rate / batch.size
        else:
            error *= rate * item_weights[batch, None]
        weights[:-1] -= x.T @ error
        weights[-1] -= error.sum(axis=0)
    return weights


@dataclass(frozen=True, eq=False)
class Task:
    """X of unit rows for the kernel; inputs in float32 for the classifier; one-hot targets."""

    X: np.ndarray
    y: np.ndarray
    inputs: np.ndarray
    targets: np.ndarray
    test: tuple[np.ndarray, np.ndarray]
    valid: tuple[np.ndarray, np.ndarray]

    def only(self, items: np.ndarray) -> Task:
        """Return the task with fewer training items."""
        chosen = self.X[items], self.y[items], self.inputs[items], self.targets[items]
        return Task(*chosen, self.test, self.valid)

    def start(self, seed: int) -> np.ndarray:
        """Return the random start of a seed."""
        rng = np.random.default_rng([seed, 1])
        shape = self.inputs.shape[1], self.targets.shape[1]
        return initial_weights(*shape, rng).astype(np.float32)

    def stages(
        self,
        design: Any,
        seed: int,
        rate: float,
        steps: Sequence[int],
        item_weights: np.ndarray | None = None,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each of `steps` with the weights after so many SGD steps on draws of a design."""
        weights, batches, done = self.start(seed), design.sample(steps[-1], seed), 0
        for step in steps:
            rows, done = batches[done:step], step
            weights = train(weights, self.inputs, self.targets, rows, rate, item_weights)
            yield step, weights
