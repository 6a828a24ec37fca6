"""Test error over iterations, and how many fewer errors than random."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper import pictures
from dmsgd.paper.halves import SAME_B, UNIFORM_B
from dmsgd.paper.intervals import margin
from dmsgd.paper.mnist.result import UNBIASED, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Name of a method -> colour and line.
STYLES = {
    "random": (pictures.COLOURS[7], "-"),
    "stratified": (pictures.COLOURS[2], "-"),
    "clustered": (pictures.COLOURS[1], "-"),
    SAME_B: (pictures.COLOURS[5], "-"),
    UNIFORM_B: (pictures.COLOURS[3], "-"),
    "k-DPP": (pictures.COLOURS[0], "-"),
    UNBIASED: (pictures.COLOURS[4], "--"),
}


def plot(result: Result, folder: Path) -> list[Path]:
    """Write test error over iterations, and by how much it is below random's, for every k."""
    from matplotlib.figure import Figure

    ks = result.config.ks
    figure = Figure(figsize=(max(5.4 * len(ks), 7), 6.6), layout="constrained")
    axes = figure.subplots(2, len(ks), squeeze=False, height_ratios=(3, 2))
    for column, k in enumerate(ks):
        above, below = axes[:, column]
        errors = {method: 100 - 100 * result.accuracy(k, method) for method in result.methods}
        gains = {m: 100 - 100 * error / errors["random"] for m, error in errors.items()}
        _curves(above, result, k, errors)
        _curves(below, result, k, gains)
        above.set_yscale("log")
        above.set_yticks(ticks := [2, 3, 5, 10, 20, 30, 50, 80], [str(tick) for tick in ticks])
        above.set_yticks([], minor=True)
        above.set_ylim(errors["random"].min() * 0.9, 100)
        above.set_title(f"k = {k}")
        below.set_xlabel(f"iterations (batches of {k})")
    axes[0, 0].set_ylabel("test error, %")
    axes[1, 0].set_ylabel("fewer errors than random, %")
    axes[0, 0].legend(frameon=False, loc="lower left")
    figure.suptitle(f"MNIST, CNN: mean of {result.config.seeds} seeds, 95 % intervals")
    return pictures.save(figure, folder, "mnist")


def _curves(axes: Axes, result: Result, k: int, values: dict[str, FloatArray]) -> None:
    """Draw mean and interval of every method's (seeds, checkpoints) values."""
    steps = result.config.checkpoints[result.config.ks.index(k)]
    for method, found in values.items():
        colour, line = STYLES[method]
        mean, half = found.mean(axis=0), np.array([margin(column) for column in found.T])
        axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.13, linewidth=0)
        axes.plot(steps, mean, line, color=colour, label=method)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    pictures.dress(axes)
