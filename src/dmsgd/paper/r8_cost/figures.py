"""Seconds of a draw and of an update against k."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.r8_cost.result import PAPER, PAPER_SIZES, Result


def plot(result: Result, folder: Path) -> list[Path]:
    """Write seconds of a draw and of an update against k, the paper's as dashed lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    sizes = result.config.sizes
    lines = {f"LDA update, {name}": seconds for name, seconds in result.update.items()}
    lines |= result.sampling
    colours = ("#000000", pictures.COLOURS[5], *pictures.COLOURS)
    for (name, seconds), colour in zip(lines.items(), colours, strict=False):
        axes.plot(sizes, 1000 * np.median(seconds, axis=0), "o-", color=colour, label=name)
    colour = "#777777"
    for (name, values), lift in zip(PAPER.items(), (0, 6, -6), strict=True):
        axes.plot(PAPER_SIZES, 1000 * np.array(values), "--", color=colour)
        axes.annotate(
            f"paper: {name}", (80, 1000 * values[-1]), (4, lift), textcoords="offset points",
            va="center", fontsize=8, color=colour,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xticks(sizes)
    axes.set_xlim(right=max(sizes) * 1.3)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("batch size k")
    axes.set_ylabel("milliseconds (CPU, one thread)")
    axes.set_title("One batch and the LDA update that uses it, Reuters R8")
    pictures.dress(axes, "y")
    figure.legend(frameon=False, loc="outside right upper", fontsize=8)
    return pictures.save(figure, folder, "r8-cost")
