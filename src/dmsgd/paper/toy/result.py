"""What is run for Figure 2, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from dmsgd.inputs.arrays import FloatArray, IntArray

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
