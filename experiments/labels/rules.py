"""Rules for the first set that were compared on other seeds than those that are reported."""

from __future__ import annotations

from typing import Any

import numpy as np

import dmsgd
from experiments.labels.arms import medoids
from experiments.labels.coverage import distances, greedy_cover
from experiments.labels.rounds import Task


def cover_at(D: np.ndarray, square: float, k: int, rng: Any) -> np.ndarray:
    """Return greedy facility location with exp(-d² / square)."""
    n = len(D)
    return greedy_cover(np.exp(D / -square), np.ones(n), np.zeros(n), np.arange(n), k, rng)


def best_of_cells(S: np.ndarray, own: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the item of each cell with the largest sum of similarities; old ones of empty ones."""
    found = items.copy()
    for cell in np.unique(own):
        inside = np.flatnonzero(own == cell)
        found[cell] = inside[S[np.ix_(inside, inside)].sum(0).argmax()]
    return found


def refined(S: np.ndarray, items: np.ndarray, rounds: int) -> np.ndarray:
    """Return items after rounds of: assign all to the most similar, take the best of each cell."""
    for _ in range(rounds):
        own = S[items].argmax(0)
        own[items] = np.arange(items.size)
        new = best_of_cells(S, own, items)
        if (new == items).all():
            break
        items = new
    return items


def means(
    X: np.ndarray, items: np.ndarray, rounds: int, square: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """Return k-means centres that began at items, and the nearest of each row.

    square: rows count exp(-d² / square) in the mean, d being the distance to the centre.
    """
    from scipy.sparse import csr_array

    C, norms, n = X[items], (X**2).sum(1), len(X)
    own = np.zeros(n, dtype=int)
    for step in range(rounds + 1):
        Q = norms[:, None] - 2 * (X @ C.T) + (C**2).sum(1)
        last, own = own, Q.argmin(1)
        if step == rounds or (step and (own == last).all()):
            break
        weights = np.exp(np.maximum(Q[np.arange(n), own], 0) / -square)
        A = csr_array((weights, own, np.arange(n + 1)), shape=(n, len(C))).T
        sums = np.asarray(A.sum(1))
        new = (A @ X) / np.maximum(sums, 1e-12)[:, None]
        C = np.where(sums[:, None] > 0, new, C).astype(X.dtype)
    return C, own


def nearest(X: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return the items next to centres, all different."""
    Q, chosen = (X**2).sum(1)[:, None] - 2 * (X @ C.T), []
    for column in range(len(C)):
        chosen.append(int(Q[:, column].argmin()))
        Q[chosen[-1]] = np.inf
    return np.array(chosen)


def rule(
    task: Task, k: int, rng: Any, start: float, rounds: int = 0, then: str = "", last: float = 0.25
) -> np.ndarray:
    """Return a cover at `start` times the median, and what rounds of something make of it.

    then: "cells", the best of each cell by similarity at the same scale; "means", the items next to
          k-means centres; "both", the best of each cell of k-means by similarity at `last` times
          the median.
    """
    X, D = task.X, distances(task.X)
    square = dmsgd.select(X, 1, details=True).scale
    items = cover_at(D, start * square, k, rng)
    if then == "cells":
        return refined(np.exp(D / -(start * square)), items, rounds)
    if then == "means":
        return nearest(X, means(X, items, rounds)[0])
    if then == "both":
        own = means(X, items, rounds)[1]
        return best_of_cells(np.exp(D / -(last * square)), own, items)
    return items


#: Name -> arguments of `rule`.
RULES: dict[str, dict[str, Any]] = {
    "cover 1": {"start": 1.0},
    "cover 1/2": {"start": 0.5},
    "cover 1/4": {"start": 0.25},
    "cover 1/4, cells 5": {"start": 0.25, "rounds": 5, "then": "cells"},
    "cover 1/2, cells 5": {"start": 0.5, "rounds": 5, "then": "cells"},
    "cover 1, means": {"start": 1.0, "rounds": 30, "then": "means"},
    "cover 1/2, means": {"start": 0.5, "rounds": 30, "then": "means"},
    "cover 1, both 5, 1/4": {"start": 1.0, "rounds": 5, "then": "both"},
    "cover 1, both, 1/4": {"start": 1.0, "rounds": 30, "then": "both"},
    "cover 1, both, 1/8": {"start": 1.0, "rounds": 30, "then": "both", "last": 0.125},
    "cover 1, both, 1/2": {"start": 1.0, "rounds": 30, "then": "both", "last": 0.5},
    "cover 1/2, both, 1/4": {"start": 0.5, "rounds": 30, "then": "both"},
    "cover 1/4, both, 1/4": {"start": 0.25, "rounds": 30, "then": "both"},
}


def kmeans_cells(task: Task, k: int, rng: Any) -> np.ndarray:
    """Return the best of each cell of k-means from its own start, for comparison."""
    X, D = task.X, distances(task.X)
    own = means(X, np.array(medoids(X, k, None, rng)), 5)[1]
    square = dmsgd.select(X, 1, details=True).scale
    return best_of_cells(np.exp(D / (-0.25 * square)), own, np.arange(k))
