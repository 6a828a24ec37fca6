"""How pictures of the experiments look, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, safe for the colour-blind.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#777777")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write name.png and name.svg into the folder and return their paths."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def dress(axes: Axes, axis: Literal["x", "y", "both"] = "both") -> None:
    """Give axes a pale grid behind the data and no frame at the top and on the right."""
    axes.grid(axis=axis, color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
