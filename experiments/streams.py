"""Sensor streams, where neighbours in time are nearly the same: do diverse batches train faster?

EEG (eyes open or closed), a room (occupied or not) and a robot's sonars (four moves). A stream is
cut into 40 blocks of time, ten of which are for testing; the split is the same for all seeds. A
softmax and a network with one hidden layer see one row, a small 1-d CNN the last 16 rows, and
designs one row in all cases. "Cells of time" are k equal parts of the stream, one item of each in
a batch: they need no features. Rates are chosen by the training loss.

The variance ratio is that of the mean gradient of a batch, at the end of training, over that of
uniform batches at the same weights, both estimated from DRAWN batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from experiments import datasets
from experiments.core import Case, Claim, bars
from experiments.core.compare import Difference, compare, mean, values
from experiments.core.protocol import TUNING
from experiments.models import convolution

TITLE = "Sensor streams: neighbours in time are nearly the same"
STREAMS, MODELS, KS = ("eeg", "occupancy", "sonar"), ("softmax", "MLP", "CNN"), (16, 64)
EARLY = "training loss, first epoch"
BLOCKS, TESTED, EPOCHS, DRAWN = 40, 10, (1, 3, 10), 400
#: Rows that the CNN sees; those that a filter sees, and how far apart; hidden units.
WINDOW, WIDTH, STRIDE = 16, 5, 2
UNITS = {"softmax": 0, "MLP": 32, "CNN": 16}
#: Scale of the RBF kernel over the suggested one, rank of its factor, smallest eigenvalue kept.
STRETCH, RANK, SMALLEST = 3.0, 300, 1e-11
KINDS = ("stratified", "cells", "cells of time", "k-DPP", "k-DPP, frequency-matched",
         "k-DPP, uniform frequency")  # fmt: skip
SPREAD = KINDS[:4]
#: The middle of the rates at k = 16, by trials with shuffled epochs; twice as much at k = 64.
RATES = {
    "eeg": {"softmax": 0.03, "MLP": 0.2, "CNN": 0.1},
    "occupancy": {"softmax": 0.4, "MLP": 0.6, "CNN": 0.4},
    "sonar": {"softmax": 0.12, "MLP": 0.3, "CNN": 0.15},
}


@dataclass(frozen=True, eq=False)
class Task:
    """Training items in the order of time: rows (n, channels), windows, classes; those to test."""

    rows: np.ndarray
    y: np.ndarray
    inputs: dict[str, np.ndarray]
    test: dict[str, np.ndarray]
    test_y: np.ndarray

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(max(self.y.max(), self.test_y.max())) + 1


@cache
def load(name: str) -> Task:
    """Return a stream, columns of mean 0 and deviation 1 on training items, spikes cut at 5."""
    data = walk() if name == "walk" else datasets.stream(name)
    block = blocks(data.recording)
    tested = np.isin(block, np.random.default_rng(80).permutation(BLOCKS)[:TESTED])
    middle, spread = np.median(data.X[~tested], axis=0), np.std(data.X[~tested], axis=0)
    for _ in range(3):  # without spikes
        near = ~tested & (np.abs(data.X - middle) < 5 * spread).all(axis=1)
        middle, spread = data.X[near].mean(axis=0), data.X[near].std(axis=0)
    X = np.clip((data.X - middle) / spread, -5, 5).astype(np.float32)
    last = np.arange(WINDOW - 1, len(X))
    last = last[block[last] == block[last - WINDOW + 1]]  # whose window lies in one block
    seen = np.arange(WIDTH) + np.arange(0, WINDOW - WIDTH + 1, STRIDE)[:, None] - WINDOW + 1
    train, test = last[~tested[last]], last[tested[last]]

    def inputs(items: np.ndarray) -> dict[str, np.ndarray]:
        windows = X[items[:, None, None] + seen].reshape(len(items), len(seen), -1)
        return {"row": X[items][:, None], "window": windows}

    return Task(X[train], data.y[train], inputs(train), inputs(test), data.y[test])


def blocks(recording: np.ndarray) -> np.ndarray:
    """Return the block of each row; none has rows of two recordings."""
    sizes = np.bincount(recording)
    counts = np.maximum(np.rint(BLOCKS * sizes / sizes.sum()).astype(int), 1)
    counts[0] += BLOCKS - counts.sum()
    parts = [np.arange(size) * count // size for size, count in zip(sizes, counts, strict=True)]
    return np.concatenate([part + counts[:at].sum() for at, part in enumerate(parts)])


def walk() -> datasets.Stream:
    """Return a random walk of three channels, for tests."""
    X = np.cumsum(np.random.default_rng(0).standard_normal((1600, 3)), axis=0)
    return datasets.Stream(X, (X[:, 0] > np.median(X[:, 0])).astype(np.int64), np.zeros(1600, int))


@cache
def design(name: str, kind: str, k: int) -> Any:
    """Return a design of the training items, the same for all models and seeds.

    Kernels are RBF, with the 2k + 32 leading directions of a factor.
    """
    task = load(name)
    n, X = len(task.y), task.rows.astype(np.float64)
    if kind == "uniform":
        return dmsgd.Uniform(n, k)
    if kind == "stratified":
        return dmsgd.Stratified(task.y, k)
    if kind == "cells":
        return dmsgd.cells(X, k)
    if kind == "cells of time":
        return dmsgd.Stratified(np.arange(n) * k // n, k)
    if kind == "k-DPP, frequency-matched":
        return dmsgd.Weighted.like(design(name, "k-DPP", k))
    scale = STRETCH * dmsgd.designs.suggest_scale(X, k)
    factor = dmsgd.kernels.pivoted_cholesky(dmsgd.kernels.RBF(X, scale), rank=min(RANK, n // 2))
    r = min(2 * k + 32, int(np.sum(factor.values > SMALLEST * factor.values[0])))
    leading = np.asarray(factor.vectors)[:, :r] * np.sqrt(factor.values[:r])
    target = "uniform" if kind == "k-DPP, uniform frequency" else None
    return dmsgd.diversify(leading, k, kernel="linear", normalize=False, target=target)


def arms(name: str, k: int) -> dict[str, Any]:
    """Return independent batches and, below them, partitions of each kind."""

    def drawn(kind: str, task: Task, seed: int) -> Any:
        return design(name, kind, k)

    def dealt(kind: str, task: Task, seed: int) -> Any:
        return dmsgd.Partition(design(name, kind, k))

    return {
        "uniform": partial(drawn, "uniform"),
        "shuffled": partial(dealt, "uniform"),
        **{kind: partial(drawn, kind) for kind in KINDS},
        **{f"partition of {kind}": partial(dealt, kind) for kind in SPREAD},
    }


def run(
    model: str, epochs: tuple[int, ...], task: Task, design: Any, seed: int, rate: float
) -> Iterator[tuple[int, str, float]]:
    """Yield loss and accuracy after some epochs, and the variance ratio at the end."""
    seen = "window" if model == "CNN" else "row"
    x, n, k = task.inputs[seen], len(task.y), design.k
    targets = np.eye(task.classes, dtype=np.float32)[task.y]
    rng = np.random.default_rng([seed, 81])
    network = convolution.initial(x.shape[2], UNITS[model], task.classes, rng)
    steps = [epoch * (n // k) for epoch in epochs]
    batches, first = design.sample(steps[-1], seed), 0
    with np.errstate(all="ignore"):  # rates that diverge
        for last in steps:
            network = convolution.train(network, x, targets, batches[first:last], rate)
            yield last, "training loss", network.loss(x, task.y)
            yield last, "accuracy", network.accuracy(task.test[seen], task.test_y)
            if first == 0:
                yield last, EARLY, network.loss(x, task.y)
            first = last
        if seed < TUNING:
            noise = [
                convolution.variance(network, x, targets, each.sample(DRAWN, seed, start=10**6))
                for each in (design, dmsgd.Uniform(n, k))
            ]
            yield steps[-1], "variance ratio", noise[0] / noise[1]


def make_case(
    name: str, model: str, k: int, seeds: int, rates: tuple[float, ...], epochs: tuple[int, ...]
) -> Case:
    """Return all arms of a stream, a model and a batch size."""
    return Case(f"streams/{name}, {model}, k={k}", lambda seed: load(name), arms(name, k),
                partial(run, model, epochs), seeds, rates, "training loss", True, 2)  # fmt: skip


def grid(name: str, model: str, k: int) -> tuple[float, ...]:
    """Return seven rates, each twice the one before."""
    return tuple(RATES[name][model] * (k / 16) ** 0.5 * 2.0**power for power in range(-3, 4))


def cases(quick: bool = False) -> list[Case]:
    """Return all streams, models and batch sizes; `quick` is the smallest stream with a softmax."""
    if quick:
        return [make_case("sonar", "softmax", 64, 2, (0.3,), (1, 3))]
    return [
        make_case(name, model, k, 20, grid(name, model, k), EPOCHS)
        for name in STREAMS for model in MODELS for k in KS
    ]  # fmt: skip


def tiny() -> list[Case]:
    """Return all models on a random walk, with an epoch."""
    return [make_case("walk", model, 8, 2, (0.1,), (1,)) for model in MODELS]


TRAINED = ("partition of cells of time", "partition of cells", "partition of k-DPP")
NOTE = "over that of shuffled epochs; each arm at its own best rate, which other seeds chose"
CLAIMS = [
    *(
        Claim("beyond", f"{name}, {model}, k = {k}: less training loss after {when}, {arm}",
              f"streams/{name}, {model}, k={k}", arm, measure, "shuffled", lower=True, ratio=True,
              note=NOTE)
        for when, measure in (("1 epoch", EARLY), ("10 epochs", "training loss"))
        for name in STREAMS for model in MODELS for k in KS[1:] for arm in TRAINED
    ),
    *(
        Claim("beyond", f"{name}, {model}, k = {k}: more accurate after 10 epochs, {TRAINED[0]}",
              f"streams/{name}, {model}, k={k}", TRAINED[0], "accuracy", "shuffled")
        for name in STREAMS for model in MODELS for k in KS[1:]
    ),
]  # fmt: skip


def found(table: Any, title: str, arm: str, what: str) -> Difference:
    """Return the logarithm of a measure over that of shuffled epochs, or a variance ratio's."""
    where = f"streams/{title}"
    if what == "variance ratio":
        return mean(np.log(values(table, where, arm, what)))
    return compare(table, where, arm, "shuffled", what, ratio=True)


MEASURES = {"training loss, 1 epoch": EARLY, "10 epochs": "training loss",
            "variance of gradients (over uniform batches')": "variance ratio"}  # fmt: skip


def figures(table: Any, folder: Path) -> list[Path]:
    """Write losses over those of shuffled epochs, and variances over those of uniform batches."""
    run = table["experiment"].unique(maintain_order=True).to_list()
    titles = [each.removeprefix("streams/") for each in run]
    panels = {
        head: {f"{title}: {arm}": found(table, title, arm, what)
               for title in titles if title.endswith("k=64") for arm in TRAINED}
        for head, what in MEASURES.items()
    }  # fmt: skip
    return [bars(folder / "streams.png", panels, "over shuffled epochs'", factor=True)]


def measures_table(table: Any) -> list[list[str]]:
    """Return losses over shuffled epochs', accuracies and variance ratios of all arms."""
    rows = [["stream, model, k", "batches", *MEASURES, "test accuracy, 10 epochs"]]
    for where in table["experiment"].unique(maintain_order=True):
        title = where.removeprefix("streams/")
        for arm in table.filter(experiment=where)["arm"].unique(maintain_order=True):
            cells = [found(table, title, arm, what).factor() for what in MEASURES.values()]
            accuracy = mean(values(table, where, arm, "accuracy")).text(sign=False)
            rows.append([title, arm, *cells, accuracy])
    return rows


TABLES = {"streams": measures_table}
