"""Ways to choose what to label next, by the class probabilities of a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dmsgd
from experiments.labelling.rounds import Choose, Round
from experiments.models import few_labels

COVER, GREEDY, DRAW = "cover", "greedy, u²", "k-DPP draw, u²"
#: Plain facility location: what an item adds to coverage, whatever its own uncertainty.
ALONE = "cover, u of the others alone"


def random(now: Round) -> np.ndarray:
    """Return k items at random."""
    return now.rng.choice(now.free, now.k, replace=False)


def margin(now: Round) -> np.ndarray:
    """Return the k most uncertain items."""
    return now.free[np.argsort(-now.u[now.free], kind="stable")[: now.k]]


def badge(now: Round) -> np.ndarray:
    """Return a k-means++ start on the gradients of the last layer (BADGE, Ash et al. 2020)."""
    free = now.free
    errors = now.P[free].copy()
    errors[np.arange(free.size), errors.argmax(1)] -= 1
    inputs = np.c_[now.X[free], np.ones(free.size)]
    sizes = (errors**2).sum(1) * (inputs**2).sum(1)
    chosen, near = [int(sizes.argmax())], np.full(free.size, np.inf)
    while len(chosen) < now.k:
        last = chosen[-1]
        products = (errors @ errors[last]) * (inputs @ inputs[last])
        near = np.minimum(near, np.maximum(sizes + sizes[last] - 2 * products, 0))
        near[chosen] = 0
        chosen.append(int(now.rng.choice(free.size, p=near / near.sum())))
    return free[chosen]


def clue(now: Round) -> np.ndarray:
    """Return the items next to the k-means centres of items weighted by u² (Prabhu 2021)."""
    return now.free[medoids(now.X[now.free], now.k, now.u[now.free] ** 2 + 1e-12, now.rng)]


def medoids(X: np.ndarray, k: int, weights: np.ndarray | None, rng: Any) -> list[int]:
    """Return the items next to the k-means centres, all different."""
    from sklearn.cluster import KMeans

    model = KMeans(k, n_init=1, max_iter=50, random_state=int(rng.integers(2**31)))
    centres = model.fit(X, sample_weight=weights).cluster_centers_
    norms, taken = (X**2).sum(1), np.zeros(len(X))
    chosen: list[int] = []
    for centre in centres:
        chosen.append(int((norms - 2 * (X @ centre) + taken).argmin()))
        taken[chosen[-1]] = np.inf
    return chosen


def by_select(now: Round, how: Any, power: float) -> np.ndarray:
    """Return what `dmsgd.select` chooses; given items change greedy k-DPP sets for nothing."""
    known = {"given" if how == "cover" else "exclude": now.labelled}
    seed = int(now.rng.integers(2**31))
    return dmsgd.select(now.X, now.k, quality=now.u**power, how=how, seed=seed, **known)


def facility_location(now: Round, times: float | None) -> np.ndarray:
    """Return facility location with exp(-d² / (times median d²)), lazily greedy, in NumPy.

    times: None for the scale that `select` has.
    """
    S = _wide_kernel(now.X, times or 1.0)
    if times is None:
        S **= max(1.0, -1 / np.median(np.log(S[now.labelled].max(0)[now.free])))
    weights = now.u.copy()
    weights[now.labelled] = 0
    covered, bounds = S[now.labelled].max(0), np.full(len(S), np.inf)
    bounds[now.labelled] = -1
    chosen: list[int] = []
    while len(chosen) < now.k:
        fresh = np.zeros(len(S), dtype=bool)
        while not fresh[best := int(bounds.argmax())]:
            stale = np.where(fresh, -1, bounds)
            some = np.argpartition(-stale, 100)[:100]
            some = some[stale[some] > 0]
            bounds[some] = np.maximum(S[some] - covered, 0) @ weights
            fresh[some] = True
        chosen.append(best)
        covered, bounds[best] = np.maximum(covered, S[best]), -1
    return np.array(chosen)


def greedy(now: Round, times: float) -> np.ndarray:
    """Return the greedy set of L = u² K u², K = exp(-d² / (times median d²))."""
    L = _wide_kernel(now.X, times) * now.u**2 * now.u[:, None] ** 2
    return _most_likely(L.diagonal(), lambda item: L[item], now)


def coverage_times_diversity(now: Round) -> np.ndarray:
    """Return the greedy set of L = u K diag(u²) K u, K = exp(-d² / median d²)."""
    S = _wide_kernel(now.X, 1.0) * now.u * now.u[:, None]
    return _most_likely((S**2).sum(1), lambda item: S @ S[item], now)


def _most_likely(
    diagonal: np.ndarray, row_of: Callable[[int], np.ndarray], now: Round
) -> np.ndarray:
    """Return k items without a label, each of which adds most to the determinant of L."""
    left, chosen = diagonal.copy(), list(now.labelled)
    basis = np.empty((0, left.size))
    while len(chosen) < now.labelled.size + now.k:
        left[chosen] = 0
        best = int(left.argmax())
        row = (row_of(best) - basis.T @ basis[:, best]) / np.sqrt(max(left[best], 1e-12))
        basis, left = np.vstack([basis, row]), left - row**2
        chosen.append(best)
    return np.array(chosen[now.labelled.size :])


def independent(now: Round) -> np.ndarray:
    """Return k items drawn one after another by u⁴: a k-DPP's without repulsion."""
    worth = now.u[now.free] ** 4 + 1e-12
    return now.rng.choice(now.free, now.k, replace=False, p=worth / worth.sum())


def _wide_kernel(X: np.ndarray, times: float) -> np.ndarray:
    norms = (X**2).sum(1)
    D = np.maximum(norms[:, None] + norms - 2 * (X @ X.T), 0)
    return np.exp(D / (-times * np.median(D[:500])))


def activeml(now: Round, name: str) -> np.ndarray:
    """Return what a strategy of scikit-activeml queries, with its defaults and our model."""
    import skactiveml.pool
    from skactiveml.base import SkactivemlClassifier

    class Fitted(SkactivemlClassifier):  # type: ignore[misc]
        """The model of the round."""

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            return self

        def predict_proba(self, X: Any) -> np.ndarray:
            return few_labels.probabilities(now.model, X)

        def predict(self, X: Any) -> np.ndarray:
            return self.predict_proba(X).argmax(1)

    strategy = getattr(skactiveml.pool, name)(random_state=int(now.rng.integers(2**31)))
    y = np.full(len(now.X), np.nan)
    y[now.labelled] = 0
    word = "estimator" if name == "Clue" else "clf"
    model = {word: Fitted(classes=range(now.P.shape[1])), f"fit_{word}": False}
    known = {} if name in ("MaxHerding", "TypiClust", "CoreSet") else model
    return np.asarray(strategy.query(now.X, y, batch_size=now.k, **known))


SIMPLE: dict[str, Choose] = {"random": random, "margin": margin, "BADGE": badge, "CLUE": clue}
MAIN: dict[str, Choose] = SIMPLE | {
    DRAW: partial(by_select, how="draw", power=2.0),
    GREEDY: partial(by_select, how="greedy", power=2.0),
    COVER: partial(by_select, how="cover", power=1.0),
}
#: What `select` would be without one of its parts; facility location at fixed scales.
PARTS: dict[str, Choose] = {
    "BADGE": badge,
    "margin": margin,
    DRAW: MAIN[DRAW],
    "k-DPP draw, no u": partial(by_select, how="draw", power=0.0),
    "independent draw, u²": independent,
    GREEDY: MAIN[GREEDY],
    "greedy, u², scale 1/4": partial(greedy, times=1 / 16),
    "greedy, u², scale 4": partial(greedy, times=16.0),
    "greedy, no u": partial(by_select, how="greedy", power=0.0),
    "greedy, u K u² K u": coverage_times_diversity,
    "facility location, scale 1": partial(facility_location, times=1.0),
    "facility location, scale 1/4": partial(facility_location, times=1 / 16),
    "facility location, scale 4": partial(facility_location, times=16.0),
    "cover, no u": partial(by_select, how="cover", power=0.0),
    ALONE: partial(facility_location, times=None),
    "cover, u²": partial(by_select, how="cover", power=2.0),
    COVER: MAIN[COVER],
}
#: Strategies of scikit-activeml, beside ours.
ACTIVEML: dict[str, Choose] = {
    name: MAIN[name] for name in ("random", "margin", "BADGE", COVER)
} | {
    f"scikit-activeml {name}": partial(activeml, name=name)
    for name in ("Badge", "Clue", "Falcun", "MaxHerding", "TypiClust", "DropQuery", "CoreSet")
}
