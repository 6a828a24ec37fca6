"""The two figures that all experiments share: curves over steps, differences with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from experiments.core.compare import Column, Difference, compare, mean

if TYPE_CHECKING:
    import polars as pl

#: Okabe and Ito's colours, safe for the colour-blind.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#777777")
STYLES = ("-", "--", ":", "-.")


def save(figure: Any, path: Path) -> Path:
    """Write a picture and return its path."""
    figure.savefig(path, dpi=150)
    return path


def dress(axes: Any, axis: Literal["x", "y", "both"] = "both") -> None:
    """Give axes a pale grid behind the data and no frame at the top and on the right."""
    axes.grid(axis=axis, color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def logarithmic(axis: Any) -> None:
    """Make an axis logarithmic with numbers such as 0.2 and 0.5, not powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def lines(
    table: pl.DataFrame,
    path: Path,
    panels: Mapping[str, str],
    arms: Sequence[str],
    measure: str,
    ylabel: str,
    xlabel: str = "updates",
    log: str = "",
    same_scale: bool = True,
) -> Path:
    """Write curves over steps, one panel per experiment: means over seeds, 95 % intervals shaded.

    panels:     title -> experiment.
    log:        "x", "y" or "xy" for logarithmic axes.
    same_scale: panels share their vertical axis.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.2 * len(panels), 6.4), 4.0), layout="constrained")
    every = figure.subplots(1, len(panels), squeeze=False, sharey=same_scale)[0]
    for axes, (title, experiment) in zip(every, panels.items(), strict=True):
        here = table.filter(experiment=experiment, measure=measure)
        for number, arm in enumerate(arms):
            own = here.filter(arm=arm).sort("step", "seed")
            if not own.height:
                continue
            grouped = own.group_by("step", maintain_order=True).agg("value")
            at = grouped["step"].to_numpy()
            found = [mean(np.asarray(each)) for each in grouped["value"].to_list()]
            middle = np.array([each.mean for each in found])
            half = np.nan_to_num([each.half for each in found])
            colour = COLOURS[number % len(COLOURS)]
            style = STYLES[number // len(COLOURS) % len(STYLES)]
            axes.fill_between(at, middle - half, middle + half, color=colour, alpha=0.12, lw=0)
            axes.plot(at, middle, style, color=colour, label=arm, linewidth=1.4)
        axes.set(title=title, xlabel=xlabel)
        if "x" in log:
            logarithmic(axes.xaxis)
        if "y" in log:
            logarithmic(axes.yaxis)
        dress(axes)
    every[0].set_ylabel(ylabel)
    if len(arms) <= 6:
        every[0].legend(frameon=False, fontsize=8)
    else:  # no room among the curves
        drawn = every[0].get_legend_handles_labels()
        figure.legend(*drawn, frameon=False, fontsize=8, loc="outside right upper")
    return save(figure, path)


def bars(
    path: Path,
    panels: Mapping[str, Mapping[str, Difference]],
    xlabel: str,
    same_scale: bool = True,
) -> Path:
    """Write differences from a baseline as points with 95 % intervals, one panel per title.

    panels: title -> label -> difference.

    Intervals without the baseline are coloured. Panels with a label in common share their axes
    (the horizontal one only if `same_scale`).
    """
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(label for panel in panels.values() for label in panel))
    shared = len(labels) < sum(len(panel) for panel in panels.values())
    rows = len(labels) if shared else max(len(panel) for panel in panels.values())
    size = (max(3.6 * len(panels), 6.4), 1.0 + 0.34 * rows)
    figure = Figure(figsize=size, layout="constrained")
    share = {"sharex": shared and same_scale, "sharey": shared}
    every = figure.subplots(1, len(panels), squeeze=False, **share)[0]
    for axes, (title, panel) in zip(every, panels.items(), strict=True):
        middle = np.array([each.mean for each in panel.values()])
        half = np.nan_to_num([each.half for each in panel.values()])
        names = labels if shared else list(panel)
        at = len(names) - 1 - np.array([names.index(label) for label in panel])
        colours = [COLOURS[0 if abs(m) > h else 7] for m, h in zip(middle, half, strict=True)]
        axes.hlines(at, middle - half, middle + half, color=colours)
        axes.scatter(middle, at, c=colours, s=18, zorder=3)
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(names)), names[::-1])
        axes.set(title=title, xlabel=xlabel)
        dress(axes, "x")
    return save(figure, path)


def differences(
    table: pl.DataFrame,
    path: Path,
    columns: Mapping[str, Column],
    against: str,
    xlabel: str,
    same_scale: bool = False,
) -> Path:
    """Write all arms minus `against`, one panel for each column."""
    panels = {}
    for title, (experiment, measure, step) in columns.items():
        arms = table.filter(experiment=experiment)["arm"].unique(maintain_order=True)
        panels[title] = {
            arm: compare(table, experiment, arm, against, measure, step)
            for arm in arms
            if arm != against
        }
    return bars(path, panels, xlabel, same_scale)
