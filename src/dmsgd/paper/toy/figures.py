"""Figure 2."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.toy.result import PANELS, TITLES, Result, Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    return pictures.save(figure, folder, "toy")


def _panel(axes: Axes, scene: Scene, name: str) -> None:
    points = scene.population if name == "population" else scene.observed
    area: Any = 2.0 if name == "population" else 12.0
    if name in scene.frequency:
        area = area * scene.frequency[name] / scene.frequency[name].mean()
    colour: Any = pictures.COLOURS[0]
    if name == "clustered":
        colour = [pictures.COLOURS[number % len(pictures.COLOURS)] for number in scene.cluster]
    axes.scatter(points[:, 0], points[:, 1], s=area, c=colour, alpha=0.8, linewidth=0)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[], yticks=[], aspect="equal")
