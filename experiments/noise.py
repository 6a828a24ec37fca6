"""How noisy are gradients when every item is drawn equally often (target "uniform")?

The mean gradient of such a batch is unbiased without weights, so its variance compares directly
with that of a uniform batch. It is measured exactly, along a training with uniform batches, for
several kernels on three problems, in percent of the variance of uniform batches.

    regression  least squares on 1, 3 or 10 columns of scikit-learn's diabetes data; RBF kernels on
                them with or without the outcome y, on which the gradient (xᵀθ - y) x depends as
                much as on x; or on numbers that mean nothing
    flowers     the 102-class softmax on Oxford-102; linear kernels on [(1-w)X, wH], X of unit rows
    digits      a softmax on MNIST pixels; RBF kernels on [(1-w)X, wH], as in the paper

Arms with the kernel's own inclusion probabilities b have weights 1/(n b), unbiased too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments import datasets
from experiments.core import Case, Claim, Decomposition
from experiments.core.compare import mean
from experiments.core.figures import dress, save
from experiments.models import softmax
from experiments.models.gradient_variance import Moments, reasons, uniform_variance

TITLE = "Gradient variance when every item is drawn equally often (uniform target)"
PROBLEMS = {"regression": 400, "flowers": 1000, "digits": 1000}  # and their items
EVEN, MATCHED = "k-DPP, uniform frequency", "k-DPP, frequency-matched"
REASONS = ("seen", "likeness", "strength")

#: A kernel's name, the kernel, and the gradients of all items by the steps of training before them.
Problem = list[tuple[str, dmsgd.kernels.Kernel, dict[int, np.ndarray]]]


@dataclass(frozen=True)
class Size:
    """What is run."""

    items: int = 1000
    k: int = 40
    steps: tuple[int, ...] = (0, 10, 100, 1000)
    columns: tuple[int, ...] = (1, 3, 10)  # of the regression
    stretches: tuple[float, ...] = (1.0, 3.0)  # of its RBF scales over `suggest_scale`
    directions: int = 198  # of the flowers in the kernel
    rank: int = 300  # of the digits' kernels: 0.95 of the trace or more
    ws: tuple[float, ...] = (0.0, 0.5, 0.9, 0.95)


@lru_cache(5)
def regression(size: Size, seed: int) -> Problem:
    """Return least squares on some columns, those first that predict most: bmi, s5, bp."""
    from sklearn.datasets import load_diabetes

    found: Problem = []
    for count in size.columns:
        rng = np.random.default_rng([seed, 10])
        X, y = load_diabetes(return_X_y=True)
        rows = rng.permutation(y.size)[: min(size.items, PROBLEMS["regression"])]
        X, y = X[rows][:, (2, 8, 3, 0, 1, 4, 5, 6, 7, 9)[:count]], y[rows]
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
        A = np.column_stack([X, np.ones(y.size)])
        theta, gradients, first = 0.1 * rng.standard_normal(A.shape[1]), {}, 0
        for last in size.steps:
            for batch in dmsgd.Uniform(y.size, size.k).sample(last, seed)[first:]:
                theta = theta - 0.05 * A[batch].T @ (A[batch] @ theta - y[batch]) / size.k
            gradients[last], first = (A @ theta - y)[:, None] * A, last
        name = f"{count} column{'s' if count > 1 else ''}"
        seen = {f"{name} and y": np.column_stack([X, y])} | ({name: X} if count > 1 else {})
        if count == 10:
            seen["3 random numbers"] = rng.standard_normal((y.size, 3))
        for name, F in seen.items():
            for times in size.stretches:
                kernel = dmsgd.kernels.RBF(F, times * dmsgd.designs.suggest_scale(F, size.k))
                found.append((f"{name}, scale x {times:g}", kernel, gradients))
    return found


@lru_cache(5)
def classification(load: Callable[[str], Any], name: str, size: Size, seed: int) -> Problem:
    """Return the softmax on a part of the flowers or the digits."""
    flowers, (X, labels) = name == "flowers", load(name)
    rows = np.random.default_rng([seed, 11 if flowers else 12]).permutation(labels.size)
    X, y = X[rows[: size.items]], labels[rows[: size.items]]
    if flowers:
        X = np.asarray(dmsgd.features.normalize(X))
        U, s, _ = np.linalg.svd(X, full_matrices=False)
        F, rate, inputs = (U * s)[:, : size.directions], 1.0, 10 * X
        kernels = [dmsgd.kernels.Linear(dmsgd.features.concat(F, y, w)) for w in size.ws]
    else:
        rate, inputs = 0.1, X.reshape(y.size, -1) / 255
        mixed = [dmsgd.features.concat(inputs, y, w) for w in size.ws]
        spectra = [dmsgd.kernels.RBF(F).spectrum() for F in mixed]
        roots = [(each.vectors * np.sqrt(each.values))[:, : size.rank] for each in spectra]
        kernels = [dmsgd.kernels.Linear(each) for each in roots]
    targets = np.eye(int(labels.max()) + 1)[y]
    batches = dmsgd.Uniform(y.size, size.k).sample(size.steps[-1], seed)
    rng = np.random.default_rng([seed, 1])
    weights = softmax.initial_weights(inputs.shape[1], targets.shape[1], rng)
    gradients, first = {}, 0
    for last in size.steps:
        weights = softmax.train(weights, inputs, targets, batches[first:last], rate)
        errors = softmax.probabilities(weights, inputs) - targets
        gradients[last], first = softmax.softmax_gradients(inputs, errors), last
    return [(f"w={w:g}", kernel, gradients) for w, kernel in zip(size.ws, kernels, strict=True)]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the long-tailed part of Oxford-102, or MNIST's training images; and classes."""
    if name == "flowers":
        return datasets.flowers().part("test")
    return (data := datasets.mnist()).x_train, data.y_train


def designs(arm: str, k: int, task: Problem, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield a design and its weights (None: the mean of a batch) for each kernel."""
    for _, kernel, _ in task:
        if arm == "uniform":
            yield dmsgd.Uniform(kernel.n, k), None
        elif arm == EVEN:
            yield dmsgd.KDPP(dmsgd.targets.prescribe(kernel, k, "uniform"), k), None
        else:
            design = dmsgd.KDPP(kernel, k)
            weights = dmsgd.unbiased_weights(design)
            yield (dmsgd.Weighted.like(design) if arm == MATCHED else design), weights


def run(task: Problem, arm: Any, seed: int, rate: float) -> Iterator[tuple[int, str, float]]:
    """Yield the variance by kernel and step and what it depends on; then over all of them."""
    ratios, told = [], []
    for (name, _, every), (design, weights) in zip(task, arm, strict=True):
        moments = Moments(design) if isinstance(design, dmsgd.KDPP) else None
        for step, gradients in every.items():
            if moments is None:
                found = dmsgd.diagnostics.gradient_variance(design, gradients, weights).variance
            else:
                found = moments.variance(gradients, weights)
            ratios.append(100 * found / uniform_variance(gradients, design.k))
            yield step, f"variance, {name}", ratios[-1]
            if moments is not None and weights is None:
                why = reasons(design, gradients)
                yield from ((step, f"{reason}, {name}", why[reason]) for reason in REASONS)
                told.append(1 - why["likeness"] * why["strength"])
    yield 0, "mean variance", np.mean(ratios)
    yield 0, "largest variance", max(ratios)
    if told:
        yield 0, "correlation", np.corrcoef(ratios, told)[0, 1]


def cases(quick: bool = False) -> list[Case]:
    """Return the three problems."""
    small = Size(300, 20, (0, 10, 100), (1, 10), (3.0,), 64, 120, (0.0, 0.9))
    return _cases(small if quick else Size(), 5)


def tiny() -> list[Case]:
    """Return the three problems on few items of scikit-learn's data."""
    from sklearn.datasets import load_digits

    size = Size(60, 6, (0, 5), (1,), (3.0,), 20, 30, (0.9,))
    return _cases(size, 2, lambda name: load_digits(return_X_y=True))


def _cases(size: Size, seeds: int, load: Callable[[str], Any] = load) -> list[Case]:
    tasks = {name: partial(classification, load, name, size) for name in PROBLEMS}
    tasks["regression"] = partial(regression, size)
    arms = {arm: partial(designs, arm, size.k) for arm in ("uniform", "k-DPP", MATCHED, EVEN)}
    return [Case(f"noise/{name}", task, arms, run, seeds) for name, task in tasks.items()]


CLAIMS = [
    claim
    for name in PROBLEMS
    for claim in (
        Claim("beyond", f"{name}: {EVEN}, less than 2 % noisier than uniform batches with any "
              "kernel, at any step", f"noise/{name}", EVEN, "largest variance", limit=102,
              lower=True),
        Claim("beyond", f"{name}: {EVEN}, less noisy than k-DPP with weights 1/(n b)",
              f"noise/{name}", EVEN, "mean variance", "k-DPP", lower=True),
        Claim("beyond", f"{name}: correlation with 1 - likeness x strength above 0.9",
              f"noise/{name}", EVEN, "correlation", limit=0.9, digits=4),
    )
]  # fmt: skip
DECOMPOSED = [
    Decomposition(f"{name}: less gradient variance, unbiased, % of uniform batches'",
                  f"noise/{name}", "k-DPP", "mean variance", lower=True)
    for name in PROBLEMS
]  # fmt: skip


def by_kernel(table: pl.DataFrame, arm: str = EVEN) -> pl.DataFrame:
    """Return a row for each experiment, kernel, step and seed: its variance, seen and so on."""
    both = pl.col("measure").str.splitn(", ", 2).struct.rename_fields(["what", "kernel"])
    found = table.filter(arm=arm).with_columns(both).unnest("measure").drop_nulls("kernel")
    return found.pivot("what", index=["experiment", "kernel", "step", "seed"], values="value")


def rows(table: pl.DataFrame) -> list[list[str]]:
    """Return variances of uniform frequency along training, why, and those of the other arms."""
    found, steps = by_kernel(table), table["step"].unique().sort().to_list()
    others = [by_kernel(table, arm) for arm in (MATCHED, "k-DPP")]
    lines = [["problem", "kernel on", *(f"{step} steps" for step in steps), "worth", *REASONS,
              "frequency-matched", "k-DPP"]]  # fmt: skip
    for key, own in found.group_by("experiment", "kernel", maintain_order=True):
        problem, here = str(key[0]).partition("/")[2], {"experiment": key[0], "kernel": key[1]}
        along = [own.filter(step=step) for step in steps]
        ends, rest = (along[0], along[-1]), 1 / PROBLEMS[problem]
        cells = [mean(each["variance"].to_numpy()).text(0, sign=False) for each in along]
        sizes = [1 / (end["variance"] / 100 * (1 / Size.k - rest) + rest) for end in ends]
        pairs = [[f"{size.mean():.0f}" for size in sizes]]
        pairs += [[f"{end[why].mean():.2f}" for end in ends] for why in REASONS]
        cells += [" … ".join(dict.fromkeys(pair)) for pair in pairs]
        for other in others:
            by_seed = other.filter(**here).group_by("seed").agg(pl.col("variance").mean())
            cells.append(mean(by_seed["variance"].to_numpy()).text(0, sign=False))
        lines.append([problem, str(key[1]), *cells])
    return lines


TABLES = {"noise": rows}


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write the variance against what the kernel sees, and against 1 - likeness x strength."""
    from matplotlib.figure import Figure

    figure, found = Figure(figsize=(10, 4.6), layout="constrained"), by_kernel(table)
    left, right = figure.subplots(1, 2, sharey=True)
    for name, marker in zip(PROBLEMS, "osD", strict=True):
        own = found.filter(experiment=f"noise/{name}")
        look = {"c": own["strength"], "marker": marker, "vmin": 0, "vmax": 1, "s": 20}
        told = 100 - 100 * own["likeness"] * own["strength"]
        left.scatter(100 * own["seen"], own["variance"], cmap="viridis_r", label=name, **look)
        dots = right.scatter(told, own["variance"], cmap="viridis_r", **look)
    right.plot([0, 100], [0, 100], color="black", linewidth=0.8)
    left.set(title="The kernel must see the gradients", ylim=(0, 105),
             xlabel="share of the gradients that the kernel sees, %",
             ylabel="gradient variance, % of uniform batches'")  # fmt: skip
    right.set(title="... alike for items that exclude each other", xlim=(0, 105),
              xlabel="1 - likeness x strength, %")  # fmt: skip
    left.legend(frameon=False, loc="lower left")
    figure.colorbar(dots, ax=right, label="strength (1: projection, 0: uniform batches)")
    for axes in (left, right):
        axes.axhline(100, color="black", linewidth=0.8)
        dress(axes)
    return [save(figure, folder / "noise.png")]
