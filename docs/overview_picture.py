"""Draws docs/images/overview.png, the first picture of the README, from stored results.

    python docs/overview_picture.py

Left: batches drawn now. Middle: experiments/results/labelling.parquet. Right:
benchmarks/growth.csv, which benchmarks/draws.py --growth writes.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dmsgd
from dmsgd.commands.demo import points

ROOT = Path(__file__).resolve().parents[1]
GREEN, GREY, RED, BLUE = "#00796b", "#9aa5ae", "#d84315", "#3f6fb5"
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def batches(above: Axes, below: Axes) -> None:
    """Show one uniform and one diverse batch of 16 of the same points."""
    X, _ = points()
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
    """Show accuracy against labels on Oxford-102, with 95 % intervals."""
    shown = {
        "cover": ("dmsgd.select", GREEN, 2.2), "BADGE": ("BADGE", BLUE, 1.3),
        "margin": ("most uncertain", RED, 1.3), "random": ("random", GREY, 1.3),
    }  # fmt: skip
    table = pl.read_parquet(ROOT / "experiments/results/labelling.parquet").filter(
        experiment="labelling/Oxford-102", measure="accuracy"
    )
    for arm, (name, colour, width) in shown.items():
        means = table.filter(arm=arm).group_by("step").agg(
            mean=pl.col("value").mean(), half=1.96 * pl.col("value").std() / pl.len().sqrt()
        )  # fmt: skip
        step, mean, half = means.sort("step").get_columns()
        axes.plot(step, mean, color=colour, label=name, linewidth=width)
        axes.fill_between(step, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.set_title("labelling in rounds of 50 (Oxford-102 flowers)", fontsize=9)
    axes.set(xlabel="labelled images", ylabel="test accuracy, %")
    axes.legend(frameon=False, fontsize=8, loc="lower right")


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
