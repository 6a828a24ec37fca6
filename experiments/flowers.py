"""Figures 7, 8 and 11: softmax regression on Oxford-102 flowers, whose classes are unequal.

Training uses the official "test" part (6,149 images, 20 to 238 per class), testing the official
"train" part (10 per class), tuning the "valid" part. The kernel is L = FFᵀ, F = [(1-w)X, wH], with
rows of X of unit length: the paper does not state the scale of X, and w means nothing unless rows
of X and of the one-hot labels H are of similar length. Arms of a seed share the random start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from experiments.core import Case, Claim, Decomposition, lines, training
from experiments.core.figures import COLOURS, save
from experiments.datasets import flowers
from experiments.models import softmax
from experiments.models.softmax import Task

TITLE = "Oxford-102 flowers with a softmax: class balance and accuracy (Figures 7, 8 and 11)"
KS = (50, 80, 102, 150)
WS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
KDPP = "k-DPP w=0.9"
#: Class shares are shown for these k and w. The last has no k-DPP: k exceeds the rank.
SHARES = ((50, 0.3), (50, 0.9), *((102, w) for w in WS), (150, 1.0))
#: Epochs after which accuracy is measured besides whole ones, and those that have a name.
EARLY = (0.1, 0.2, 0.3, 0.5, 0.75, 1.5, 2.5)
NAMED = {0.3: "accuracy after 0.3 epochs", 1: "accuracy after one epoch"}
#: Rows of the classifier's input have this length, near that of the raw features.
LENGTH = 10.0
Rows = Iterator[tuple[int, str, float]]


@cache
def load(size: str) -> Task:
    """Return all flowers, every fifth ("quick"), or unequally many digits of each kind ("tiny")."""
    if size != "tiny":
        data = flowers()
        task = make_task(data.X, data.y, data.split)
        return task if size == "full" else task.only(np.arange(0, len(task.y), 5))
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    split = np.full(len(y), "none", dtype="U5")
    for digit in range(10):
        items = np.flatnonzero(y == digit)
        split[items[:30]], split[items[30:50]] = "train", "valid"
        split[items[50:][: round(60 * 0.7**digit)]] = "test"
    return make_task(X, y, split)


def make_task(X: np.ndarray, y: np.ndarray, split: np.ndarray) -> Task:
    """Return the task with the paper's use of the parts: train on "test", test on "train"."""
    X = np.asarray(dmsgd.features.normalize(X))
    train, test, valid = (split == part for part in ("test", "train", "valid"))
    inputs = (LENGTH * X).astype(np.float32)
    targets = np.eye(int(y.max()) + 1, dtype=np.float32)[y[train]]
    parts = (inputs[test], y[test]), (inputs[valid], y[valid])
    return Task(X[train], y[train], inputs[train], targets, *parts)


def even(size: str, each: int, seed: int) -> Task:
    """Return the task with `each` items of every class, others for every seed."""
    task, rng = load(size), np.random.default_rng([seed, 3])
    members = [np.flatnonzero(task.y == label) for label in np.unique(task.y)]
    return task.only(np.sort(np.concatenate([rng.permutation(m)[:each] for m in members])))


# Arms are run one after the other, so the last designs are enough; a spectrum has 70 MB.
@lru_cache(maxsize=2)
def kdpp(task: Task, w: float, k: int, target: Any = None) -> Any:
    """Return the k-DPP, or None where k exceeds the kernel's rank."""
    features = dmsgd.features.concat(task.X, task.y, w)
    try:
        return dmsgd.diversify(features, k, kernel="linear", normalize=False, target=target)
    except dmsgd.RankError:
        return None


def arms(k: int, ws: Sequence[float], prescribed: bool) -> dict[str, Any]:
    """Return the arms of a training besides uniform and shuffled batches of k."""
    found = {
        "stratified": lambda task, seed: dmsgd.Stratified(task.y, k),
        "pre-clustering": lambda task, seed: dmsgd.designs.clustered(task.X, k, seed=seed),
        **{f"k-DPP w={w:g}": lambda task, seed, w=w: kdpp(task, w, k) for w in ws},
        f"{KDPP}, frequency-matched": lambda task, seed: dmsgd.Weighted.like(kdpp(task, 0.9, k)),
    }
    if prescribed:
        found[f"{KDPP}, uniform frequency"] = lambda task, seed: kdpp(task, 0.9, k, "uniform")
    return found


def train(task: Task, design: Any, seed: int, rate: float, epochs: int) -> Rows:
    """Yield the accuracy on the balanced test part while it trains."""
    at = sorted(each for each in {*EARLY, *range(1, epochs + 1)} if each <= epochs)
    steps = np.maximum(1, np.rint(np.array(at) * len(task.y) / design.k)).astype(int).tolist()
    stages, done = task.stages(design, seed, rate, steps), 0
    for epoch, (step, weights) in zip(at, stages, strict=True):
        accuracy = score(weights, *task.test)
        if step > done:
            yield step, "accuracy", accuracy
        if epoch in NAMED:
            yield step, NAMED[epoch], accuracy
        if epoch == int(epoch):
            yield step, "validation accuracy", score(weights, *task.valid)
        done = step


def score(weights: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy in percent."""
    return 100 * float(np.mean(softmax.predict(weights, X) == y))


def classes(task: Task, design: Any, seed: int, rate: float) -> Rows:
    """Yield what inclusion probabilities say of the classes; all in closed form."""
    yield 0, "refused", float(design is None)
    if design is None:
        return
    b, stratified = design.inclusion(), dmsgd.Stratified(task.y, design.k).inclusion()
    shares = np.bincount(task.y, b) / design.k
    yield 0, "imbalance", 0.5 * float(np.abs(shares - 1 / shares.size).sum())
    yield 0, "distance from stratified", float(np.abs(b - stratified).max())
    if seed == 0:
        for label, share in enumerate(shares):
            yield 0, f"share of class {label}", 100 * share


def noise(task: Task, design: Any, seed: int, rate: float, draws: int) -> Rows:
    """Yield Tr Cov of the mean gradient of a batch over that of independent inclusion with its b.

    Measured after 0, 0.1, 1 and 5 epochs of training with uniform batches, on batches that this
    training has not seen: those it has seen fit better.
    """
    n, k, b = len(task.y), design.k, design.inclusion()
    steps = np.rint(np.array([0.0, 0.1, 1.0, 5.0]) * n / k).astype(int).tolist()
    batches = design.sample(draws, 2000 + seed)
    X = np.column_stack([task.inputs, np.ones(n)]).astype(float)  # with the bias
    for step, weights in task.stages(dmsgd.Uniform(n, k), seed, rate, steps):
        # The gradient of item i is the outer product of its input and its error.
        error = (softmax.probabilities(weights, task.inputs) - task.targets).astype(float) / k
        expected = X.T @ (b[:, None] * error)
        found = [np.sum((X[batch].T @ error[batch] - expected) ** 2) for batch in batches]
        squares = np.sum(X**2, axis=1) * np.sum(error**2, axis=1)
        yield step, "variance over independent", float(np.mean(found) / ((b - b**2) @ squares))


#: Items, items per class of the even task, epochs, seeds, rates, draws for the noise, and ks: ten
#: digits instead of 102 kinds have batches of a tenth of the items.
SIZES: dict[str, Any] = {
    "full": (6149, 20, 20, 20, (0.3, 1.0, 3.0, 10.0, 30.0), 200, KS),
    "quick": (1230, 4, 3, 2, (3.0,), 20, KS),
    "tiny": (193, 2, 1, 2, (0.1,), 5, (5, 8, 10, 15)),
}


def cases(quick: bool = False) -> list[Case]:
    """Return class shares, trainings, one of them with even classes, and the noise of gradients."""
    return make_cases("quick" if quick else "full")


def tiny() -> list[Case]:
    """Return the same on digits."""
    return make_cases("tiny")


def make_cases(size: str) -> list[Case]:
    """Return the cases of a size; they have the names of the paper's k."""
    items, each, epochs, seeds, rates, draws, ks = SIZES[size]
    sizes = dict(zip(KS, ks, strict=True))
    kinds = sizes[102]  # the number of classes

    def task(seed: int) -> Task:
        return load(size)

    def trained(name: str, task: Any, n: int, k: int, ws: Sequence[float]) -> Case:
        # A uniform frequency takes dozens of spectra: not in the version of a minute.
        every = training(n, k, arms(k, ws, prescribed=size != "quick"))
        return Case(f"flowers/{name}", task, every, partial(train, epochs=epochs), seeds, rates)

    shares: dict[str, Any] = {"uniform": lambda task, seed: dmsgd.Uniform(items, kinds)}
    for k, w in SHARES:
        shares[f"k={k} w={w:g}"] = lambda task, seed, w=w, k=sizes[k]: kdpp(task, w, k)
    measured = training(items, kinds, arms(kinds, (0.0, 0.5, 0.9), prescribed=False))
    rate = rates[-3:][:1]  # the best of uniform batches of 102
    return [
        Case("flowers/classes", task, shares, classes, min(seeds, 5)),
        *(trained(f"k={k}", task, items, sizes[k], WS if k < 150 else WS[:-1]) for k in KS),
        trained("even", partial(even, size, each), each * kinds, kinds, (0.0, 0.9)),
        Case("flowers/noise", task, measured, partial(noise, draws=draws), min(seeds, 10), rate),
    ]


#: The paper's Figure 8 at the end: random batches and the best k-DPP.
PAPER = {50: "84.7 → 86.7", 80: "81.8 → 86.7", 102: "84.5 → 86.5", 150: "83.1 → 85.5"}
ENDS = {"after one epoch": NAMED[1], "at the end": "accuracy"}
CLAIMS = [
    *(
        Claim(figure, f"{arm} balances the classes more than {other}", "flowers/classes", arm,
              "imbalance", other, lower=True, paper="yes", digits=3,
              note="share of a batch in the wrong class (total variation)")
        for figure, chain in (("Fig. 7", ("uniform", "k=50 w=0.3", "k=50 w=0.9")),
                              ("Fig. 11", ("uniform", "k=102 w=0", "k=102 w=0.5", "k=102 w=0.9")))
        for other, arm in pairwise(chain)
    ),
    Claim("Fig. 11", "w = 1 and k = number of classes is stratified sampling", "flowers/classes",
          "k=102 w=1", "distance from stratified", limit=1e-8, lower=True, paper="equal",
          note="largest difference of two inclusion probabilities; equal is below 1e-8"),
    Claim("Fig. 8", "w = 1 and k = 150 has no k-DPP: RankError", "flowers/classes", "k=150 w=1",
          "refused", limit=0.5, digits=0, note="1: refused, as k exceeds the rank of 102"),
    *(
        Claim(where, f"k = {k}: w = 0.9 against {other} batches {when}", f"flowers/k={k}", KDPP,
              measure, other,
              paper=PAPER[k] if other == "uniform" and measure == "accuracy" else "")
        for where, k, other in (*(("Fig. 8", k, "uniform") for k in KS),
                                ("beyond", 102, "shuffled"), ("beyond", 102, "stratified"))
        for when, measure in ENDS.items()
    ),
    *(
        Claim("beyond", f"20 items per class, k = 102: {arm} against uniform after one epoch",
              "flowers/even", arm, NAMED[1], "uniform")
        for arm in (KDPP, f"{KDPP}, frequency-matched")
    ),
    *(
        Claim("Theorem 1", f"gradient variance of {arm} over independent inclusion's, {when}",
              "flowers/noise", arm, "variance over independent", limit=1.0, step=step, lower=True,
              paper="" if "matched" in arm else "below 1", digits=2,
              note="k = 102; independent inclusion with the same probabilities; holds: below 1")
        for arm in ("k-DPP w=0", "k-DPP w=0.5", KDPP, f"{KDPP}, frequency-matched")
        for when, step in (("at the start", 0), ("after 5 epochs", None))
    ),
]  # fmt: skip

DECOMPOSED = [
    Decomposition(f"accuracy {when}, k = {k}, w = 0.9, points", f"flowers/k={k}", KDPP, measure)
    for k in KS
    for when, measure in {"after 0.3 epochs": NAMED[0.3], **ENDS}.items()
] + [Decomposition("even classes: accuracy after one epoch, k = 102, w = 0.9, points",
                   "flowers/even", KDPP, NAMED[1])]  # fmt: skip


def figures(table: Any, folder: Path) -> list[Path]:
    """Write class shares, accuracy by w, and w = 0.9 beside other batches."""
    panels = {f"k = {k}": f"flowers/k={k}" for k in KS}
    by_w = ["uniform", *(f"k-DPP w={w:g}" for w in WS)]
    others = ["uniform", "shuffled", "stratified", "pre-clustering", KDPP,
              f"{KDPP}, frequency-matched", f"{KDPP}, uniform frequency"]  # fmt: skip
    drawn = partial(lines, table, measure="accuracy", ylabel="test accuracy, %", log="x")
    return [
        class_shares(table, folder / "flowers-classes.png"),
        drawn(folder / "flowers-by-w.png", panels, by_w),
        drawn(folder / "flowers.png", panels, others),
    ]


def class_shares(table: Any, path: Path) -> Path:
    """Write Figures 7 and 11: the expected share of each class in a batch, largest class first."""
    from matplotlib.figure import Figure

    found = table.filter(experiment="flowers/classes", seed=0)
    figure = Figure(figsize=(13.5, 5), layout="constrained")
    names = ["uniform", *(f"k={k} w={w:g}" for k, w in SHARES[:-1])]
    shares = [
        own.filter(own["measure"].str.starts_with("share of"))["value"].to_numpy()
        for own in (found.filter(arm=name) for name in names)
    ]
    order = np.argsort(-shares[0], kind="stable")
    every = figure.subplots(2, 5, sharey=True).ravel()
    for axes, name, share in zip(every, names, shares, strict=True):
        axes.bar(np.arange(share.size), share[order], width=1.0, color=COLOURS[0])
        axes.axhline(100 / share.size, color="black", linewidth=0.8, linestyle="--")
        imbalance = 0.005 * np.abs(share - 100 / share.size).sum()
        axes.set(title=f"{name}: {imbalance:.2f}", xticks=[])
        axes.spines[["top", "right"]].set_visible(False)
    figure.supylabel("share of a batch, %")
    figure.supxlabel("classes, largest first; dashed: equal shares; number: imbalance")
    return save(figure, path)
