# ruff: noqa: D102
"""What is trained: many copies at once, on several streams of batches, each at all rates.

Parameters have shape (streams, rates, p), and one batch of each stream makes (streams, k).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray


class Model(ABC):
    """A loss that is a mean over items.

    start, optimum: parameters, shape (p,).
    curvature:      L, of which the inverse is the unit of rates.
    """

    start: FloatArray
    optimum: FloatArray
    curvature: float

    @abstractmethod
    def gradient(self, theta: FloatArray, batch: IntArray) -> FloatArray:
        """Return the mean gradients of the streams' batches, shape (streams, rates, p)."""

    @abstractmethod
    def excess(self, theta: FloatArray) -> FloatArray:
        """Return the mean loss of all items less that of the optimum, for each row of theta."""

    @abstractmethod
    def item_gradients(self, theta: FloatArray) -> FloatArray:
        """Return the gradient of each item at one point, shape (n, p)."""


@final
class LeastSquares(Model):
    """Half the squared error of A theta, from theta = 0."""

    def __init__(self, A: FloatArray, y: FloatArray) -> None:
        self.A, self.y = A, y
        self.H: FloatArray = A.T @ A / y.size
        self.start = np.zeros(A.shape[1])
        self.optimum = np.asarray(np.linalg.lstsq(A, y, rcond=None)[0], dtype=np.float64)
        self.curvature = float(np.linalg.eigvalsh(self.H)[-1])

    def gradient(self, theta: FloatArray, batch: IntArray) -> FloatArray:
        A = self.A[batch]
        errors = theta @ A.transpose(0, 2, 1) - self.y[batch][:, None]
        return np.asarray(errors @ A / batch.shape[1])

    def excess(self, theta: FloatArray) -> FloatArray:
        away = theta - self.optimum
        return np.asarray(np.sum(away @ self.H * away, axis=-1) / 2)

    def item_gradients(self, theta: FloatArray) -> FloatArray:
        return np.asarray((self.A @ theta - self.y)[:, None] * self.A)


@final
class Density(Model):
    """Minus the log-likelihood of p(x) ∝ exp(theta·phi(x)) on a box, by quadrature.

    phi:     (n, p), of the items.
    nodes:   (m, p), the same functions at the nodes.
    weights: (m,), of the nodes; they sum to 1.

    The gradient of an item is E phi - phi(x): it depends on x alone and never fades.
    """

    def __init__(self, phi: FloatArray, nodes: FloatArray, weights: FloatArray) -> None:
        self.phi, self.nodes, self.logs = phi, nodes, np.log(weights)
        self.mean = phi.mean(axis=0)
        self.start = np.zeros(phi.shape[1])
        self.optimum = self._newton()
        self.least = 0.0
        self.least = float(self.excess(self.optimum))
        self.curvature = float(np.linalg.eigvalsh(self._hessian(self.optimum))[-1])

    def gradient(self, theta: FloatArray, batch: IntArray) -> FloatArray:
        seen = self.phi[batch].mean(axis=1)[:, None]
        return np.asarray(self._shares(theta) @ self.nodes - seen)

    def excess(self, theta: FloatArray) -> FloatArray:
        from scipy.special import logsumexp

        total = logsumexp(theta @ self.nodes.T + self.logs, axis=-1)
        return np.asarray(total - theta @ self.mean - self.least)

    def item_gradients(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self._shares(theta) @ self.nodes - self.phi)

    def _shares(self, theta: FloatArray) -> FloatArray:
        logs = theta @ self.nodes.T + self.logs
        shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def _hessian(self, theta: FloatArray) -> FloatArray:
        shares = self._shares(theta)
        mean = shares @ self.nodes
        return np.asarray((self.nodes.T * shares) @ self.nodes - np.outer(mean, mean))

    def _newton(self, steps: int = 50) -> FloatArray:
        theta = self.start
        for _ in range(steps):
            slope = self._shares(theta) @ self.nodes - self.mean
            theta = theta - np.linalg.solve(self._hessian(theta), slope)
        return theta


@final
class Softmax(Model):
    """Cross-entropy of classes with a small ridge, from zero weights.

    The ridge is no part of an item's gradient: it adds no noise.
    """

    def __init__(self, X: FloatArray, y: IntArray, classes: int, ridge: float = 1e-3) -> None:
        from scipy.optimize import minimize

        self.A = np.column_stack([X, np.ones(y.size)])
        self.T = np.eye(classes)[y]
        self.ridge, self.least = ridge, 0.0
        self.start = np.zeros(self.A.shape[1] * self.T.shape[1])
        everyone = np.arange(y.size)[None]

        def loss(theta: FloatArray) -> tuple[float, FloatArray]:
            return float(self.excess(theta)), self.gradient(theta[None, None], everyone)[0, 0]

        found = minimize(loss, self.start, jac=True, method="L-BFGS-B", options={"maxiter": 2000})
        self.optimum, self.least = found.x, float(found.fun)
        largest = np.linalg.eigvalsh(self.A.T @ self.A / y.size)[-1]
        self.curvature = float(largest / (2 * self.T.shape[1]) + ridge)  # half that of the start

    def gradient(self, theta: FloatArray, batch: IntArray) -> FloatArray:
        A = self.A[batch][:, None]
        errors = self._probabilities(theta, A) - self.T[batch][:, None]
        slope = (A.transpose(0, 1, 3, 2) @ errors).reshape(theta.shape)
        return np.asarray(slope / batch.shape[1] + self.ridge * theta)

    def excess(self, theta: FloatArray) -> FloatArray:
        from scipy.special import logsumexp

        scores = self._scores(theta, self.A)
        right = np.einsum("...nc,nc->...n", scores, self.T)
        loss = (logsumexp(scores, axis=-1) - right).mean(axis=-1)
        return np.asarray(loss + self.ridge * np.sum(theta**2, axis=-1) / 2 - self.least)

    def item_gradients(self, theta: FloatArray) -> FloatArray:
        errors = self._probabilities(theta, self.A) - self.T
        return np.asarray((self.A[:, :, None] * errors[:, None, :]).reshape(len(errors), -1))

    def _scores(self, theta: FloatArray, A: FloatArray) -> FloatArray:
        return np.asarray(A @ theta.reshape(*theta.shape[:-1], A.shape[-1], -1))

    def _probabilities(self, theta: FloatArray, A: FloatArray) -> FloatArray:
        scores = self._scores(theta, A)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


@final
class Quantiser(Model):
    """k-means: half the squared distance to the nearest centre.

    The optimum is where Lloyd's algorithm ends from k-means++, and the start has a random member of
    each cluster as its centre: what is compared is the way back, not the luck of a start. 1/L is
    one over the share of a centre if all have the same.
    """

    def __init__(self, X: FloatArray, centres: int, seed: int) -> None:
        from sklearn.cluster import KMeans

        self.X, self.centres = X, centres
        lloyd = KMeans(centres, n_init=1, tol=0, random_state=seed).fit(X)
        rng = np.random.default_rng([seed, 38])
        members = [rng.choice(np.flatnonzero(lloyd.labels_ == c)) for c in range(centres)]
        self.start, self.optimum = X[members].ravel(), lloyd.cluster_centers_.ravel()
        self.least = float(lloyd.inertia_ / len(X) / 2)
        self.curvature = 1 / centres

    def gradient(self, theta: FloatArray, batch: IntArray) -> FloatArray:
        X, C = self.X[batch][:, None], self._cut(theta)
        chosen = np.eye(self.centres)[self._distances(C, X).argmin(axis=-1)]
        pull = chosen.sum(axis=2)[..., None] * C - chosen.transpose(0, 1, 3, 2) @ X
        return np.asarray(pull.reshape(theta.shape) / batch.shape[1])

    def excess(self, theta: FloatArray) -> FloatArray:
        nearest = self._distances(self._cut(theta), self.X).min(axis=-1).mean(axis=-1)
        return np.asarray((nearest + np.mean(np.sum(self.X**2, axis=1))) / 2 - self.least)

    def item_gradients(self, theta: FloatArray) -> FloatArray:
        C = self._cut(theta)
        chosen = np.eye(self.centres)[self._distances(C, self.X).argmin(axis=1)]
        return np.asarray((chosen[:, :, None] * (C - self.X[:, None, :])).reshape(len(self.X), -1))

    def _cut(self, theta: FloatArray) -> FloatArray:
        return theta.reshape(*theta.shape[:-1], self.centres, -1)

    def _distances(self, C: FloatArray, X: FloatArray) -> FloatArray:
        """Return |c|² - 2 x·c: squared distances less |x|², shape (..., items, centres)."""
        squares = np.sum(C * C, axis=-1)[..., None, :]
        return np.asarray(squares - 2 * X @ np.swapaxes(C, -1, -2))
