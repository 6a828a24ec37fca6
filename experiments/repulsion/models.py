"""What is trained: losses that are means over items, for many copies of the parameters at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

Array = np.ndarray
CENTRES = 10


class Model(NamedTuple):
    """Parameters have shape (p,), or (streams, rates, p) beside batches of shape (streams, k).

    curvature:      L; rates are in units of 1/L.
    gradient:       (theta, batch) -> mean gradients, shape (streams, rates, p).
    excess:         theta -> mean loss of all items less that of the optimum, for each row.
    item_gradients: theta -> gradient of each item at one point, shape (n, p).
    """

    start: Array
    optimum: Array
    curvature: float
    gradient: Callable[[Array, Array], Array]
    excess: Callable[[Array], Array]
    item_gradients: Callable[[Array], Array]


def least_squares(A: Array, y: Array) -> Model:
    """Return half the squared error of A theta, from theta = 0."""
    H, optimum = A.T @ A / y.size, np.linalg.lstsq(A, y, rcond=None)[0]

    def gradient(theta: Array, batch: Array) -> Array:
        errors = theta @ A[batch].transpose(0, 2, 1) - y[batch][:, None]
        return errors @ A[batch] / batch.shape[1]

    def excess(theta: Array) -> Array:
        return np.sum((theta - optimum) @ H * (theta - optimum), axis=-1) / 2

    def item_gradients(theta: Array) -> Array:
        return (A @ theta - y)[:, None] * A

    curvature = float(np.linalg.eigvalsh(H)[-1])
    return Model(np.zeros(A.shape[1]), optimum, curvature, gradient, excess, item_gradients)


def density(phi: Array, nodes: Array, weights: Array) -> Model:
    """Return minus the log-likelihood of p(x) ∝ exp(theta·phi(x)) on a box, by quadrature.

    phi (n, p) are functions of the items, `nodes` (m, p) the same at the nodes, whose weights sum
    to 1. The gradient of an item is E phi - phi(x): it depends on x alone and never fades.
    """
    logs, mean, start = np.log(weights), phi.mean(axis=0), np.zeros(phi.shape[1])

    def expected(theta: Array) -> Array:
        return softmax(theta @ nodes.T + logs) @ nodes

    def hessian(theta: Array) -> Array:
        return np.cov(nodes.T, aweights=softmax(theta @ nodes.T + logs), ddof=0)

    def loss(theta: Array) -> Array:
        return logsumexp(theta @ nodes.T + logs, axis=-1) - theta @ mean

    optimum = start
    for _ in range(50):  # Newton's method
        optimum = optimum - np.linalg.solve(hessian(optimum), expected(optimum) - mean)
    least, curvature = loss(optimum), float(np.linalg.eigvalsh(hessian(optimum))[-1])
    return Model(
        start, optimum, curvature,
        lambda theta, batch: expected(theta) - phi[batch].mean(axis=1)[:, None],
        lambda theta: loss(theta) - least,
        lambda theta: expected(theta) - phi,
    )  # fmt: skip


def classifier(X: Array, y: Array, ridge: float = 1e-3) -> Model:
    """Return the cross-entropy of ten classes from zero weights; item gradients have no ridge."""
    from scipy.optimize import minimize

    A, T = np.column_stack([X, np.ones(y.size)]), np.eye(10)[y]
    start = np.zeros(A.shape[1] * 10)

    def scores(theta: Array, A: Array) -> Array:
        return A @ theta.reshape(*theta.shape[:-1], A.shape[-1], -1)

    def gradient(theta: Array, batch: Array) -> Array:
        some = A[batch][:, None]
        errors = softmax(scores(theta, some)) - T[batch][:, None]
        slope = (some.transpose(0, 1, 3, 2) @ errors).reshape(theta.shape)
        return slope / batch.shape[1] + ridge * theta

    def loss(theta: Array) -> Array:
        found = scores(theta, A)
        lost = logsumexp(found, axis=-1) - np.einsum("...nc,nc->...n", found, T)
        return lost.mean(axis=-1) + ridge * np.sum(theta**2, axis=-1) / 2

    def both(theta: Array) -> tuple[float, Array]:
        return float(loss(theta)), gradient(theta[None, None], np.arange(y.size)[None])[0, 0]

    def item_gradients(theta: Array) -> Array:
        return (A[:, :, None] * (softmax(scores(theta, A)) - T)[:, None, :]).reshape(y.size, -1)

    found = minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    half = float(np.linalg.eigvalsh(A.T @ A / y.size)[-1] / 20 + ridge)  # half that of the start
    return Model(start, found.x, half, gradient, lambda theta: loss(theta) - found.fun,
                 item_gradients)  # fmt: skip


def k_means(X: Array, seed: int) -> Model:
    """Return half the squared distance to the nearest of CENTRES.

    The optimum is where Lloyd's algorithm ends from k-means++, and the start has a random member of
    each cluster as its centre: the way back is compared, not the luck of a start. 1/L is one over
    the share of a centre if all have the same.
    """
    from sklearn.cluster import KMeans

    lloyd = KMeans(CENTRES, n_init=1, tol=0, random_state=seed).fit(X)
    rng = np.random.default_rng([seed, 38])
    members = [rng.choice(np.flatnonzero(lloyd.labels_ == c)) for c in range(CENTRES)]
    least, square = lloyd.inertia_ / len(X), np.mean(np.sum(X**2, axis=1))

    def distances(theta: Array, X: Array) -> tuple[Array, Array]:
        """Return centres, and |c|² - 2 x·c: squared distances less |x|², (..., items, centres)."""
        C = theta.reshape(*theta.shape[:-1], CENTRES, -1)
        return C, np.sum(C * C, axis=-1)[..., None, :] - 2 * X @ np.swapaxes(C, -1, -2)

    def gradient(theta: Array, batch: Array) -> Array:
        some = X[batch][:, None]
        C, far = distances(theta, some)
        chosen = np.eye(CENTRES)[far.argmin(axis=-1)]
        pull = chosen.sum(axis=2)[..., None] * C - chosen.transpose(0, 1, 3, 2) @ some
        return pull.reshape(theta.shape) / batch.shape[1]

    def excess(theta: Array) -> Array:
        return (distances(theta, X)[1].min(axis=-1).mean(axis=-1) + square - least) / 2

    def item_gradients(theta: Array) -> Array:
        C, far = distances(theta, X)
        chosen = np.eye(CENTRES)[far.argmin(axis=1)]
        return (chosen[:, :, None] * (C - X[:, None, :])).reshape(len(X), -1)

    return Model(X[members].ravel(), lloyd.cluster_centers_.ravel(), 1 / CENTRES, gradient, excess,
                 item_gradients)  # fmt: skip


def softmax(scores: Array) -> Array:
    """Return positive numbers that sum to 1 along the last axis."""
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)
