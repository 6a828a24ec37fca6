"""The algorithm of the paper's supplement in plain NumPy, O(n k³) per batch.

Use it to read, to teach and to test; the default sampler has the same distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.polynomials import ratios
from dmsgd.samplers.contract import PreparedSampler
from dmsgd.samplers.parallel import draw_in_parallel


def reference(spectrum: Any, k: int) -> PreparedSampler:
    """Return the sampler of the k-DPP of `spectrum` by the supplement's algorithm."""
    R = ratios(spectrum.values, k)

    def sample(key: int, start: int, size: int, workers: int) -> IntArray:
        def rows(first: int, out: IntArray) -> int:
            for t in range(out.shape[0]):
                rng = np.random.default_rng([key, first + t])
                J = select_eigenvectors(spectrum.values, R, k, rng)
                out[t] = select_items(spectrum.eigenvectors.columns(J), rng)
            return len(out)

        return draw_in_parallel(rows, start, size, k, workers)

    return PreparedSampler("reference", sample)


def select_eigenvectors(
    values: FloatArray, R: FloatArray, k: int, rng: np.random.Generator
) -> list[int]:
    """Return the k chosen eigenvectors: n is taken with probability λ_n e_{l-1}^{n-1} / e_l^n."""
    J: list[int] = []
    for n in range(values.size, 0, -1):
        left = k - len(J)
        if left == 0:
            break
        if rng.random() <= values[n - 1] / (values[n - 1] + R[n - 1, left]):
            J.append(n - 1)
    return J


def select_items(V: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return an item per column of V: pick i by squared row norm, then make V orthogonal to e_i."""
    Y = []
    while V.shape[1] > 0:
        probabilities = np.square(V).sum(axis=1)
        i = rng.choice(V.shape[0], p=probabilities / probabilities.sum())
        Y.append(i)
        pivot = np.argmax(np.abs(V[i]))
        column = V[:, pivot] / V[i, pivot]
        V = np.delete(V - np.outer(column, V[i]), pivot, axis=1)
        V, _ = np.linalg.qr(V)
    return np.array(Y, dtype=np.int64)
