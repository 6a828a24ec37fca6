"""Classifiers of few labelled items: a softmax, or one hidden layer before it."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from experiments.models import dense


def fit(
    X: np.ndarray, y: np.ndarray, classes: int, units: int, seed: int, decay: float = 1.0
) -> dense.Layers:
    """Return the layers with the least log loss plus decay/2 times the squared weights.

    units: of the hidden layer; 0 for none.
    """
    n, d = X.shape
    targets = np.zeros((n, classes))
    targets[np.arange(n), y] = 1.0
    sizes = (d, units, classes) if units else (d, classes)
    start = [layer.astype(float) for layer in dense.initial(sizes, np.random.default_rng(seed))]
    cuts = np.cumsum([layer.size for layer in start])[:-1]

    def layers(flat: np.ndarray) -> dense.Layers:
        parts = np.split(flat, cuts)
        return [part.reshape(like.shape) for part, like in zip(parts, start, strict=True)]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        own = layers(flat)
        *seen, scores = dense.forward(own, X)
        scores = scores - scores.max(1, keepdims=True)
        sums = np.exp(scores).sum(1, keepdims=True)
        total = float((np.log(sums) - (scores * targets).sum(1, keepdims=True)).sum())
        error, slopes = np.exp(scores) / sums - targets, []
        for layer, given in zip(reversed(own), reversed(seen), strict=True):
            weights = layer[:-1]
            total += decay / 2 * float((weights**2).sum())
            slopes.append(np.vstack([given.T @ error + decay * weights, error.sum(0)]))
            error = (error @ weights.T) * (given > 0)
        return total, np.concatenate([each.ravel() for each in reversed(slopes)])

    first = np.concatenate([layer.ravel() for layer in start])
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    return layers(found.x)


def probabilities(layers: dense.Layers, X: np.ndarray) -> np.ndarray:
    """Return the class probabilities, (n, classes)."""
    scores = dense.forward(layers, X)[-1]
    scores = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(scores / scores.sum(1, keepdims=True))
