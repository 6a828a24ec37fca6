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
    """Write the five panels; the area of a point is its sampling frequency."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6.6), layout="constrained")
    scene = result.scene
    panels = figure.subplots(2, 3).ravel()
    for axes, name in zip(panels, PANELS, strict=False):
        _panel(axes, scene, name)
        axes.set_title(TITLES[name].replace(" sampling", "").replace(" (", "\n("), fontsize=17)
        axes.set_xlabel(f"imbalance {result.imbalance[name][0]:.2f}", fontsize=17)
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
    panels[-1].axis("off")
    panels[-1].text(
        0.0, 0.5, f"(c)-(e): area =\nhow often a point\nis in a batch of {result.config.k}.\n\n"
        "Imbalance: share\nof the weight in\nthe wrong cell of\n"
        f"an {result.config.cells} x {result.config.cells} grid.",
        fontsize=16, va="center", transform=panels[-1].transAxes,
    )  # fmt: skip
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
