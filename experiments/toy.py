"""Figure 2: which batches restore the balance of an imbalanced subset of points in the plane?

The population is uniform on the unit square; points near one spot are observed, others rarely.
Imbalance is the total variation between a design's weight on the cells of a grid that hold data and
equal weight: the share of the weight that lies in the wrong cell.

k = 10 is in a comment of the paper's source. The kernel's scale, 1/sqrt(k), is our choice: the
distance between neighbours when k points are spread evenly. With a much smaller one all points look
unlike (plain SGD), with a much larger one the corners are drawn too often.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from experiments.core import Case, Claim
from experiments.core.figures import COLOURS, save

TITLE = "Figure 2: balance restored from an imbalanced subset of the plane"
K, CELLS, STRIPS, CLUSTERS = 10, 8, 4, 4


def points(seed: int, size: int = 2500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the population, what is observed of it, and the k-means cluster of each point."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng([0, seed])
    population = rng.uniform(size=(size, 2))
    distance = np.linalg.norm(population - (0.28, 0.30), axis=1)
    keep = np.maximum(0.08, np.exp(-0.5 * (distance / 0.13) ** 2))
    observed = population[rng.random(len(population)) < keep]
    means = KMeans(CLUSTERS, n_init=10, random_state=int(rng.integers(2**31))).fit(observed)
    return population, observed, means.labels_


ARMS = {
    "uniform": lambda task, seed: dmsgd.Uniform(len(task[1]), K),
    "stratified": lambda task, seed: dmsgd.Stratified((STRIPS * task[1][:, 0]).astype(int), K),
    "pre-clustering": lambda task, seed: dmsgd.Stratified(task[2], K),
    "k-DPP": lambda task, seed: dmsgd.diversify(task[1], K, kernel="rbf", scale=K**-0.5),
}


def imbalance(where: np.ndarray, weight: np.ndarray) -> float:
    """Return the share of the weight that lies in the wrong cell."""
    cell = np.minimum((where * CELLS).astype(int), CELLS - 1) @ [CELLS, 1]
    mass = np.bincount(np.unique(cell, return_inverse=True)[1], weight) / weight.sum()
    return float(0.5 * np.abs(mass - 1 / mass.size).sum())


def run(task: Any, design: Any, seed: int, rate: float) -> Any:
    """Yield the imbalance of the design's inclusion probabilities."""
    yield 0, "imbalance", imbalance(task[1], design.inclusion())


def cases(quick: bool = False) -> list[Case]:
    """Return the four designs on independent data sets."""
    return [Case("toy", points, ARMS, run, seeds=5 if quick else 20)]


def tiny() -> list[Case]:
    """Return the same on few points, for tests."""
    return [Case("toy", lambda seed: points(seed, 300), ARMS, run, seeds=2)]


CLAIMS = [
    Claim("Fig. 2", f"the k-DPP restores the balance better than {other}", "toy", "k-DPP",
          "imbalance", other, lower=True, paper="yes", digits=3)
    for other in ("stratified", "pre-clustering")
]  # fmt: skip


def figures(table: Any, folder: Path) -> list[Path]:
    """Write the panels for seed 0: the area of a point is its inclusion probability."""
    from matplotlib.figure import Figure

    task = points(0)
    figure = Figure(figsize=(8, 6.6), layout="constrained")
    panels = {"true population": (task[0], np.ones(len(task[0])), 2.0)}
    panels |= {
        {"uniform": "data set"}.get(name, name): (task[1], arm(task, 0).inclusion(), 12.0)
        for name, arm in ARMS.items()
    }
    every = figure.subplots(2, 3).ravel()
    for axes, (name, (where, weight, area)) in zip(every, panels.items(), strict=False):
        colour = [COLOURS[each] for each in task[2]] if name == "pre-clustering" else COLOURS[0]
        axes.scatter(*where.T, s=area * weight / weight.mean(), c=colour, alpha=0.8, linewidth=0)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[], yticks=[], aspect="equal")
        axes.set_title(name, fontsize=17)
        axes.set_xlabel(f"imbalance {imbalance(where, weight):.2f}", fontsize=17)
    every[-1].axis("off")
    text = (
        f"Area: how often a\npoint is in a batch\nof {K}.\n\nImbalance: share of\n"
        f"the weight in the\nwrong cell of an\n{CELLS} x {CELLS} grid."
    )
    every[-1].text(0.0, 0.5, text, fontsize=16, va="center", transform=every[-1].transAxes)
    return [save(figure, folder / "toy.png")]
