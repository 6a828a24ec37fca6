"""Pictures of the repulsion experiment: steps by problem, and what they follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.intervals import margin
from dmsgd.paper.repulsion.result import SHUFFLED, Result, ratio

#: Kinds of arms, by the beginning of their names: colour and marker.
KINDS = {
    "k-DPP": (pictures.COLOURS[0], "o"),
    "cells": (pictures.COLOURS[2], "s"),
    SHUFFLED: (pictures.COLOURS[7], "x"),
}


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the steps of all problems, and variances with what follows from them."""
    return [*plot_steps(result, folder), *plot_variance(result, folder)]


def plot_steps(result: Result, folder: Path) -> list[Path]:
    """Write late steps over those of uniform batches, one row a problem and what kernels see."""
    from matplotlib.figure import Figure

    k = result.config.slow_ks[0] if result.config.slow_ks[0] in result.config.ks else None
    k = result.config.ks[0] if k is None else k
    rows: list[tuple[str, int, str, dict[str, str]]] = []
    for problem, size in result.cases():
        arms = result.arms(problem, size)
        if size != k and any(case == (problem, k) for case in result.cases()):
            continue
        seen = dict.fromkeys(name.split(" ", 2)[2] for name in arms if name[:5] in KINDS)
        for number, what in enumerate(seen):
            of = {"k-DPP": f"k-DPP on {what}", "cells": f"cells of {what}"}
            if number == 0:
                of[SHUFFLED] = SHUFFLED
            label = problem if what == "x" else f"{problem}: {what}"
            rows.append((problem, size, label, {kind: of[kind] for kind in of if of[kind] in arms}))
    figure = Figure(figsize=(8.2, 1.4 + 0.31 * len(rows)), layout="constrained")
    axes = figure.subplots()
    shift = {"k-DPP": 0.2, "cells": 0.0, SHUFFLED: -0.2}
    for row, (problem, size, _, of) in enumerate(rows):
        for kind, arm in of.items():
            mean, low, high = ratio(result.logs(problem, size, arm, "late"))
            colour, marker = KINDS[kind]
            place = len(rows) - 1 - row + shift[kind]
            axes.plot([low, high], [place, place], color=colour, linewidth=1.6)
            axes.plot(mean, place, marker, color=colour, markersize=5)
    for kind, (colour, marker) in KINDS.items():
        name = {"cells": "cells of equal size", "k-DPP": "k-DPP, uniform target"}.get(kind, kind)
        axes.plot([], [], f"{marker}-", color=colour, markersize=5, label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    ticks = [0.05, 0.1, 0.2, 0.5, 1, 2]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.04, 3)
    axes.set_yticks(range(len(rows)), [label for _, _, label, _ in rows[::-1]], fontsize=8)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel("steps to the late loss / uniform batches' steps, each at its own best rate")
    axes.set_title(f"Every item as likely, k = {k}: does repulsion save steps?")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    pictures.dress(axes)
    return pictures.save(figure, folder, "repulsion")


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
        colour, marker = KINDS[kind]
        of = [each for each in result.outcomes if each.arm.startswith(kind) and each.variance.size]
        axes.scatter(
            [each.variance[:, 1].mean() for each in of],
            [ratio(result.logs(each.problem, each.k, each.arm, "late"))[0] for each in of],
            color=colour,
            marker=marker,
            s=18,
            alpha=0.7,
            label={"cells": "cells of equal size"}.get(kind, kind),
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
    axes.legend(frameon=False, loc="upper left")
