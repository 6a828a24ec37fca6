"""Dense networks of rectified units for many clients at once, in NumPy: a softmax is one layer.

A layer of a network is (inputs + 1, outputs), its last row the bias; those of several clients are
stacked, (clients, inputs + 1, outputs).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

Layers = list[np.ndarray]


def initial(sizes: tuple[int, ...], rng: np.random.Generator) -> Layers:
    """Return random weights of the usual size, small ones for the last layer, biases zero."""
    layers = []
    for number, (inputs, outputs) in enumerate(pairwise(sizes), start=2):
        scale = 0.01 if number == len(sizes) else np.sqrt(2 / inputs)
        layer = scale * rng.standard_normal((inputs + 1, outputs))
        layer[-1] = 0
        layers.append(layer.astype(np.float32))
    return layers


def forward(layers: Layers, x: np.ndarray) -> Layers:
    """Return the inputs of every layer, and last the scores of the classes."""
    seen = [x]
    for number, layer in enumerate(layers):
        out = seen[-1] @ layer[..., :-1, :] + layer[..., -1:, :]
        seen.append(out if number == len(layers) - 1 else np.maximum(out, 0, out=out))
    return seen


def accuracy(layers: Layers, X: np.ndarray, y: np.ndarray) -> float:
    """Return the percentage of items whose class is right."""
    return float(100 * np.mean(forward(layers, X)[-1].argmax(axis=-1) == y))


def train(layers: Layers, x: np.ndarray, targets: np.ndarray, rate: float) -> Layers:
    """Return the networks of clients that all start from `layers`, one SGD step per batch.

    x: (clients, steps, items, d); targets: one-hot, (clients, steps, items, classes).
    """
    own = [np.repeat(layer[None], len(x), axis=0) for layer in layers]
    for step in range(x.shape[1]):
        *seen, error = forward(own, x[:, step])
        error -= error.max(axis=-1, keepdims=True)
        np.exp(error, out=error)
        error /= error.sum(axis=-1, keepdims=True)
        error -= targets[:, step]
        error *= np.float32(rate / x.shape[2])
        for number in reversed(range(len(own))):
            layer, given = own[number], seen[number]
            back = (error @ layer[:, :-1].swapaxes(1, 2)) * (given > 0) if number else error
            layer[:, :-1] -= given.swapaxes(1, 2) @ error
            layer[:, -1] -= error.sum(axis=1)
            error = back
    return own


def updates(layers: Layers, own: Layers) -> np.ndarray:
    """Return how far each client's network is from `layers`, one row per client."""
    moved = [(new - old).reshape(len(new), -1) for new, old in zip(own, layers, strict=True)]
    return np.concatenate(moved, axis=1)
