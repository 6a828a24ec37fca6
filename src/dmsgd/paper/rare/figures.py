"""Which batches hold the documents that are looked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.rare.result import DESIGNS, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Grey for what everyone does.
COLOURS = dict(zip(DESIGNS, (pictures.COLOURS[n] for n in (7, 1, 5, 0)), strict=True))


def plot(result: Result, path: Path) -> None:
    """Write a picture: bars for the generated documents, dots for small packages, one a seed."""
    from matplotlib.figure import Figure

    config = result.config
    figure = Figure(figsize=(8, 8.4), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(4, 5))
    total = config.topics * config.per_topic + config.rare
    above.set_title(f"A topic of {config.rare} in {total} documents\n(generated)", fontsize=21)
    below.set_title(
        f"{len(result.packages)} small packages in {result.pages} help\npages of SciPy and NumPy",
        fontsize=21,
    )
    for row, outcome in enumerate(result.outcomes):
        colour, mean = COLOURS[outcome.name], 100 * outcome.found.mean()
        above.barh(row, mean, height=0.66, color=colour)
        above.text(mean + 1.5, row, f"{mean:.0f} %", va="center", fontsize=20)
        seeds, packages = outcome.times.shape
        place = np.tile(row + np.linspace(-0.28, 0.28, packages), (seeds, 1))
        below.scatter(outcome.times, place, s=90, color=colour, alpha=0.5, linewidth=0, zorder=3)
    above.set(xlim=(0, 118), xticks=[0, 25, 50, 75, 100])
    above.set_xlabel(f"% of batches of {config.k} that hold one", fontsize=19)
    below.set_xscale("log")
    ticks = [0.2, 0.5, 1, 2, 4]
    below.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    below.set_xticks([], minor=True)
    below.axvline(1, color="#444444", linewidth=1.5)
    below.set_xlabel("how often a package is drawn, uniform = 1", fontsize=19)
    for axes in (above, below):
        _dress(axes)
    figure.savefig(path, dpi=100)


def _dress(axes: Axes) -> None:
    pictures.dress(axes, "x")
    axes.set_yticks(range(len(DESIGNS)), DESIGNS)
    axes.tick_params(labelsize=19)
    axes.invert_yaxis()
