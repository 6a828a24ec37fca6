"""Pictures of the partition experiment: noise and losses by task, and losses along training."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper import pictures
from dmsgd.paper.partitions.result import GRAB, SHUFFLED, UNIFORM, Result, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The ways: what the legend says, colour and marker. Open markers are independent draws.
WAYS = {
    UNIFORM: (UNIFORM, pictures.COLOURS[7], "x"),
    "independent, k-DPP on x": ("independent, k-DPP on x", pictures.COLOURS[4], "d"),
    "independent, k-DPP on x and y": ("independent, k-DPP on x and y", pictures.COLOURS[3], "d"),
    "partition, k-DPP on x": ("partition, k-DPP on x", pictures.COLOURS[0], "o"),
    "partition, k-DPP on x and y": ("partition, k-DPP on x and y", pictures.COLOURS[5], "o"),
    "classes spread": ("classes spread", pictures.COLOURS[2], "s"),
    "cells of x and y spread": ("cells of x and y spread", pictures.COLOURS[1], "s"),
    "classes spread, k-DPP on x": ("the former and k-DPP on x", "#004D3B", "^"),
    "cells of x and y spread, k-DPP on x": ("", "#004D3B", "^"),
    GRAB: (GRAB, "black", "*"),
}
#: Between what ratios are drawn; others are written at the edge.
LEAST, MOST, TICKS = 0.4, 3.2, (0.5, 0.7, 1, 1.5, 2, 3)
#: Those whose curves are drawn; the others would hide them.
FEW = (UNIFORM, "partition, k-DPP on x", "partition, k-DPP on x and y", "classes spread",
       "cells of x and y spread", GRAB)  # fmt: skip


def plot(result: Result, folder: Path) -> list[Path]:
    """Write noise and losses of all tasks, and losses along the long training."""
    return [*plot_measures(result, folder), *plot_curves(result, folder)]


def plot_measures(result: Result, folder: Path) -> list[Path]:
    """Write four measures over those of shuffled epochs, one row a task."""
    from matplotlib.figure import Figure

    config = result.config
    figure = Figure(figsize=(12.5, 1.9 + 1.15 * len(result.sizes)), layout="constrained")
    panels = figure.subplots(1, 4, sharey=True)
    titles = (
        "Variance of a batch's gradient",
        "Error of half an epoch",
        f"Loss after {config.early} epoch",
        f"Loss after {config.late} epochs",
    )
    for axes, title, number in zip(panels, titles, range(4), strict=True):
        for row, task in enumerate(result.sizes):
            for arm, (_, colour, marker) in WAYS.items():
                if arm in result.arms(task):
                    place = row + _shift(arm)
                    mean, low, high = ratio(_logs(result, task, arm, number))
                    if LEAST < mean < MOST:
                        axes.plot([low, high], [place, place], color=colour, linewidth=1.5)
                        axes.plot(mean, place, marker, color=colour, markersize=5)
                    else:
                        _outside(axes, mean, place, colour)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlim(LEAST, MOST)
        axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.set_xticks([], minor=True)
        axes.set_title(title, fontsize=11)
        pictures.dress(axes, "x")
    names = [f"{task}\nk = {k}" for task, (_, k) in result.sizes.items()]
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    for axes in panels:
        for row in range(1, len(names)):
            axes.axhline(row - 0.5, color="#dddddd", linewidth=0.7)
    _legend(figure, panels[0], 5)
    figure.supxlabel("over shuffled epochs', 95 % intervals: left is better", fontsize=10)
    return pictures.save(figure, folder, "partitions")


def _shift(arm: str) -> float:
    """Return the place of an arm within the row of a task."""
    names = list(WAYS)
    return float((names.index(arm) - (len(names) - 1) / 2) * 0.085)


def _logs(result: Result, task: str, arm: str, number: int) -> FloatArray:
    """Return logarithms over shuffled epochs: variance, half an epoch, early loss, late loss."""
    if number >= 2:
        return result.logs(task, arm, "loss", number - 2)
    of, (n, k) = result.arms(task)[arm], result.sizes[task]
    if number == 0:
        return np.asarray(np.log(of.variance[:, 1]))
    count = n // k
    return np.asarray(np.log(of.half[:, 1] / ((count - count // 2) / (count - 1))))


def _outside(axes: Axes, mean: float, place: float, colour: str) -> None:
    """Write a value that is outside of the picture at its edge."""
    left = mean <= LEAST
    axes.text(
        LEAST * 1.03 if left else MOST / 1.03,
        place,
        f"← {mean:.2g}" if left else f"{mean:.2g} →",
        ha="left" if left else "right",
        va="center",
        fontsize=8,
        color=colour,
    )


def _legend(figure: Figure, axes: Axes, columns: int, ways: Iterable[str] = WAYS) -> None:
    """Write the names of the ways above all panels."""
    for name, colour, marker in (WAYS[arm] for arm in ways):
        if name:
            axes.plot([], [], f"{marker}-", color=colour, markersize=5, label=name)
    figure.legend(frameon=False, fontsize=9, ncols=columns, loc="outside upper center")


def plot_curves(result: Result, folder: Path) -> list[Path]:
    """Write the loss along the long training over that of shuffled epochs, one panel a task."""
    from matplotlib.figure import Figure

    looks = result.config.looks
    figure = Figure(figsize=(2.2 + 2.7 * len(result.sizes), 4.2), layout="constrained")
    panels = figure.subplots(1, len(result.sizes), squeeze=False)[0]
    for axes, task in zip(panels, result.sizes, strict=True):
        arms = result.arms(task)
        for number, arm in enumerate(FEW):
            if arm in arms:
                _, colour, marker = WAYS[arm]
                logs = np.log(arms[arm].curve / arms[SHUFFLED].curve)
                mean, low, high = np.array([ratio(column) for column in logs.T]).T
                axes.errorbar(
                    np.array(looks) * 1.03 ** (number - 2), mean, (mean - low, high - mean),
                    fmt=f"{marker}-", color=colour, markersize=4, linewidth=1.0,
                )  # fmt: skip
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(looks, [f"{look:g}" for look in looks])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("epochs")
        axes.set_title(task)
        low, high = axes.get_ylim()
        shown = [tick for tick in (0.01, 0.1, 0.3, 0.5, 1, 2, 3, 10, 100) if low <= tick <= high]
        axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
        axes.set_yticks([], minor=True)
        axes.tick_params(axis="y", which="both", labelsize=8)
        pictures.dress(axes)
    panels[0].set_ylabel("loss / shuffled epochs' (each at its best rate)")
    _legend(figure, panels[0], len(panels) + 1, FEW)
    return pictures.save(figure, folder, "partitions-curves")
