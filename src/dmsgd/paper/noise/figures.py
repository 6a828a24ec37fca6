"""Pictures of the noise experiment: ratios along training, and what they depend on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.intervals import margin
from dmsgd.paper.noise.result import PROBLEMS, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the ratios along training, what they depend on, and both halves of a k-DPP."""
    return [
        *plot_ratios(result, folder),
        *plot_reasons(result, folder),
        *plot_halves(result, folder),
    ]


def plot_ratios(result: Result, folder: Path) -> list[Path]:
    """Write the ratio of variances along training, one panel a problem: mean, 95 % interval."""
    from matplotlib.figure import Figure

    problems = list(dict.fromkeys(each.problem for each in result.outcomes))
    figure = Figure(figsize=(4.6 * len(problems), 6.6), layout="constrained")
    panels = figure.subplots(1, len(problems), sharey=True, squeeze=False)[0]
    places = np.arange(len(result.config.steps))
    for axes, problem in zip(panels, problems, strict=True):
        shown = [each for each in result.outcomes if each.problem == problem]
        names = dict.fromkeys(each.kernel.split(",")[0] for each in shown)
        colours = dict(zip(names, pictures.COLOURS, strict=False))
        for number, each in enumerate(shown):
            half = [margin(column) for column in each.prescribed.T]
            axes.errorbar(
                places + 0.03 * (number - len(shown) / 2),
                each.prescribed.mean(axis=0),
                half,
                fmt="o-" if number % 2 else "s--",
                color=colours[each.kernel.split(",")[0]],
                markersize=4,
                capsize=2,
                label=each.kernel,
            )
        axes.set_xticks(places, [str(step) for step in result.config.steps])
        axes.set_xlabel("steps of plain SGD")
        axes.set_title(problem)
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15))
        _around_one(axes)
    panels[0].set_ylabel("variance: uniform target / plain SGD")
    panels[0].set_ylim(0, 1.1)
    return pictures.save(figure, folder, "noise")


def plot_reasons(result: Result, folder: Path) -> list[Path]:
    """Write the ratio against what the kernel sees, and against likeness times strength."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    shade: dict[str, Any] = {"vmin": 0, "vmax": 1, "cmap": "viridis_r", "s": 20}
    markers = dict(zip(PROBLEMS, "osD", strict=True))
    for problem in dict.fromkeys(each.problem for each in result.outcomes):
        of = [each for each in result.outcomes if each.problem == problem]
        ratio, seen, likeness, strength = (
            np.concatenate([getattr(each, field).ravel() for each in of])
            for field in ("prescribed", "seen", "likeness", "strength")
        )
        marker = markers[problem]
        dots = left.scatter(seen, ratio, c=strength, marker=marker, label=problem, **shade)
        right.scatter(1 - likeness * strength, ratio, c=strength, marker=marker, **shade)
    right.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    right.set_xlim(0, 1.05)
    left.set_ylim(0, 1.05)
    left.set_xlabel("share of the gradients that the kernel sees")
    right.set_xlabel("1 - likeness x strength")
    left.set_ylabel("gradient variance: uniform target / plain SGD")
    left.legend(frameon=False, loc="lower left")
    figure.colorbar(dots, ax=right, label="strength (1: projection, 0: uniform batches)")
    for axes in (left, right):
        _around_one(axes)
    left.set_title("The kernel must see the gradients")
    right.set_title("... alike for items that exclude each other")
    return pictures.save(figure, folder, "noise-reasons")


def plot_halves(result: Result, folder: Path) -> list[Path]:
    """Write the variance of unbiased updates: b alone, repulsion alone, both; mean over steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 6.6), layout="constrained")
    axes = figure.subplots()
    rows = np.arange(len(result.outcomes))[::-1]
    arms = {
        "same b": ("same_b", pictures.COLOURS[5], "s"),
        "uniform b": ("prescribed", pictures.COLOURS[2], "^"),
        "k-DPP": ("reweighted", pictures.COLOURS[0], "o"),
    }
    for name, (field, colour, marker) in arms.items():
        values = [getattr(each, field).mean(axis=1) for each in result.outcomes]
        means, halves = [each.mean() for each in values], [margin(each) for each in values]
        axes.errorbar(means, rows, xerr=halves, fmt=marker, color=colour, capsize=2, label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(rows, [f"{each.problem}: {each.kernel}" for each in result.outcomes])
    axes.set_xlabel("variance of unbiased updates / plain SGD, mean over training")
    axes.set_title("Who is seen (same b), who meets (uniform b), and both (k-DPP)")
    axes.legend(frameon=False, loc="upper right")
    pictures.dress(axes, "x")
    return pictures.save(figure, folder, "noise-halves")


def _around_one(axes: Axes) -> None:
    axes.axhline(1, color="black", linewidth=0.8)
    pictures.dress(axes)
