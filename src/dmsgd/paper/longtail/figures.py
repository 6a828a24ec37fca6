"""Who is in a batch of long-tailed digits, and how well they are learnt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.intervals import margin
from dmsgd.paper.longtail.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: How a method is drawn: colour, marker, line.
STYLES = (
    (pictures.COLOURS[7], "o", "-"),
    (pictures.COLOURS[2], "s", "-"),
    (pictures.COLOURS[1], "^", "-"),
    (pictures.COLOURS[4], "v", "--"),
    (pictures.COLOURS[5], "P", "--"),
    (pictures.COLOURS[0], "D", "-"),
)


def plot_shares(result: Result, path: Path) -> None:
    """Write a picture of the expected share of each class in a batch."""
    figure, axes = _figure()
    classes = np.arange(1, result.sizes.size + 1)
    for outcome, (colour, marker, line) in zip(result.outcomes, STYLES, strict=True):
        # Dashed lines lie over full ones: the same b has the shares of its k-DPP.
        axes.plot(
            classes, 100 * outcome.shares, line, color=colour, marker=marker, label=outcome.name,
            zorder=3 if line == "--" else 2,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_yticks(ticks := [1, 2, 5, 10, 20, 30], [f"{tick} %" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_xticks(classes, [str(size) for size in result.sizes])
    axes.set_xlabel("training items of the class")
    axes.set_ylabel("expected share of a batch")
    axes.set_title(f"Long-tailed digits: who is in a batch of {result.config.k}?")
    _save(figure, axes, path)


def plot_accuracy(result: Result, path: Path) -> None:
    """Write a picture of balanced test accuracy over training steps: mean and 95 % interval."""
    figure, axes = _figure()
    steps = np.array(result.config.checkpoints)
    for outcome, (colour, marker, line) in zip(result.outcomes, STYLES, strict=True):
        mean = 100 * outcome.accuracy.mean(axis=0)
        half = 100 * np.array([margin(column) for column in outcome.accuracy.T])
        axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
        axes.plot(steps, mean, line, color=colour, marker=marker, label=outcome.name)
    axes.set_xscale("log")
    ticks = [step for step in steps if step in (5, 10, 20, 50, 100, 200, 400, 800)]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:.0f} %")
    axes.set_xlabel(f"training steps (batches of {result.config.k})")
    axes.set_ylabel("accuracy on the balanced test set")
    axes.set_title(f"Long-tailed digits, mean and 95 % interval of {result.config.seeds} seeds")
    _save(figure, axes, path)


def _figure() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.subplots()
    pictures.dress(axes)
    axes.tick_params(labelsize=17)
    return figure, axes


def _save(figure: Figure, axes: Axes, path: Path) -> None:
    axes.legend(frameon=False, fontsize=17, loc="best")
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
        text.set_fontsize(18)
    figure.savefig(path, dpi=100)
