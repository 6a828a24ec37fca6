"""The paper's Figure 9: a CNN on MNIST, whose classes are balanced, with batches of 10 and 200.

The kernel is RBF on F = [(1-w)X, wH] with w = 0.5, X the pixels divided by 255, over half of the
training set. Two stages: `draw` makes all batches (needs the samplers), `dmsgd.experiments.cnn`
trains on them (needs PyTorch alone, so that it can be done on a machine with a GPU), and `assemble`
puts both together; `run` does all of it here.

Within a seed all methods share the network's random start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.experiments import figures
from dmsgd.experiments.intervals import holds, margin, paired, show, shown
from dmsgd.experiments.protocol import Claim, Progress
from dmsgd.inputs.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes

    from dmsgd.datasets import Images

TITLE = "MNIST with a CNN: balanced classes, batches of 10 and 200 (Figure 9)"

#: Name of a method -> colour and line.
METHODS = {
    "random": (figures.COLOURS[7], "-"),
    "stratified": (figures.COLOURS[2], "-"),
    "clustered": (figures.COLOURS[1], "-"),
    "k-DPP": (figures.COLOURS[0], "-"),
    "k-DPP unbiased": (figures.COLOURS[4], "--"),
}
UNBIASED = "k-DPP unbiased"


@dataclass(frozen=True)
class Config:
    """What is run.

    ks, checkpoints: batch sizes, and for each the steps after which test accuracy is measured; the
                     last ends the run (here 1.7 and 5 passes over the data).
    items:           half of the training set, drawn once (the paper does not say which half).
    w:               weight of the labels, the paper's.
    rank:            of the pivoted Cholesky factor of the kernel: set-up stays under a minute.
                     The kernel's scale, which the paper does not state, is the median heuristic.
    rate, dropout:   Adam's rate and the dropout of the tutorial that the paper cites.
    device:          "cpu", "cuda", or "auto" for cuda where there is one. All trainings take some
                     minutes on a large GPU and most of a day on one CPU core.
    """

    seeds: int = 10
    ks: tuple[int, ...] = (10, 200)
    checkpoints: tuple[tuple[int, ...], ...] = (
        (25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000),
        (10, 20, 30, 40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 625, 750),
    )
    items: int = 30000
    test_items: int = 10000
    w: float = 0.5
    rank: int = 2000
    rate: float = 1e-4
    dropout: float = 0.5
    device: str = "auto"


QUICK = Config(
    seeds=2,
    ks=(10, 50),
    checkpoints=((10, 30), (3, 6)),
    items=3000,
    test_items=300,
    rank=500,
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did with batches of k.

    shares:   (classes,) expected share of a batch by class, from `inclusion()`.
    accuracy: (seeds, checkpoints) on the test set.
    """

    k: int
    method: str
    shares: FloatArray
    accuracy: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All methods, the kernel's scale and rank, and the share of its trace the factor leaves out.

    largest_weight: by k, the largest weight of the unbiased update relative to the mean one.
    """

    config: Config
    scale: float
    rank: int
    trace_error: float
    largest_weight: FloatArray
    outcomes: tuple[Outcome, ...]

    def accuracy(self, k: int, method: str) -> FloatArray:
        """Return test accuracy, shape (seeds, checkpoints)."""
        return next(o.accuracy for o in self.outcomes if (o.k, o.method) == (k, method))


@dataclass(frozen=True, eq=False)
class Drawn:
    """The first stage: what to train on, and what is known before training.

    items:   the chosen half of the training set; batches count within it.
    batches: (k, method) -> (seeds, steps, k); the unbiased update has the k-DPP's.
    weights: k -> weight of every item in the unbiased update.
    shares:  (k, method) -> expected share of a batch by class.
    """

    items: IntArray
    batches: dict[tuple[int, str], IntArray]
    weights: dict[int, FloatArray]
    shares: dict[tuple[int, str], FloatArray]
    scale: float
    rank: int
    trace_error: float


def load(config: Config, data_dir: str | None = None) -> Images:
    """Return MNIST."""
    from dmsgd import datasets

    return datasets.mnist(data_dir)


def run(config: Config, data: Images, progress: Progress | None = None) -> Result:
    """Return the accuracy curves of all methods, both stages on this machine."""
    import torch

    from dmsgd.experiments import cnn

    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    drawn = draw(config, data)
    half, tested = drawn.items, slice(config.test_items)
    train_set = cnn.pixels(data.x_train[half], device), _labels(data.y_train[half], device)
    test_set = cnn.pixels(data.x_test[tested], device), _labels(data.y_test[tested], device)
    jobs = [
        (k, method, seed) for seed in range(config.seeds) for k in config.ks for method in METHODS
    ]
    curves: dict[tuple[int, str], list[list[float]]] = {job[:2]: [] for job in jobs}
    for done, (k, method, seed) in enumerate(jobs, start=1):
        unbiased = method == UNBIASED
        curve = cnn.train(
            *train_set,
            *test_set,
            drawn.batches[k, "k-DPP" if unbiased else method][seed],
            drawn.weights[k] if unbiased else None,
            config.checkpoints[config.ks.index(k)],
            config.rate,
            config.dropout,
            seed,
        )
        curves[k, method].append(curve)
        if progress is not None:
            progress(done / len(jobs))
    return assemble(config, drawn, {key: np.array(rows) for key, rows in curves.items()})


def draw(config: Config, data: Images) -> Drawn:
    """Return all batches of all methods and seeds."""
    if len(config.ks) != len(config.checkpoints):
        raise ValueError(f"{len(config.ks)} batch sizes, but {len(config.checkpoints)} checkpoints")
    order = np.random.default_rng(0).permutation(len(data.y_train))
    items = np.sort(order[: config.items])
    X, y = data.x_train[items].reshape(len(items), -1) / 255, data.y_train[items]
    kernel = dmsgd.RBF(dmsgd.concat(X, y, config.w))
    spectrum = dmsgd.pivoted_cholesky(kernel, rank=config.rank, oversampling=1.0)
    batches, weights, shares = {}, {}, {}
    for k, checkpoints in zip(config.ks, config.checkpoints, strict=True):
        designs: dict[str, dmsgd.Design] = {
            "random": dmsgd.Uniform(len(items), k),
            "stratified": dmsgd.Stratified(y, k),
            "clustered": dmsgd.clustered(X, k),
            "k-DPP": dmsgd.KDPP(spectrum, k),
        }
        for method, design in designs.items():
            draws = [design.sample(checkpoints[-1], seed) for seed in range(config.seeds)]
            batches[k, method] = np.array(draws)
            shares[k, method] = np.bincount(y, design.inclusion(), minlength=10) / k
        weights[k] = dmsgd.unbiased_weights(designs["k-DPP"])
        shares[k, UNBIASED] = shares[k, "k-DPP"]
    return Drawn(items, batches, weights, shares, kernel.scale, spectrum.rank, spectrum.trace_error)


def assemble(config: Config, drawn: Drawn, curves: Mapping[tuple[int, str], FloatArray]) -> Result:
    """Return the Result from both stages; curves: (k, method) -> (seeds, checkpoints) accuracy."""
    largest = [drawn.weights[k].max() * k for k in config.ks]  # the mean weight in a batch is 1/k
    outcomes = tuple(
        Outcome(k, method, drawn.shares[k, method], np.asarray(curves[k, method]))
        for k in config.ks
        for method in METHODS
    )
    return Result(config, drawn.scale, drawn.rank, drawn.trace_error, np.array(largest), outcomes)


def claims(result: Result) -> list[Claim]:
    """Return what the paper says about balanced data beside what we found."""
    found = []
    for number, k in enumerate(result.config.ks):
        for method in ("k-DPP", "stratified", "clustered", UNBIASED):
            found += _comparisons(result, k, method)
        statement = f"largest weight of the unbiased update over the mean one, k = {k}"
        found.append(Claim("beyond", statement, "", f"{result.largest_weight[number]:.1f}"))
    note = f"RBF scale {result.scale:.2f}; factor of rank {result.rank}"
    error = f"{100 * result.trace_error:.1f} %"
    return [*found, Claim("beyond", "trace of the kernel left out", "", error, note=note)]


def _labels(labels: IntArray, device: str) -> torch.Tensor:
    import torch

    return torch.from_numpy(labels).to(device)


def _comparisons(result: Result, k: int, method: str) -> list[Claim]:
    """Return whether a method is ahead of random at the end, and over the whole curve."""
    where, paper = ("Fig. 9", "better than random") if method == "k-DPP" else ("beyond", "")
    ours, random = result.accuracy(k, method), result.accuracy(k, "random")
    steps = result.config.checkpoints[result.config.ks.index(k)]
    end = paired(100 * ours[:, -1], 100 * random[:, -1])
    curve = paired(100 * ours.mean(axis=1), 100 * random.mean(axis=1))
    of_end = (
        f"{shown(*end, 2, sign=True)} ({show(ours[:, -1], 2)} against {show(random[:, -1], 2)})"
    )
    name = f"balanced data, k = {k}: {method} ahead of random"
    note = "points, paired over seeds"
    return [
        Claim(where, f"{name} after {steps[-1]} steps", paper, of_end, holds(*end), note),
        Claim(
            where,
            f"{name}, mean over all checkpoints",
            paper,
            shown(*curve, 2, sign=True),
            holds(*curve),
            f"{note}; half of the checkpoints are early, where accuracy is still low",
        ),
    ]


def plot(result: Result, folder: Path) -> list[Path]:
    """Write test error over iterations, and by how much it is below random's, for every k."""
    from matplotlib.figure import Figure

    ks = result.config.ks
    figure = Figure(figsize=(max(5.4 * len(ks), 7), 6.6), layout="constrained")
    axes = figure.subplots(2, len(ks), squeeze=False, height_ratios=(3, 2))
    for column, k in enumerate(ks):
        above, below = axes[:, column]
        errors = {method: 100 - 100 * result.accuracy(k, method) for method in METHODS}
        gains = {m: 100 - 100 * error / errors["random"] for m, error in errors.items()}
        _curves(above, result, k, errors)
        _curves(below, result, k, gains)
        above.set_yscale("log")
        above.set_yticks(ticks := [2, 3, 5, 10, 20, 30, 50, 80], [str(tick) for tick in ticks])
        above.set_yticks([], minor=True)
        above.set_ylim(errors["random"].min() * 0.9, 100)
        above.set_title(f"k = {k}")
        below.set_xlabel(f"iterations (batches of {k})")
    axes[0, 0].set_ylabel("test error, %")
    axes[1, 0].set_ylabel("fewer errors than random, %")
    axes[0, 0].legend(frameon=False, loc="lower left")
    figure.suptitle(f"MNIST, CNN: mean of {result.config.seeds} seeds, 95 % intervals")
    return figures.save(figure, folder, "mnist")


def _curves(axes: Axes, result: Result, k: int, values: dict[str, FloatArray]) -> None:
    """Draw mean and interval of every method's (seeds, checkpoints) values."""
    steps = result.config.checkpoints[result.config.ks.index(k)]
    for method, (colour, line) in METHODS.items():
        mean = values[method].mean(axis=0)
        half = np.array([margin(column) for column in values[method].T])
        axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.13, linewidth=0)
        axes.plot(steps, mean, line, color=colour, label=method)
    _dress(axes)


def _dress(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
