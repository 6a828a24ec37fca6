"""Figure 9: a CNN on MNIST, whose classes are balanced, with batches of 10 and 200.

The kernel is RBF on F = [(1-w)X, wH] with w = 0.5 and X the pixels in 0..1, over half of the
training set. The paper does not say which half, nor the scale: ours is the median heuristic. All
arms have Adam's rate and the dropout of the tutorial that the paper cites; those of a seed share
the start. On a large GPU all trainings take some minutes, on one CPU core most of a day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from experiments.core import Case, Claim, Decomposition, lines, training
from experiments.core.figures import differences
from experiments.datasets import Images, mnist

TITLE = "MNIST with a CNN: balanced classes, batches of 10 and 200 (Figure 9)"
W, RATE, DROPOUT = 0.5, 1e-4, 0.5
#: Items to train on, to test on, rank of the kernel's factor (set-up under a minute), hidden units.
SIZES = {
    "full": (30000, 10000, 2000, 1024),
    "quick": (2000, 300, 300, 1024),
    "tiny": (100, 20, 60, 8),
}
#: Steps after which test accuracy is measured, by k; the last ends the run.
CHECKPOINTS = {
    10: (25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000),
    200: (10, 20, 30, 40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 625, 750),
}


@cache
def load(size: str) -> Images:
    """Return half of MNIST, a part of it ("quick"), or scikit-learn's digits ("tiny")."""
    data = digits() if size == "tiny" else mnist()
    items, tested, *_ = SIZES[size]
    order = np.random.default_rng(0).permutation(len(data.y_train))
    used = np.sort(order[:items])
    return Images(
        data.x_train[used], data.y_train[used], data.x_test[:tested], data.y_test[:tested]
    )


def digits() -> Images:
    """Return 8 x 8 digits as 28 x 28 images."""
    from sklearn.datasets import load_digits

    data = load_digits()
    large = np.kron(data.images * 15, np.ones((3, 3))).astype(np.uint8)
    images, y = np.pad(large, ((0, 0), (2, 2), (2, 2))), data.target.astype(np.int64)
    return Images(images[:600], y[:600], images[600:], y[600:])


def rows(size: str) -> np.ndarray:
    """Return the pixels of every training item, in 0..1."""
    images = load(size).x_train
    return np.asarray(images.reshape(len(images), -1) / 255)


def factor(size: str) -> dmsgd.spectra.Spectrum:
    """Return the spectrum of a factor of the kernel."""
    kernel = dmsgd.kernels.RBF(dmsgd.features.concat(rows(size), load(size).y_train, W))
    return dmsgd.kernels.pivoted_cholesky(kernel, rank=SIZES[size][2], oversampling=1.0)


spectrum = cache(factor)


@cache
def prescribed(size: str, k: int) -> dmsgd.KDPP:
    """Return the k-DPP that draws all items equally often."""
    return dmsgd.KDPP(dmsgd.targets.prescribe(spectrum(size), k, "uniform"), k)


@cache
def clustered(size: str, k: int) -> Any:
    """Return batches of one item from each k-means cluster."""
    return dmsgd.designs.clustered(rows(size), k)


def arms(size: str, k: int) -> dict[str, Any]:
    """Return the arms besides uniform and shuffled; an unbiased one also has weights of items."""

    def kdpp(task: Images, seed: int) -> dmsgd.KDPP:
        return dmsgd.KDPP(spectrum(size), k)

    def unbiased(task: Images, seed: int) -> tuple[dmsgd.KDPP, np.ndarray]:
        return kdpp(task, seed), dmsgd.unbiased_weights(kdpp(task, seed))

    return {
        "stratified": lambda task, seed: dmsgd.Stratified(task.y_train, k),
        "pre-clustering": lambda task, seed: clustered(size, k),
        "k-DPP": kdpp,
        "k-DPP, frequency-matched": lambda task, seed: dmsgd.Weighted.like(kdpp(task, seed)),
        "k-DPP, uniform frequency": lambda task, seed: prescribed(size, k),
        "k-DPP, unbiased": unbiased,
    }


def run(
    task: Images, arm: Any, seed: int, rate: float, checkpoints: Sequence[int], units: int
) -> Iterator[tuple[int, str, float]]:
    """Yield the test accuracy of a training, and its mean over all checkpoints."""
    import torch

    from experiments.models import cnn

    design, weights = arm if isinstance(arm, tuple) else (arm, None)
    here, batches = cnn.device(), design.sample(checkpoints[-1], seed)
    images = cnn.pixels(task.x_train, here), torch.from_numpy(task.y_train).to(here)
    x, y, found = cnn.pixels(task.x_test, here), torch.from_numpy(task.y_test).to(here), []
    how = checkpoints, rate, seed, units, DROPOUT, weights
    for step, model in cnn.stages(*images, batches, *how):
        found.append(100 * int((cnn.predict(model, x) == y).sum()) / len(y))
        yield step, "accuracy", found[-1]
    yield checkpoints[-1], "mean accuracy", float(np.mean(found))
    if isinstance(design, dmsgd.KDPP):
        yield 0, "trace left out", 100 * design.spectrum.trace_error


def cases(quick: bool = False) -> list[Case]:
    """Return the trainings for both batch sizes."""
    if quick:
        return make_cases("quick", 2, {10: (10, (10, 30)), 200: (50, (3, 6))})
    from experiments.models import cnn

    cnn.device()
    return make_cases("full", 20, {k: (k, steps) for k, steps in CHECKPOINTS.items()})


def tiny() -> list[Case]:
    """Return the same on small digits, with two steps."""
    return make_cases("tiny", 2, {10: (2, (1, 2)), 200: (4, (1, 2))})


def make_cases(size: str, seeds: int, ks: dict[int, tuple[int, Sequence[int]]]) -> list[Case]:
    """Return the cases; ks: the paper's k -> ours and the checkpoints."""
    items, *_, units = SIZES[size]
    return [
        Case(f"mnist/k={name}", lambda seed: load(size), training(items, k, arms(size, k)),
             partial(run, checkpoints=steps, units=units), seeds, (RATE,))
        for name, (k, steps) in ks.items()
    ]  # fmt: skip


ENDS = {"at the end": "accuracy", "on average": "mean accuracy"}
AVERAGE = "on average: over all checkpoints, half of them early, where accuracy is still low"
CLAIMS = [
    *(
        Claim("Fig. 9" if arm == "k-DPP" else "beyond", f"k = {k}: {arm} against uniform {when}",
              f"mnist/k={k}", arm, measure, "uniform", digits=2,
              paper="better" if arm == "k-DPP" else "", note=AVERAGE if "mean" in measure else "")
        for arm, ends in (("k-DPP", ENDS), ("stratified", ENDS),
                          ("k-DPP, unbiased", {"on average": "mean accuracy"}))
        for k in CHECKPOINTS for when, measure in ends.items()
    ),
    Claim("beyond", "trace of the kernel that its factor leaves out, %", "mnist/k=10", "k-DPP",
          "trace left out", verdict=False),
]  # fmt: skip

DECOMPOSED = [
    Decomposition(f"accuracy {when}, k = {k}, points", f"mnist/k={k}", "k-DPP", measure, digits=2)
    for k in CHECKPOINTS
    for when, measure in ENDS.items()
]


def figures(table: Any, folder: Path) -> list[Path]:
    """Write test error over steps, and differences from uniform batches."""
    names = table.filter(experiment="mnist/k=10")["arm"].unique(maintain_order=True).to_list()
    accuracy = table.filter(measure="accuracy")
    error = accuracy.with_columns(value=100 - accuracy["value"])
    gains: dict[str, Any] = {
        f"k = {k}, {when}": (f"mnist/k={k}", measure, None)
        for k in CHECKPOINTS
        for when, measure in ENDS.items()
    }
    panels = {f"k = {k}": f"mnist/k={k}" for k in CHECKPOINTS}
    return [
        lines(error, folder / "mnist.png", panels, names, "accuracy", "test error, %", log="xy"),
        differences(table, folder / "mnist-differences.png", gains, "uniform", "points"),
    ]
