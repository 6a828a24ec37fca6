"""How noisy a design's gradients are for multinomial logistic regression, from draws.

The gradient of item i is the outer product of its input x_i (with a 1 for the bias) and its error
δ_i = p_i - h_i, so inner products factorise, g_iᵀg_j = (δ_iᵀδ_j)(x_iᵀx_j), and the squared distance
of a batch's gradient from its expectation costs O(k²) once the products x_iᵀx_j are known.
`dmsgd.diagnostics.gradient_variance` is exact, but O(n² r²) for gradients this long.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.flowers.result import Noise


def measure(
    name: str,
    design: dmsgd.ClosedForm,
    X: FloatArray,
    errors: Sequence[FloatArray],
    item_weights: FloatArray | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Noise:
    """Return the noise of a design's gradients from `draws` batches.

    X: (n, d) inputs; errors: one (n, classes) array p - h for each point of training;
    item_weights: 1/k by default, the biased update. Take a seed that no training used: batches a
    model was trained on have smaller gradients.
    """
    X = np.column_stack([X, np.ones(len(X))]).astype(np.float64)
    b = design.inclusion()
    a = np.full(design.n, 1 / design.k) if item_weights is None else item_weights
    batches = design.sample(draws, seed)
    points = [_Point(X, np.asarray(delta, dtype=np.float64), a, b) for delta in errors]
    distances = np.empty((draws, len(points)))
    for t, batch in enumerate(batches):
        products = X[batch] @ X[batch].T
        distances[t] = [point.squared_distance(batch, products) for point in points]
    return Noise(
        k=design.k,
        method=name,
        variance=distances.mean(axis=0),
        error=distances.std(axis=0, ddof=1) / np.sqrt(draws),
        independent=np.array([point.independent(b) for point in points]),
        uniform=np.array([point.uniform(design.k) for point in points]),
        signal=np.array([point.signal for point in points]),
    )


class _Point:
    """The gradients of all items at one point of training, in factors: a_i δ_i x_iᵀ."""

    def __init__(self, X: FloatArray, delta: FloatArray, a: FloatArray, b: FloatArray) -> None:
        self.weighted = a[:, None] * delta
        expected = X.T @ (b[:, None] * self.weighted)
        self.signal = float(np.sum(expected**2))
        #: a_i g_iᵀ E[g] for every item
        self.along = np.einsum("ic,ic->i", X @ expected, self.weighted)
        self.squares = np.einsum("ic,ic,i->i", delta, delta, np.einsum("id,id->i", X, X))
        self.a = a
        mean = X.T @ delta / len(X)
        self.spread = float(self.squares.mean() - np.sum(mean**2))

    def squared_distance(self, batch: FloatArray, products: FloatArray) -> float:
        """Return |Σ a_i g_i - E|² over a batch; `products` are its x_iᵀx_j."""
        delta = self.weighted[batch]
        own = np.einsum("ij,ij->", delta @ delta.T, products)
        return float(own - 2 * self.along[batch].sum() + self.signal)

    def independent(self, b: FloatArray) -> float:
        return float(np.sum((b - b**2) * self.a**2 * self.squares))

    def uniform(self, k: int) -> float:
        """(1/k - 1/n) S²: the variance of the mean of k items drawn without replacement."""
        n = self.a.size
        return self.spread * n / (n - 1) * (1 / k - 1 / n)
