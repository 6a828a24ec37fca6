"""Pictures of the repulsion experiment: steps by problem, and what they follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.intervals import margin
from dmsgd.paper.repulsion.result import SHUFFLED, Result, ratio

#: Kinds of arms: what the legend says, colour, marker, and place in a row.
KINDS = {
    "k-DPP": ("k-DPP, uniform target", pictures.COLOURS[0], "o", 0.27),
    "polynomials": ("the same on polynomials of x", pictures.COLOURS[4], "D", 0.09),
    "cells": ("cells of equal size", pictures.COLOURS[2], "s", -0.09),
    SHUFFLED: ("shuffled epochs", pictures.COLOURS[7], "x", -0.27),
}


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the steps of all problems, and variances with what follows from them."""
    return [*plot_steps(result, folder), *plot_variance(result, folder)]


def plot_steps(result: Result, folder: Path) -> list[Path]:
    """Write late steps over those of uniform batches, one row a problem and what kernels see."""
    from matplotlib.figure import Figure

    rows = _rows(result)
    figure = Figure(figsize=(8.4, 1.5 + 0.36 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for row, (problem, size, _, of) in enumerate(rows):
        for kind, arm in of.items():
            mean, low, high = ratio(result.logs(problem, size, arm, "late"))
            _, colour, marker, shift = KINDS[kind]
            place = len(rows) - 1 - row + shift
            axes.plot([low, high], [place, place], color=colour, linewidth=1.6)
            axes.plot(mean, place, marker, color=colour, markersize=4.5)
    for name, colour, marker, _ in KINDS.values():
        axes.plot([], [], f"{marker}-", color=colour, markersize=4.5, label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    ticks = [0.05, 0.1, 0.2, 0.5, 1, 2]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.04, 2.5)
    axes.set_yticks(range(len(rows)), [label for _, _, label, _ in rows[::-1]], fontsize=9)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel("steps to the late loss / uniform batches'")
    axes.set_title("Does repulsion save steps? (k = 16, every item as likely)")
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    pictures.dress(axes)
    return pictures.save(figure, folder, "repulsion")


def _rows(result: Result) -> list[tuple[str, int, str, dict[str, str]]]:
    """Return the rows: problem, k, label, and the arms by kind."""
    found = []
    for problem in dict.fromkeys(each.problem for each in result.outcomes):
        sizes = [k for name, k in result.cases() if name == problem]
        k = 16 if 16 in sizes else sizes[-1]
        arms = result.arms(problem, k)
        for number, what in enumerate(result.seen(problem, k)):
            of = {"k-DPP": f"k-DPP on {what}", "cells": f"cells of {what}"}
            if number == 0:
                of |= {"polynomials": "k-DPP on polynomials", SHUFFLED: SHUFFLED}
            if what == "polynomials":
                continue
            label = problem if what == "x" else f"{problem}: {what}"
            found.append((problem, k, label, {kind: of[kind] for kind in of if of[kind] in arms}))
    return found


def plot_variance(result: Result, folder: Path) -> list[Path]:
    """Write how the variance falls with k by dimension, and steps against variances."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    styles = {"k-DPP on x": "-", "k-DPP on polynomials": "--", "cells of x": ":"}
    problems = list(dict.fromkeys(fall.problem for fall in result.falls))
    for fall in result.falls:
        if fall.arm in styles:
            colour = pictures.COLOURS[(0, 1, 5)[problems.index(fall.problem)]]
            half = [margin(column) for column in fall.ratio.T]
            left.errorbar(
                fall.ks,
                fall.ratio.mean(axis=0),
                half,
                linestyle=styles[fall.arm],
                color=colour,
                marker="o",
                markersize=3,
                label=f"{fall.problem.split(', ')[1]}, {fall.arm}",
            )
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    left.set_xticks(result.config.fall_ks, [str(k) for k in result.config.fall_ks])
    ticks = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
    left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    left.set_yticks([], minor=True)
    left.set_xlabel("items in a batch, k")
    left.set_ylabel("variance of the gradient / uniform batches'")
    left.set_title("Low dimension: a density")
    left.legend(frameon=False, fontsize=8, loc="lower left")
    _against(result, right)
    for axes in (left, right):
        axes.axhline(1, color="black", linewidth=0.8)
        pictures.dress(axes)
    return pictures.save(figure, folder, "repulsion-variance")


def _against(result: Result, axes: object) -> None:
    """Draw late steps against the variance at the optimum, one dot a problem, k and arm."""
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    for kind in ("k-DPP", "cells"):
        name, colour, marker, _ = KINDS[kind]
        of = [each for each in result.outcomes if each.arm.startswith(kind) and each.variance.size]
        axes.scatter(
            [each.variance[:, 1].mean() for each in of],
            [ratio(result.logs(each.problem, each.k, each.arm, "late"))[0] for each in of],
            color=colour,
            marker=marker,
            s=18,
            alpha=0.7,
            label=name,
        )
    axes.plot([0.005, 1], [0.005, 1], color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(np.array(ticks), [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.set_xlim(0.004, 1.3)
    axes.set_xlabel("variance at the optimum / uniform batches'")
    axes.set_ylabel("steps to the late loss / uniform batches'")
    axes.set_title("Less variance, fewer steps")
    axes.legend(frameon=False, loc="lower right")
