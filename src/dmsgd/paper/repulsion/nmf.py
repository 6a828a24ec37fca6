"""Mini-batch NMF on scikit-learn's digits: MiniBatchNMF.partial_fit on chosen batches."""

from __future__ import annotations

import warnings

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.repulsion.training import looks

#: Parts that a digit is made of, and rounds of multiplicative updates that find its mixture.
PARTS, ROUNDS = 16, 40


def errors(
    X: FloatArray, batches: IntArray, forgetting: tuple[float, ...], seed: int
) -> tuple[IntArray, FloatArray]:
    """Return the steps that were looked at and the excess error, shape (looks, forgetting).

    The error is the squared distance of all items to their best mixtures of parts; its excess over
    that of NMF on all items counts from 1 at the start. `forgetting` is scikit-learn's
    forget_factor, which takes the part of the rate.
    """
    from sklearn.decomposition import NMF, MiniBatchNMF

    rng = np.random.default_rng([seed, 37])
    start = X[rng.permutation(len(X))[:PARTS]] + 0.1 * rng.uniform(size=(PARTS, X.shape[1]))
    mixtures = np.full((len(X), PARTS), 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged in so many rounds
        whole = NMF(PARTS, init="custom", solver="mu", max_iter=300, tol=0)
        whole.fit_transform(X, W=mixtures.copy(), H=start.copy())
    least, _ = _error(X, whole.components_, mixtures, 5 * ROUNDS)
    begun, _ = _error(X, start, mixtures, 5 * ROUNDS)
    at = looks(len(batches))[::2]
    found = np.empty((at.size, len(forgetting)))
    for column, factor in enumerate(forgetting):
        k = batches.shape[1]
        model = MiniBatchNMF(PARTS, init="custom", batch_size=k, forget_factor=factor)
        W, row = mixtures, 0
        for t, batch in enumerate(batches, 1):
            model.partial_fit(X[batch], W=mixtures[:k].copy(), H=start.copy())
            if row < at.size and t == at[row]:
                error, W = _error(X, model.components_, W, ROUNDS)
                found[row, column] = (error - least) / (begun - least)
                row += 1
    return at, found


def _error(X: FloatArray, H: FloatArray, W: FloatArray, rounds: int) -> tuple[float, FloatArray]:
    """Return the mean squared error with the best mixtures found from W, and these."""
    XH, HH = X @ H.T, H @ H.T
    for _ in range(rounds):
        W = W * XH / np.maximum(W @ HH, 1e-12)
    return float(np.mean(np.sum((X - W @ H) ** 2, axis=1))), np.maximum(W, 1e-8)
