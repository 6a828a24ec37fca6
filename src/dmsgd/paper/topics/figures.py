"""Pictures of which topics are found, and how often they are seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.intervals import margin
from dmsgd.paper.topics.result import CLUSTERED, KDPP, LENGTH, PAIRS, UNIFORM, UNIT, Result

#: Of colours; a same b has that of its k-DPP and is dashed.
_ORDER = (UNIFORM, KDPP, UNIT, CLUSTERED, LENGTH)
_PARTNER = {same_b: kdpp for kdpp, same_b in PAIRS.items()}


def plot(result: Result, folder: Path) -> list[Path]:
    """Write how often topics are seen and found by share, and how many over updates."""
    return [*by_share(result, folder), *over_updates(result, folder)]


def _style(arm: str) -> dict[str, str]:
    """Return the colour and the line of a design."""
    colour = pictures.COLOURS[_ORDER.index(_PARTNER.get(arm, arm))]
    return {"color": colour, "linestyle": "--" if arm in _PARTNER else "-"}


def by_share(result: Result, folder: Path) -> list[Path]:
    """Write how often topics of every share are seen (above) and found (below), a column a size."""
    from matplotlib.figure import Figure

    sizes, shares = result.config.sizes, 100 * result.config.shares
    figure = Figure(figsize=(4 * len(sizes) + 0.5, 6.2), layout="constrained")
    panels = figure.subplots(2, len(sizes), sharex=True, sharey="row", squeeze=False)
    for (above, below), size in zip(panels.T, sizes, strict=True):
        for arm in result.config.arms(size):
            each = result.of(size, arm)
            there = each.expected > 0
            above.plot(shares[there], each.expected[there], **_style(arm), label=arm)
            hits = each.hits("updates", result.config.threshold).mean(axis=0)
            smooth = np.convolve(np.pad(hits, 1, mode="edge"), np.ones(3) / 3, "valid")
            below.plot(shares, 100 * smooth, **_style(arm))
        above.set_title(f"{size:,} documents")
        above.set_xscale("log")
        above.set_yscale("log")
        above.set_yticks(ticks := [0.5, 1, 2, 4, 8], [f"{tick:g}" for tick in ticks])
        above.set_yticks([], minor=True)
        below.set_xticks(ticks := [0.02, 0.1, 1, 10], [f"{tick:g} %" for tick in ticks])
        below.invert_xaxis()
        below.set_xlabel("share of a topic")
        for axes in (above, below):
            pictures.dress(axes)
    panels[0, 0].set_ylabel("seen, over uniform batches")
    panels[1, 0].set_ylabel("runs that find it, %\n(mean with its neighbours)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=7, loc="outside upper center")
    return pictures.save(figure, folder, "topics-shares")


def over_updates(result: Result, folder: Path) -> list[Path]:
    """Write the number of topics found over updates, mean over seeds and 95 % interval."""
    from matplotlib.figure import Figure

    sizes, budgets = result.config.sizes, np.array(result.config.budgets)
    figure = Figure(figsize=(4 * len(sizes) + 0.5, 3.8), layout="constrained")
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axes, size in zip(panels, sizes, strict=True):
        arms = result.config.arms(size)
        for number, arm in enumerate(arms):
            found = result.of(size, arm).by_updates
            apart = 1 + 0.04 * (number - len(arms) / 2)  # so that intervals do not hide each other
            axes.errorbar(
                budgets * apart,
                found.mean(axis=0),
                yerr=[margin(column) for column in found.T],
                capsize=2,
                label=arm,
                **_style(arm),
            )
        axes.set_xscale("log")
        axes.set_xticks(budgets, [str(budget) for budget in budgets])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("updates")
        axes.set_title(f"{size:,} documents, {len(found)} seeds")
        pictures.dress(axes)
    panels[0].set_ylabel(f"topics found of {result.config.true_topics}")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=7, loc="outside upper center")
    return pictures.save(figure, folder, "topics-updates")
