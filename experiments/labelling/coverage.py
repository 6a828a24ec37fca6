"""Ways to choose items that stand for the others: herding, balls, clusters, filters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import dmsgd
from experiments.labelling.arms import badge, drop_query, margin, random
from experiments.labelling.rounds import Choose, Round, softmax

#: Candidates whose gains are computed at a time.
BLOCK = 32
#: Neighbours of TypiClust, and clusters from which on k-means has fewer iterations.
NEIGHBOURS, MANY = 20, 50
#: Temperatures that UHerding tries, and bins of its calibration error.
TEMPERATURES, BINS = np.logspace(-1, 1, 49), 15
#: Radii that ProbCover tries, and how pure balls must be.
RADII, PURE = np.arange(0.05, 2.05, 0.05), 0.95
#: How often Refine filters, the share of the pool that a batch is chosen from, batches a strategy.
DEPTH, SHARE, BATCHES = 5, 0.4, 2


def unit(X: np.ndarray) -> np.ndarray:
    """Return rows of length 1."""
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9))


def squares(now: Round, of_unit: bool = True) -> np.ndarray:
    """Return squared distances between all items, of rows of length 1 or as they are."""
    name = "unit squares" if of_unit else "squares"
    if name not in now.kept:
        now.kept[name] = distances(unit(now.X) if of_unit else now.X)
    return now.kept[name]


def distances(X: np.ndarray) -> np.ndarray:
    """Return squared distances between rows in float32."""
    X = (X - X.mean(0)).astype(np.float32)
    norms = (X**2).sum(1)
    D = X @ X.T
    D *= -2
    D += norms
    D += norms[:, None]
    np.maximum(D, 0, out=D)
    np.fill_diagonal(D, 0)
    return D


def greedy_cover(
    S: np.ndarray, weights: np.ndarray, covered: np.ndarray, free: np.ndarray, k: int, rng: Any
) -> np.ndarray:
    """Return k of the free items, each adding most to Σ_j w_j max_i S_ij; at random if none does.

    Bounds of gains are valid for ever, so that few are computed anew at each step.
    """
    weights, covered = weights.astype(np.float32), covered.astype(np.float32)
    bounds, chosen = np.full(len(S), -1.0), []
    needed = np.flatnonzero(weights > 0)
    for first in range(0, free.size, 256):
        some = free[first : first + 256]
        bounds[some] = _gains(S, some, weights, covered, needed)
    fresh = np.ones(len(S), dtype=bool)
    while len(chosen) < k:
        while not fresh[best := int(bounds.argmax())]:
            stale = np.where(fresh, -1.0, bounds)
            some = np.argpartition(-stale, min(BLOCK, stale.size - 1))[:BLOCK]
            some = some[stale[some] >= 0]
            bounds[some] = _gains(S, some, weights, covered, needed)
            fresh[some] = True
        if bounds[best] <= 0:
            left = np.setdiff1d(free, chosen)
            chosen.extend(rng.choice(left, k - len(chosen), replace=False).tolist())
            break
        chosen.append(best)
        covered, bounds[best] = np.maximum(covered, S[best]), -1.0
        fresh[:] = False
    return np.array(chosen)


def _gains(
    S: np.ndarray, some: np.ndarray, weights: np.ndarray, covered: np.ndarray, needed: np.ndarray
) -> np.ndarray:
    if needed.size < len(weights) / 2:
        parts = S[np.ix_(some, needed)] - covered[needed]
        return np.maximum(parts, 0, out=parts) @ weights[needed]
    parts = S[some] - covered
    return np.maximum(parts, 0, out=parts) @ weights


def _covered(S: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    return S[labelled].max(0) if labelled.size else np.zeros(len(S), dtype=np.float32)


def max_herding(now: Round) -> np.ndarray:
    """Return facility location of exp(-d²), rows of length 1 (MaxHerding, Bae et al. 2024)."""
    if "herding" not in now.kept:
        now.kept["herding"] = np.exp(-squares(now))
    S, free = now.kept["herding"], now.free
    weights = np.zeros(len(S))
    weights[free] = 1
    return greedy_cover(S, weights, _covered(S, now.labelled), free, now.k, now.rng)


def uherding(now: Round, of_unit: bool = True) -> np.ndarray:
    """Return facility location weighted by uncertainty (UHerding, Bae et al. 2025).

    S = exp(-d² / σ²), σ being the smallest distance between labelled items; uncertainty is
    1 - margin of probabilities whose temperature has the least calibration error on a fifth of the
    labelled items, by a model that has learned from the others.
    """
    D, free = squares(now, of_unit), now.free
    near = D[np.ix_(now.labelled, now.labelled)]
    near = near[near > 1e-9]
    S = np.exp(D / -(near.min() if near.size else 1.0))
    weights = np.zeros(len(S))
    heat = now.kept.get("temperature") or temperature(now)
    weights[free] = dmsgd.uncertainty(softmax(now.model.scores[free] / heat))
    if not (weights > 1e-9).any():
        weights[free] = 1
    return greedy_cover(S, weights, _covered(S, now.labelled), free, now.k, now.rng)


def temperature(now: Round) -> float:
    """Return the temperature with the least expected calibration error, 1 if there is none."""
    from sklearn.model_selection import train_test_split

    y, seed = np.asarray(now.labels), int(now.rng.integers(2**31))
    try:
        parts = train_test_split(np.arange(y.size), test_size=0.2, random_state=seed, stratify=y)
    except ValueError:  # classes with one item, or more classes than places
        parts = train_test_split(np.arange(y.size), test_size=0.2, random_state=seed)
    train, rest = parts
    scores = now.model.held_out(now.labelled[train], now.labelled[rest])
    right = scores.argmax(1) == y[rest]
    errors = []
    for each in TEMPERATURES:
        sure = softmax(scores / each).max(1)
        bins = np.minimum((sure * BINS).astype(int), BINS - 1)
        errors.append(np.abs(np.bincount(bins, right - sure, BINS)).sum())
    return float(TEMPERATURES[int(np.argmin(errors))])


def prob_cover(now: Round) -> np.ndarray:
    """Return items whose balls hold most uncovered ones (ProbCover, Yehuda et al. 2022).

    The radius is the largest at which 95 % of the balls hold items of one k-means cluster only, of
    as many clusters as there are classes; rows have length 1.
    """
    if "balls" not in now.kept:
        D = squares(now)
        own = clusters(unit(now.X), now.P.shape[1], now.rng)
        other = np.array([D[i, own != own[i]].min(initial=np.inf) for i in range(len(D))])
        pure = [float((other > radius**2).mean()) >= PURE for radius in RADII]
        radius = RADII[max(int(np.argmin([*pure, False])) - 1, 0)]
        now.kept["balls"] = radius**2 >= D
    balls, chosen = now.kept["balls"], []
    covered = balls[now.labelled].any(0)
    counts = balls[:, ~covered].sum(1)
    counts[now.labelled] = -1
    while len(chosen) < now.k:
        best = int(now.rng.choice(np.flatnonzero(counts == counts.max())))
        new = np.flatnonzero(balls[best] & ~covered)
        covered[new] = True
        counts -= balls[:, new].sum(1)
        chosen.append(best)
        counts[[*now.labelled, *chosen]] = -1
    return np.array(chosen)


def clusters(X: np.ndarray, count: int, rng: Any) -> np.ndarray:
    """Return the number of the k-means cluster of each row."""
    from sklearn.cluster import KMeans

    few = count <= MANY
    model = KMeans(count, n_init=1, max_iter=100 if few else 20,
                   random_state=int(rng.integers(2**31)))  # fmt: skip
    return np.asarray(model.fit_predict(X))


def typiclust(now: Round) -> np.ndarray:
    """Return the most typical item of each large cluster without a label (Hacohen et al. 2022).

    There are as many k-means clusters as labels afterwards, 500 at most; rows have length 1. The
    typical item has the smallest mean distance to its 20 nearest in the cluster. Where clusters are
    used up, those with the fewest labels are next.
    """
    D = squares(now)
    count = min(now.labelled.size + now.k, 500, len(D))
    own = clusters(unit(now.X), count, now.rng)
    sizes, known = (np.bincount(part, minlength=count) for part in (own, own[now.labelled]))
    left, chosen = np.ones(len(D), dtype=bool), []
    left[now.labelled] = False
    while len(chosen) < now.k:
        open_ = np.bincount(own[left], minlength=count) > 0
        fewest = open_ & (known == known[open_].min())
        cluster = int(np.where(fewest, sizes, -1).argmax())
        inside = np.flatnonzero(own == cluster)
        near = min(NEIGHBOURS, inside.size - 1)
        apart = np.sqrt(np.sort(D[np.ix_(inside, inside)], axis=1)[:, 1 : near + 1]).sum(1)
        apart[~left[inside]] = np.inf
        chosen.append(int(inside[apart.argmin()]))
        left[chosen[-1]] = False
        known[cluster] += 1
    return np.array(chosen)


def refine(now: Round) -> np.ndarray:
    """Return what UHerding chooses of a pool that was filtered (Refine, Huseljic et al. 2025).

    Five times every strategy chooses two batches of k, each of a random 40 % of what is left, and
    the items of all batches are what is left then. The paper has nine strategies and eleven batches
    of each; here they are random, margin, BADGE, DropQuery, MaxHerding and UHerding.
    """
    left, heat = now.free, temperature(now)
    for _ in range(DEPTH):
        size = min(max(now.k, int(SHARE * left.size)), left.size)
        found = [
            part[strategy(sub)]
            for strategy in FILTERS
            for _ in range(BATCHES)
            for part, sub in [_sub_round(now, now.rng.choice(left, size, replace=False), heat)]
        ]
        left = np.unique(np.concatenate(found))
    part, sub = _sub_round(now, left, heat)
    return part[uherding(sub)]


FILTERS: tuple[Choose, ...] = (random, margin, badge, drop_query, max_herding, uherding)


class _Part:
    """The model of a round, for a part of its items."""

    def __init__(self, model: Any, rows: np.ndarray) -> None:
        self.inputs, self.scores = model.inputs[rows], model.scores[rows]
        self.scores_of = model.scores_of
        self.held_out = partial(_held_out, model, rows)


def _held_out(model: Any, rows: np.ndarray, train: np.ndarray, rest: np.ndarray) -> np.ndarray:
    return model.held_out(rows[train], rows[rest])


def _sub_round(now: Round, some: np.ndarray, heat: float) -> tuple[np.ndarray, Round]:
    """Return items, the labelled ones first, and the round of these alone."""
    rows = np.concatenate([now.labelled, some])
    kept = {"unit squares": squares(now)[np.ix_(rows, rows)], "temperature": heat}
    labelled = np.arange(now.labelled.size)
    return rows, replace(now, X=now.X[rows], P=now.P[rows], labelled=labelled,
                         model=_Part(now.model, rows), kept=kept)  # fmt: skip


def active_ft(X: np.ndarray, k: int, rng: Any, steps: int = 300) -> np.ndarray:
    """Return the items next to k centres that are spread like all (ActiveFT, Xie et al. 2023).

    Rows and centres have length 1. Adam, with a rate of 0.001, lowers the mean of
    log(1 + Σ_j exp(c_j·c / T) / exp(x·c / T)), c being the centre nearest to x and T = 0.07; the
    centres begin at random items, and in the sum all c_j are constants.
    """
    from scipy.sparse import csr_array

    F, T = unit(X).astype(np.float32), 0.07
    n, places = len(F), np.arange(len(F) + 1)
    centres = F[rng.choice(n, k, replace=False)].copy()
    first, second = np.zeros_like(centres), np.zeros_like(centres)
    for step in range(1, steps + 1):
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        C = centres / lengths
        close = F @ C.T
        own = close.argmax(1)
        E = np.exp((C @ C.T) / T)
        sums = E.sum(0)
        ratio = sums[own] * np.exp(-close[np.arange(n), own] / T)
        pull = (ratio / (1 + ratio)).astype(np.float32)
        by_centre = csr_array((pull, own, places), shape=(n, k)).T
        slope = (by_centre.sum(1) / sums)[:, None] * (E.T @ C) - by_centre @ F
        slope = slope / (n * T)
        slope = (slope - (slope * C).sum(1, keepdims=True) * C) / lengths
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = 0.001 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        centres = (centres - rate * first / (np.sqrt(second) + 1e-8)).astype(np.float32)
    close, chosen = F @ unit(centres).T, []
    for column in range(k):
        chosen.append(int(close[:, column].argmax()))
        close[chosen[-1]] = -np.inf
    return np.array(chosen)
