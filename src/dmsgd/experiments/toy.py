"""The paper's Figure 2: from an imbalanced subset of points in the plane, restore the balance.

The population is uniform on the unit square. Points near one spot are observed, the others only
rarely. Three designs then re-weight what was observed, each by its inclusion probabilities b_i.

How well they do is one number, the *imbalance*: the total variation distance between the weight
that a design puts on the cells of a grid and the population's equal weight on each, over the cells
that hold data. It is the share of the weight that sits in the wrong cell: 0 is balanced.

Choices the paper leaves open. k = 10 is in a comment of its source. The kernel's scale is 1/√k, the
distance between neighbours when k points are spread evenly over the square: with a much smaller one
all points look unlike (plain SGD), with a much larger one the corners are drawn too often. The two
other designs do not depend on k; the k-DPP gets better with it (imbalance .22, .19 and .16 for k =
10, 20 and 40, against .24 for pre-clustering).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dmsgd
from dmsgd.experiments import figures
from dmsgd.experiments.figures import COLOURS
from dmsgd.experiments.intervals import holds, paired, show, shown
from dmsgd.experiments.protocol import Claim, Progress
from dmsgd.inputs.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "Figure 2: balance restored from an imbalanced subset of the plane"

#: The panels in the paper's order; the last three are designs.
PANELS = ("population", "observed", "stratified", "clustered", "k-DPP")

TITLES = {
    "population": "(a) True population",
    "observed": "(b) Data set",
    "stratified": "(c) Stratified sampling",
    "clustered": "(d) Pre-clustering (k-means)",
    "k-DPP": "(e) k-DPP sampling",
}


@dataclass(frozen=True)
class Config:
    """What is run, on `seeds` independent data sets; the picture shows the first."""

    population: int = 2500
    centre: tuple[float, float] = (0.28, 0.30)
    spread: float = 0.13
    rarely: float = 0.08
    k: int = 10
    strata: int = 4
    clusters: int = 4
    cells: int = 8
    seeds: int = 20
    seed: int = 0


QUICK = Config(seeds=5)


@dataclass(frozen=True, eq=False)
class Scene:
    """One data set: the population, what is observed of it, and how often designs draw it.

    frequency: name of a design -> b_i of the observed points.
    cluster, centres: the k-means clusters behind the pre-clustered design.
    """

    population: FloatArray
    observed: FloatArray
    frequency: dict[str, FloatArray]
    cluster: IntArray
    centres: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """The first scene, and the imbalance of every panel for every data set."""

    config: Config
    scene: Scene
    imbalance: dict[str, FloatArray]


def load(config: Config, data_dir: str | None = None) -> None:
    """Return nothing: the points are made by `run`."""


def run(config: Config, data: None = None, progress: Progress | None = None) -> Result:
    """Return the scene to draw and the imbalances; `progress` is told the fraction done.

    On one thread: k-means and the eigendecomposition would fight over the cores otherwise.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    import_module("sklearn.cluster")  # the limit binds only libraries that are loaded
    scenes, rows = [], []
    with threadpool_limits(1):
        for number in range(config.seeds):
            scenes.append(scene := make_scene(config, [config.seed, number]))
            rows.append(_imbalances(scene, config.cells))
            if progress is not None:
                progress((number + 1) / config.seeds)
    imbalance = {name: np.array([row[name] for row in rows]) for name in PANELS}
    return Result(config, scenes[0], imbalance)


def make_scene(config: Config, seed: list[int]) -> Scene:
    """Return a population, its imbalanced subset and the inclusion probabilities of each design."""
    rng = np.random.default_rng(seed)
    population = rng.uniform(size=(config.population, 2))
    distance = np.linalg.norm(population - np.array(config.centre), axis=1)
    keep = np.maximum(config.rarely, np.exp(-0.5 * (distance / config.spread) ** 2))
    observed = population[rng.random(config.population) < keep]
    cluster, centres = _k_means(observed, config.clusters, rng)
    strips = np.floor(observed[:, 0] * config.strata).astype(np.int64)
    scale = 1 / np.sqrt(config.k)
    designs: dict[str, dmsgd.Design] = {
        "stratified": dmsgd.Stratified(strips, config.k),
        "clustered": dmsgd.Stratified(cluster, config.k),
        "k-DPP": dmsgd.diversify(observed, config.k, kernel="rbf", scale=scale),
    }
    frequency = {name: design.inclusion() for name, design in designs.items()}
    return Scene(population, observed, frequency, cluster, centres)


def imbalance(points: FloatArray, weight: FloatArray, cells: int) -> float:
    """Return the total variation between the weight on cells and equal weight, where data is.

    `points` lie in the unit square, which is cut into cells x cells.
    """
    row, column = np.minimum(np.floor(points * cells).astype(np.int64), cells - 1).T
    _, cell = np.unique(row * cells + column, return_inverse=True)
    mass = np.bincount(cell, weight) / weight.sum()
    return float(0.5 * np.abs(mass - 1 / mass.size).sum())


def _imbalances(scene: Scene, cells: int) -> dict[str, float]:
    return {
        "population": imbalance(scene.population, np.ones(len(scene.population)), cells),
        "observed": imbalance(scene.observed, np.ones(len(scene.observed)), cells),
        **{name: imbalance(scene.observed, b, cells) for name, b in scene.frequency.items()},
    }


def _k_means(
    points: FloatArray, clusters: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    # `dmsgd.clustered` keeps its clusters to itself, and the picture shows them.
    from sklearn.cluster import KMeans

    means = KMeans(clusters, n_init=10, random_state=int(rng.integers(2**31))).fit(points)
    return np.asarray(means.labels_, dtype=np.int64), np.asarray(means.cluster_centers_)


def claims(result: Result) -> list[Claim]:
    """Return the order of the panels that the paper shows, and the imbalances behind it."""
    values = result.imbalance
    rows = [
        Claim("Fig. 2", f"imbalance of {TITLES[name]}", "picture", show(values[name], 3, 1.0))
        for name in PANELS[1:]
    ]
    for name in ("stratified", "clustered"):
        lead = paired(values[name], values["k-DPP"])
        statement = f"the k-DPP restores the balance better than {TITLES[name][4:].lower()}"
        rows.append(Claim("Fig. 2", statement, "yes", shown(*lead, 3, True), holds(*lead)))
    return rows


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the five panels side by side; the area of a point is its sampling frequency."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.3), layout="constrained")
    scene = result.scene
    for axes, name in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        _panel(axes, scene, name)
        axes.set_title(TITLES[name], fontsize=11)
        axes.set_xlabel(f"imbalance {result.imbalance[name][0]:.2f}", fontsize=11)
    lines = np.arange(1, result.config.strata) / result.config.strata
    figure.axes[PANELS.index("stratified")].vlines(
        lines, -0.02, 1.02, color="#444444", linewidth=0.8
    )
    figure.axes[PANELS.index("clustered")].scatter(
        scene.centres[:, 0],
        scene.centres[:, 1],
        s=70,
        marker="D",
        color="black",
        edgecolor="white",
        zorder=3,
    )
    figure.supxlabel(
        f"Points in (c)-(e): area = how often a point is in a batch of {result.config.k}. "
        "Imbalance: share of the weight in the wrong cell of an "
        f"{result.config.cells} x {result.config.cells} grid, 0 is best.",
        fontsize=10,
    )
    return figures.save(figure, folder, "toy")


def _panel(axes: Axes, scene: Scene, name: str) -> None:
    points = scene.population if name == "population" else scene.observed
    area: Any = 2.0 if name == "population" else 12.0
    if name in scene.frequency:
        area = area * scene.frequency[name] / scene.frequency[name].mean()
    colour: Any = COLOURS[0]
    if name == "clustered":
        colour = [COLOURS[number % len(COLOURS)] for number in scene.cluster]
    axes.scatter(points[:, 0], points[:, 1], s=area, c=colour, alpha=0.8, linewidth=0)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[], yticks=[], aspect="equal")
