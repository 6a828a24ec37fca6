"""Draws docs/images/overview.png, the first picture of the README, from stored results.

    python docs/overview_picture.py

Left: batches drawn now. Middle: experiments/results/labelling.parquet. Right:
benchmarks/growth.csv, which benchmarks/draws.py --growth writes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dmsgd

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # for experiments, which are not installed
GREEN, GREY, RED, BLUE = "#00796b", "#9aa5ae", "#d84315", "#3f6fb5"
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def batches(above: Axes, below: Axes) -> None:
    """Show one uniform and one diverse batch of 16 of the same points."""
    rng = np.random.default_rng(5)  # a large group, a small and a tiny one
    centres, spread = np.array([[0, 0], [3.4, 0.9], [1.6, 2.4]]), np.array([0.75, 0.5, 0.3])
    group = np.repeat(np.arange(3), (180, 45, 15))
    X = centres[group] + spread[group, None] * rng.normal(size=(group.size, 2))
    designs = {"uniform": dmsgd.Uniform(len(X), 16), "diverse": dmsgd.diversify(X, 16)}
    for axes, (name, design), colour in zip(
        (above, below), designs.items(), (RED, GREEN), strict=True
    ):
        axes.scatter(*X.T, s=5, color=GREY, alpha=0.6, linewidth=0)
        axes.scatter(*X[design.sample(1, seed=2)[0]].T, s=26, color=colour)
        axes.set_title(f"one {name} batch of 16", fontsize=9)
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.spines[:].set_visible(False)


def labelling(axes: Axes) -> None:
    """Show the average ranks of all ways to choose what to label next."""
    from experiments.core.table import read
    from experiments.labelling.tables import ranked

    found = ranked(read("labelling"), 50, "mean accuracy")
    colours = [GREEN if arm == "select" else GREY for arm in found.arms]
    axes.barh(found.arms, found.means, color=colours, height=0.7)
    for place, rank in enumerate(found.means):
        axes.text(rank + 0.15, place, f"{rank:.2f}", va="center", fontsize=8)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_title("labelling in rounds of 50: average rank on 12 data sets", fontsize=9)
    axes.set_xlabel("rank (1 is best)")


def cost(axes: Axes) -> None:
    """Show CPU time per batch of 64 as the data grows."""
    table = pl.read_csv(ROOT / "benchmarks/growth.csv", comment_prefix="#")
    drawn = {
        "DPPy": (RED, "DPPy"),
        "torch, without replacement": (BLUE, "torch, weighted,\nno replacement"),
        "dmsgd": (GREEN, "dmsgd"),
    }
    for column, (colour, name) in drawn.items():
        axes.loglog(table["n"], 1e3 * table[column], "o-", color=colour, markersize=4)
        last = table.filter(pl.col(column).is_not_null())[-1]
        at = last["n"].item() * 1.4, 1e3 * last[column].item()
        axes.annotate(name, at, color=colour, va="center", fontsize=8)
    axes.set_xlim(right=table["n"].max() * 40)
    axes.set_xticks([1e3, 1e4, 1e5, 1e6])
    axes.minorticks_off()
    axes.set_title("CPU time per batch of 64, in ms", fontsize=9)
    axes.set_xlabel("items n (256 features)")


def main() -> None:
    """Draw the three panels."""
    with rc_context(STYLE):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        grid = figure.add_gridspec(2, 3, width_ratios=[0.75, 1.1, 1.1])
        batches(figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0]))
        labelling(figure.add_subplot(grid[:, 1]))
        cost(figure.add_subplot(grid[:, 2]))
        figure.savefig(ROOT / "docs/images/overview.png", dpi=130, facecolor="white")


if __name__ == "__main__":
    main()
