"""Ways to choose what to label next, by the class probabilities of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

import dmsgd
from experiments.labelling.rounds import Round


def random(now: Round) -> np.ndarray:
    """Return k items at random."""
    return now.rng.choice(now.free, now.k, replace=False)


def margin(now: Round) -> np.ndarray:
    """Return the k items with the least margin between the two likeliest classes."""
    return _largest(now, now.u)


def entropy(now: Round) -> np.ndarray:
    """Return the k items whose class probabilities have the largest entropy."""
    return _largest(now, dmsgd.uncertainty(now.P, "entropy"))


def _largest(now: Round, values: np.ndarray) -> np.ndarray:
    return now.free[np.argsort(-values[now.free], kind="stable")[: now.k]]


def badge(now: Round) -> np.ndarray:
    """Return a k-means++ start on the gradients of the last layer (BADGE, Ash et al. 2020).

    The gradient is that of the loss if the likeliest class were right: its largest one comes first,
    each further one is drawn by the squared distance to the nearest before.
    """
    free, inputs = now.free, now.X if now.model is None else now.model.inputs
    errors = now.P[free].astype(np.float32)
    errors[np.arange(free.size), errors.argmax(1)] -= 1
    inputs = np.c_[inputs[free], np.ones(free.size, dtype=np.float32)]
    sizes = (errors**2).sum(1) * (inputs**2).sum(1)
    chosen, near = [int(sizes.argmax())], np.full(free.size, np.inf)
    while len(chosen) < now.k:
        last = chosen[-1]
        products = (errors @ errors[last]) * (inputs @ inputs[last])
        near = np.minimum(near, np.maximum(sizes + sizes[last] - 2 * products, 0))
        near[chosen] = 0
        sums = np.cumsum(near, dtype=float)
        if not sums[-1]:
            left = np.setdiff1d(np.arange(free.size), chosen)
            chosen.extend(left[: now.k - len(chosen)].tolist())
            break
        chosen.append(int(np.searchsorted(sums, now.rng.random() * sums[-1], side="right")))
    return free[chosen]


def clue(now: Round) -> np.ndarray:
    """Return the items next to the k-means centres of items weighted by entropy (Prabhu 2021)."""
    weights = dmsgd.uncertainty(now.P, "entropy")[now.free]
    return now.free[medoids(now.X[now.free], now.k, weights + 1e-9, now.rng)]


def medoids(X: np.ndarray, k: int, weights: np.ndarray | None, rng: Any) -> list[int]:
    """Return the items next to the k-means centres, all different."""
    from sklearn.cluster import KMeans

    model = KMeans(k, n_init=1, max_iter=50, random_state=int(rng.integers(2**31)))
    centres = model.fit(X, sample_weight=weights).cluster_centers_
    D, chosen = (X**2).sum(1)[:, None] - 2 * (X @ centres.T.astype(X.dtype)), []
    for column in range(k):
        chosen.append(int(D[:, column].argmin()))
        D[chosen[-1]] = np.inf
    return chosen


def falcun(now: Round) -> np.ndarray:
    """Return items drawn by (uncertainty + distance of probabilities)^10 (Gilhuber et al. 2024).

    The distance is that of the class probabilities, the sum of absolute differences, to the nearest
    chosen one, scaled to [0, 1]; before the first choice it is the uncertainty, 1 - margin.
    """
    free, P = now.free, now.P[now.free].astype(np.float32)
    u = now.u[free]
    near, chosen = u.copy(), []
    while len(chosen) < now.k:
        if chosen:
            near = np.minimum(near, np.abs(P - P[chosen[-1]]).sum(1))
            near -= near.min()
            near /= near.max() or 1.0
        worth = (u + near) ** 10
        worth[chosen] = 0
        sums = np.cumsum(worth)
        if not sums[-1]:
            worth = np.ones(free.size)
            worth[chosen] = 0
            sums = np.cumsum(worth)
        chosen.append(int(np.searchsorted(sums, now.rng.random() * sums[-1], side="right")))
    return free[chosen]


def drop_query(now: Round) -> np.ndarray:
    """Return k-means medoids of items on which dropout changes the class (Gupte et al. 2024).

    Three times 75 % of the features are 0; items whose class differs in more than half of them are
    clustered, or those with the most if fewer than k do.
    """
    free = now.free
    X = now.X[free]
    own, other = now.P[free].argmax(1), np.zeros(free.size)
    for _ in range(3):
        kept = now.rng.random(X.shape, dtype=np.float32) >= 0.75
        other += now.model.scores_of(X * kept).argmax(1) != own
    count = max(int((other > 1.5).sum()), now.k)
    order = np.argsort(-other + 1e-6 * now.rng.random(free.size), kind="stable")[:count]
    return free[order[medoids(X[order], now.k, None, now.rng)]]


def at_one_m(now: Round) -> np.ndarray:
    """Return what `dmsgd.select` chooses if m is the same in all rounds."""
    if "m" not in now.kept:
        now.kept["m"] = dmsgd.select(now.X, 1, details=True).m
    return dmsgd.select(now.X, now.k, quality=now.u, given=now.labelled, m=now.kept["m"])


def by_select(now: Round, how: Any = "cover", power: float = 1.0) -> np.ndarray:
    """Return what `dmsgd.select` chooses; given items change greedy k-DPP sets for nothing."""
    known = {"given" if how == "cover" else "exclude": now.labelled}
    return dmsgd.select(now.X, now.k, quality=now.u**power, how=how, **known)
