"""Picture of the subgroups experiment: accuracy by digit, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.intervals import margin
from dmsgd.paper.subgroups.result import MEASURES, RAREST, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of the measures, in their order.
SHADES = (pictures.COLOURS[5], pictures.COLOURS[1], pictures.COLOURS[0])


def plot(result: Result, folder: Path) -> list[Path]:
    """Write accuracy by method, and accuracy against the share of rare digits in a batch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _by_method(left, result)
    _by_share(right, result)
    figure.suptitle(
        f"Parity with hidden rare digits: mean of {result.config.seeds} seeds, 95 % intervals"
    )
    return pictures.save(figure, folder, "subgroups")


def _by_method(axes: Axes, result: Result) -> None:
    places = np.arange(len(result.outcomes))[::-1]
    for offset, measure, colour in zip((0.2, 0.0, -0.2), MEASURES, SHADES, strict=True):
        values = [100 * result.accuracy(each.method, measure) for each in result.outcomes]
        axes.errorbar(
            [each.mean() for each in values],
            places + offset,
            xerr=[margin(each) for each in values],
            fmt="o",
            capsize=2,
            markersize=4,
            color=colour,
            label=f"{measure} digit",
        )
        axes.axvline(values[0].mean(), color=colour, linewidth=0.8, linestyle=":")
    axes.set_yticks(places, [each.method for each in result.outcomes])
    axes.set_xlabel(f"test accuracy after {result.config.checkpoints[-1]} steps, %")
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    axes.set_xlim(left=max(axes.get_xlim()[0], 0), right=100)
    pictures.dress(axes)


def _by_share(axes: Axes, result: Result) -> None:
    for number, each in enumerate(result.outcomes[1:]):
        rare = 100 * each.shares[:, RAREST].sum(axis=1)
        mean, half = result.gain(each.method, "worst")
        axes.errorbar(
            rare.mean(),
            mean,
            yerr=half,
            capsize=2,
            markersize=6,
            fmt="os"[number // len(pictures.COLOURS)],
            color=pictures.COLOURS[number % len(pictures.COLOURS)],
            label=each.method,
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks(ticks := [0.5, 1, 2, 5, 10, 20], [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("share of the two rarest digits in a batch, %")
    axes.set_ylabel("worst digit: points ahead of uniform, paired")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    pictures.dress(axes)
