"""Populations, what is observed of them, and how designs weigh that."""

from __future__ import annotations

from importlib import import_module

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.protocol import Progress
from dmsgd.paper.toy.result import PANELS, Config, Result, Scene


def load(config: Config, data_dir: str | None = None) -> None:
    """Return nothing: the points are made by `run`."""


def run(config: Config, data: None = None, progress: Progress | None = None) -> Result:
    """Return the scene to draw and the imbalances; `progress` is told the fraction done.

    On one thread: k-means and the eigendecomposition would fight over the cores otherwise.
    """
    from threadpoolctl import threadpool_limits

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
    designs: dict[str, dmsgd.ClosedForm] = {
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
