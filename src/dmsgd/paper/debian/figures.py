"""Pictures of what the sections of Debian gain, and of who is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.inputs.arrays import IntArray
from dmsgd.paper import pictures
from dmsgd.paper.debian.result import (
    CLOCKS,
    CLUSTERED,
    KDPP,
    LENGTH,
    LSA,
    MEASURES,
    UNIFORM,
    Result,
)
from dmsgd.paper.intervals import paired

#: Designs in the picture of who is seen.
SHOWN = (LENGTH, KDPP, LSA, CLUSTERED)

#: Sections whose mean is a point there.
GROUP = 5


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the gains of every design over uniform batches, and who is seen by section."""
    return [*gains(result, folder), *who_is_seen(result, folder)]


def gains(result: Result, folder: Path) -> list[Path]:
    """Write the lead over uniform batches in every measure, at equal words and equal updates."""
    from matplotlib.figure import Figure

    arms = [arm for arm in result.updates if arm != UNIFORM]
    places = np.arange(len(arms))[::-1]
    figure = Figure(figsize=(13, 3.9), layout="constrained")
    panels = figure.subplots(1, len(MEASURES), sharey=True)
    for number, (axes, (name, unit, _)) in enumerate(zip(panels, MEASURES, strict=True)):
        for colour, clock in enumerate(CLOCKS[::-1]):
            base = result.measured(UNIFORM, clock)[number]
            leads = [paired(result.measured(a, clock)[number], base) for a in arms]
            axes.errorbar(
                [mean for mean, _ in leads],
                places + 0.15 - 0.3 * colour,
                xerr=[half for _, half in leads],
                fmt="o",
                capsize=3,
                color=pictures.COLOURS[colour],
                label=f"equal {clock}",
            )
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(places, arms)
        head, _, tail = name.partition(" of ")
        title = f"{head} of\n{tail}" if tail else name.replace(", ", ",\n")
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel(unit)
        pictures.dress(axes, "x")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=2, loc="outside upper center")
    return pictures.save(figure, folder, "debian-gains")


def who_is_seen(result: Result, folder: Path) -> list[Path]:
    """Write how often documents are drawn by the size of their section, over uniform batches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4), layout="constrained")
    axes = figure.subplots()
    order = np.argsort(-result.sizes, kind="stable")
    groups = [order[first : first + GROUP] for first in range(0, order.size, GROUP)]
    at = [_mean(result.sizes[group]) for group in groups]
    for arm, colour in zip(SHOWN, pictures.COLOURS, strict=False):
        seen = result.seen[arm].sections
        axes.plot(result.sizes, seen, ".", color=colour, alpha=0.3, markersize=4)
        axes.plot(at, [np.nanmean(seen[group]) for group in groups], color=colour, label=arm)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_yticks(ticks := [0.25, 0.5, 1, 2, 4], [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_xticks(ticks := [10, 30, 100, 300, 1000, 3000], [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.invert_xaxis()
    axes.set_xlabel("training documents of a section")
    axes.set_ylabel("drawn, over uniform batches")
    axes.set_title(f"Who is seen? A dot a section, a line the mean of {GROUP} of like size")
    pictures.dress(axes)
    axes.legend(frameon=False)
    return pictures.save(figure, folder, "debian-seen")


def _mean(sizes: IntArray) -> float:
    """Return the geometric mean of sizes, of which those below 1 count as 1."""
    return float(np.exp(np.log(np.maximum(sizes, 1)).mean()))
