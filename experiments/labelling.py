"""What to label next: ten rounds of k labels, and one set to label at the start.

Embeddings are fixed, with mean square 1 per column: 50 principal components of pixels, 100 of
features of images or of tf-idf. A round fits a softmax (or a network with one hidden layer) to the
labels, and an arm chooses k more from a pool by the class probabilities. The first k are random,
the same for all arms of a seed. `select` was tuned on MNIST, Oxford-102 and digits; R8, Debian and
the sonar of a robot are held out. Products have no classes to learn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments import datasets
from experiments.core import Case, Claim, lines
from experiments.core.compare import compare, mean, values
from experiments.core.figures import differences
from experiments.models import few_labels

TITLE = "What to label next: ten rounds, and one set"
COVER, GREEDY, DRAW = "cover", "greedy, u²", "k-DPP draw, u²"
DATA = ("MNIST", "R8", "Oxford-102", "Debian", "robot sonar")
#: Pool and test items, rounds.
POOL, TESTED, ROUNDS = 6000, 4000, 10
#: Labels of the one set, and its pool.
BUDGETS, LARGE = (50, 100, 200, 500, 1000), 50000


@dataclass(frozen=True, eq=False)
class Task:
    """Embeddings and classes of a pool, and of items to test on; the random start."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: int
    start: np.ndarray


@dataclass(frozen=True, eq=False)
class Round:
    """What an arm sees: embeddings, class probabilities, labelled items, a generator."""

    X: np.ndarray
    P: np.ndarray
    labelled: np.ndarray
    k: int
    rng: np.random.Generator

    @property
    def u(self) -> np.ndarray:
        """1 less the margin between the two likeliest classes."""
        return dmsgd.uncertainty(self.P)

    @property
    def free(self) -> np.ndarray:
        """The items without a label."""
        return np.setdiff1d(np.arange(len(self.X)), self.labelled)


Choose = Callable[[Round], np.ndarray]


@cache
def embeddings(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings and classes of all items."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
    elif name == "MNIST":
        data = datasets.mnist()
        some = np.random.default_rng(0).permutation(len(data.y_train))[:12000]
        X, y = _components(data.x_train[some].reshape(12000, -1) / 255.0, 50), data.y_train[some]
    elif name == "Oxford-102":
        flowers = datasets.flowers()
        X, y = _components(flowers.X.astype(float), 100), flowers.y
    elif name == "robot sonar":
        sonar = datasets.stream("sonar")
        X, y = (sonar.X - sonar.X.mean(0)) / sonar.X.std(0), sonar.y
    else:
        corpus = datasets.r8() if name == "R8" else datasets.debian()
        texts = (*corpus.train, *corpus.test) if name == "R8" else corpus.texts
        y = np.r_[corpus.y_train, corpus.y_test] if name == "R8" else corpus.y
        X = _text_components(texts, 100)
    return X / np.sqrt((X**2).mean()), y.astype(np.int64)


def _components(X: np.ndarray, count: int) -> np.ndarray:
    """Return the principal components, largest first."""
    centred = X - X.mean(0)
    vectors = np.linalg.eigh(centred.T @ centred)[1][:, : -count - 1 : -1]
    return np.asarray(centred @ vectors)


def _text_components(texts: Any, count: int) -> np.ndarray:
    """Return singular vectors of tf-idf, rows of length 1."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(sublinear_tf=True, min_df=3).fit_transform(texts)
    X = TruncatedSVD(count, random_state=0).fit_transform(weights)
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9))


def task(seed: int, data: str, k: int, pool: int, tested: int) -> Task:
    """Return a random pool, other items to test on, and k items that are labelled."""
    X, y = embeddings(data)
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(y))
    tested = min(tested, len(y) // 4)
    test, rest = order[:tested], order[tested : tested + pool]
    start = rng.choice(rest.size, k, replace=False)
    return Task(X[rest], y[rest], X[test], y[test], int(y.max()) + 1, start)


def run(
    task: Task, choose: Choose, seed: int, rate: float, rounds: int, units: int
) -> Iterator[tuple[int, str, float]]:
    """Yield the test accuracy by the number of labels, its mean over rounds, and the CPU time."""
    k, labelled, spent = task.start.size, task.start, 0.0
    rng, found = np.random.default_rng([seed, 2]), []
    for at in range(rounds + 1):
        model = few_labels.fit(task.X[labelled], task.y[labelled], task.classes, units, seed)
        right = few_labels.probabilities(model, task.X_test).argmax(1) == task.y_test
        found.append(100 * float(right.mean()))
        yield labelled.size, "accuracy", found[-1]
        if at < rounds:
            P, began = few_labels.probabilities(model, task.X), time.process_time()
            chosen = choose(Round(task.X, P, labelled, k, rng))
            spent += time.process_time() - began
            labelled = np.concatenate([labelled, chosen])
    yield labelled.size, "mean accuracy", float(np.mean(found[1:]))
    yield labelled.size, "milliseconds per round", 1000 * spent / rounds


# Arms


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
    return now.free[_medoids(now.X[now.free], now.k, now.u[now.free] ** 2 + 1e-12, now.rng)]


def _medoids(X: np.ndarray, k: int, weights: np.ndarray | None, rng: Any) -> list[int]:
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


def facility_location(now: Round, times: float, power: float = 1.0) -> np.ndarray:
    """Return facility location with exp(-d² / (times median d²)), lazily greedy, in NumPy."""
    S = _wide_kernel(now.X, times)
    weights = now.u**power
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


def coverage_times_diversity(now: Round) -> np.ndarray:
    """Return the greedy set of L = u K diag(u²) K u, K = exp(-d² / median d²)."""
    S = _wide_kernel(now.X, 1.0) * now.u * now.u[:, None]
    left = (S**2).sum(1)
    left[now.labelled] = 0
    basis, chosen = np.empty((0, len(S))), []
    for _ in range(now.k):
        best = int(left.argmax())
        row = (S @ S[best] - basis.T @ basis[:, best]) / np.sqrt(left[best])
        basis, left = np.vstack([basis, row]), left - row**2
        chosen.append(best)
        left[[*chosen, *now.labelled]] = 0
    return np.array(chosen)


def _wide_kernel(X: np.ndarray, times: float) -> np.ndarray:
    norms = (X**2).sum(1)
    D = np.maximum(norms[:, None] + norms - 2 * (X @ X.T), 0)
    return np.exp(D / (-times * np.median(D[:500])))


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
    GREEDY: MAIN[GREEDY],
    "greedy, no u": partial(by_select, how="greedy", power=0.0),
    "greedy, u K u² K u": coverage_times_diversity,
    "facility location, scale 1": partial(facility_location, times=1.0),
    "facility location, scale 1/4": partial(facility_location, times=1 / 16),
    "facility location, scale 4": partial(facility_location, times=16.0),
    "cover, no u": partial(by_select, how="cover", power=0.0),
    "cover, u²": partial(by_select, how="cover", power=2.0),
    COVER: MAIN[COVER],
}


# One set


def density(X: np.ndarray) -> np.ndarray:
    """Return how many of 2,000 random items are near, weighted by exp(-8 d² / median d²)."""
    some = X[np.random.default_rng(0).permutation(len(X))[:2000]]
    D = (X**2).sum(1)[:, None] + (some**2).sum(1) - 2 * (X @ some.T)
    return np.asarray(np.exp(-8 * D / np.median(D[:500])).sum(1))


def farthest(X: np.ndarray, k: int, rng: Any) -> np.ndarray:
    """Return each time the item that is farthest from those before, from a random start."""
    norms, near = (X**2).sum(1), np.full(len(X), np.inf)
    chosen = [int(rng.integers(len(X)))]
    while len(chosen) < k:
        last = chosen[-1]
        near = np.minimum(near, norms + norms[last] - 2 * (X @ X[last]))
        chosen.append(int(near.argmax()))
    return np.array(chosen)


def one_set(how: Any, dense: bool) -> Callable[[Task, int, Any], np.ndarray]:
    """Return the arm that `dmsgd.select` is; best first, so that one set serves all budgets."""

    def choose(task: Task, k: int, rng: Any) -> np.ndarray:
        quality = density(task.X) if dense else None
        return dmsgd.select(task.X, k, quality=quality, how=how, seed=int(rng.integers(2**31)))

    return choose


#: Arms of the one set: (task, k, generator) -> items. A prefix of those in PREFIX is a smaller set.
SETS: dict[str, Callable[[Task, int, Any], np.ndarray]] = {
    "random": lambda task, k, rng: rng.permutation(len(task.X))[:k],
    "k-means medoids": lambda task, k, rng: np.array(_medoids(task.X, k, None, rng)),
    "farthest point": lambda task, k, rng: farthest(task.X, k, rng),
    "k-DPP draw": one_set("draw", False),
    "k-DPP draw, density": one_set("draw", True),
    "greedy": one_set("greedy", False),
    "greedy, density": one_set("greedy", True),
    COVER: one_set("cover", False),
}
PREFIX = ("random", "farthest point", "greedy", "greedy, density", COVER)


def run_set(
    task: Task, arm: str, seed: int, rate: float, budgets: tuple[int, ...]
) -> Iterator[tuple[int, str, float]]:
    """Yield the accuracy, and its mean over classes, of a softmax that learns from one set."""
    rng, spent = np.random.default_rng([seed, 2]), 0.0
    items: Any = None
    for k in budgets[::-1]:
        began = time.process_time()
        if items is None or arm not in PREFIX:
            items = SETS[arm](task, k, rng)
        spent = max(spent, time.process_time() - began)
        chosen = items[:k]
        model = few_labels.fit(task.X[chosen], task.y[chosen], task.classes, 0, seed)
        right = few_labels.probabilities(model, task.X_test).argmax(1) == task.y_test
        counts = np.bincount(task.y_test, minlength=task.classes)
        shares = np.bincount(task.y_test, right, task.classes)[counts > 0] / counts[counts > 0]
        yield k, "accuracy", 100 * float(right.mean())
        yield k, "mean over classes", 100 * float(shares.mean())
    yield budgets[-1], "milliseconds", 1000 * spent


# Cases


def arms_of(choices: dict[str, Choose], *left_out: str) -> dict[str, Any]:
    """Return arms as a case has them."""
    kept = {name: choose for name, choose in choices.items() if name not in left_out}
    return {name: partial(_itself, choose=choose) for name, choose in kept.items()}


def _itself(task: Task, seed: int, choose: Any) -> Any:
    return choose


def case(
    title: str, data: str, k: int, seeds: int, arms: dict[str, Any], units: int = 0,
    pool: int = POOL, tested: int = TESTED, rounds: int = ROUNDS,
) -> Case:  # fmt: skip
    """Return rounds of labelling."""
    make = partial(task, data=data, k=k, pool=pool, tested=tested)
    return Case(f"labelling/{title}", make, arms, partial(run, rounds=rounds, units=units), seeds)


def sets_case(data: str, seeds: int, pool: int, tested: int, budgets: tuple[int, ...]) -> Case:
    """Return the sets that are labelled at once."""
    make = partial(task, data=data, k=1, pool=pool, tested=tested)
    arms = {name: partial(_itself, choose=name) for name in SETS}
    return Case("labelling/one set", make, arms, partial(run_set, budgets=budgets), seeds)


def cases(quick: bool = False) -> list[Case]:
    """Return all data with k = 50; other k and the network with fewer seeds; parts; one set.

    Stored are k = 50 and the one set.
    """
    if quick:
        return [
            case("MNIST", "MNIST", 50, 2, arms_of(MAIN), pool=2000, tested=1000, rounds=3),
            case("parts, MNIST", "MNIST", 50, 2, arms_of(PARTS), pool=1000, tested=500, rounds=2),
        ]
    few = arms_of(MAIN, DRAW)
    return [
        sets_case("Debian", 5, LARGE, 10000, BUDGETS),  # first, because its runs are the longest
        *(case(data, data, 50, 20, arms_of(MAIN)) for data in DATA),
        *(case(f"{data}, k={k}", data, k, 10, few) for k in KS for data in DATA),
        *(case(f"{data}, network", data, 50, 10, few, units=64) for data in DATA),
        *(case(f"parts, {data}", data, 50, 10, arms_of(PARTS), pool=3000) for data in AGAIN),
    ]


#: k besides 50, and data whose parts are looked at.
KS, AGAIN = (10, 20, 100), ("MNIST", "Oxford-102", "Debian")


def tiny() -> list[Case]:
    """Return the same on small digits."""
    small: dict[str, Any] = {"pool": 300, "tested": 100, "rounds": 2}
    return [
        case("MNIST", "digits", 10, 2, arms_of(MAIN), **small),
        case("MNIST, network", "digits", 10, 2, arms_of(MAIN, DRAW), units=8, **small),
        case("parts, MNIST", "digits", 10, 2, arms_of(PARTS), **small),
        sets_case("digits", 2, 400, 100, (10, 20)),
    ]


MEAN = "mean over rounds: accuracy after each of ten rounds of k labels"
CLAIMS = [
    *(
        Claim("beyond", f"{data}, k = 50, {when}: cover against {against}", f"labelling/{data}",
              COVER, measure, against, note=MEAN if "mean" in measure else "")
        for data in DATA
        for when, measure in (("mean over rounds", "mean accuracy"), ("last round", "accuracy"))
        for against in ("BADGE", "random")
    ),
    *(
        Claim("beyond", f"one set of {k} of 50,000: cover against {against}", "labelling/one set",
              COVER, "accuracy", against, step=k)
        for k in BUDGETS for against in ("random", "k-means medoids")
    ),
]  # fmt: skip


def there(table: pl.DataFrame, name: str) -> list[str]:
    """Return the data with results for the case `name`, such as "{}, k=20"."""
    found = set(table["experiment"])
    return [data for data in DATA if f"labelling/{name.format(data)}" in found]


def rounds_rows(table: pl.DataFrame, name: str, measure: str) -> list[list[str]]:
    """Return a row for each arm: the measure less BADGE's, and the time per round."""
    data = there(table, name)
    rows = [["chosen by", *data, "ms CPU per round"]]
    for arm in MAIN if data else ():
        cells, times = [arm], []
        for case in (f"labelling/{name.format(each)}" for each in data):
            if arm == "BADGE":
                cells.append(mean(values(table, case, arm, measure)).text(1, sign=False))
            else:
                cells.append(compare(table, case, arm, "BADGE", measure).text())
            times.append(values(table, case, arm, "milliseconds per round").mean())
        rows.append([*cells, f"{min(times):.0f} to {max(times):.0f}"])
    return rows


def k_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return cover less each other arm, mean over data, by k and for the network."""
    names = {"k = 50": "{}"} | {f"k = {k}": f"{{}}, k={k}" for k in KS} | {"network": "{}, network"}
    names = {head: name for head, name in names.items() if there(table, name)}
    rows = [["cover less", *names]]
    for arm in (*SIMPLE, GREEDY):
        cells = [arm]
        for name in names.values():
            found = [compare(table, f"labelling/{name.format(data)}", COVER, arm,
                             "mean accuracy").mean for data in there(table, name)]  # fmt: skip
            cells.append(f"{np.mean(found):+.1f} ({min(found):+.1f} to {max(found):+.1f})")
        rows.append(cells)
    return rows


def parts_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return a row for each part that is left out: the mean over rounds less BADGE's."""
    data = there(table, "parts, {}")
    rows = [["chosen by", *data]]
    for arm in PARTS:
        found = [compare(table, f"labelling/parts, {each}", arm, "BADGE", "mean accuracy")
                 for each in data]  # fmt: skip
        rows.append([arm, *("0" if arm == "BADGE" else each.text() for each in found)])
    return rows


def set_rows(table: pl.DataFrame) -> list[list[str]]:
    """Return accuracy and its mean over classes for each way to choose one set."""
    rows = [["chosen by", *(f"{k:,}" for k in BUDGETS), "seconds for 1,000"]]
    name = "labelling/one set"
    for arm in SETS:
        cells = [
            " / ".join(f"{values(table, name, arm, measure, k).mean():.1f}"
                       for measure in ("accuracy", "mean over classes"))
            for k in BUDGETS
        ]  # fmt: skip
        spent = values(table, name, arm, "milliseconds").mean() / 1000
        rows.append([arm, *cells, f"{spent:.1f}"])
    return rows


#: Of cases that are not stored, a table has no columns.
TABLES = {
    "labelling": partial(rounds_rows, name="{}", measure="mean accuracy"),
    "labelling-last": partial(rounds_rows, name="{}", measure="accuracy"),
    "labelling-k": k_rows,
    "labelling-parts": parts_rows,
    "labelling-set": set_rows,
}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write accuracy over labels, and differences from BADGE."""
    panels = {data: f"labelling/{data}" for data in DATA}
    columns: Any = {data: (name, "mean accuracy", None) for data, name in panels.items()}
    return [
        lines(table, folder / "labelling.png", panels, list(MAIN), "accuracy", "accuracy, %",
              "labels"),
        differences(table, folder / "labelling-differences.png", columns, "BADGE",
                    "points above BADGE, mean over rounds"),
        lines(table, folder / "labelling-set.png", {"one set": "labelling/one set"}, list(SETS),
              "accuracy", "accuracy, %", "labels", log="x"),
    ]  # fmt: skip
