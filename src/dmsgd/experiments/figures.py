"""How pictures of the experiments look, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, safe for the colour-blind.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#777777")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write name.png and name.svg into the folder and return their paths."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths
