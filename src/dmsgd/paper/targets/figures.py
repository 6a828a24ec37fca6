"""Pictures of the targets experiment: accuracy by method, and the three regimes of a k-DPP."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.intervals import margin
from dmsgd.paper.targets.result import Result

#: Colours of the regimes, in their order.
REGIMES = (pictures.COLOURS[7], pictures.COLOURS[0], pictures.COLOURS[2], pictures.COLOURS[5])

NAMES = {"flowers": "Oxford-102", "digits": "long-tailed digits"}


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the accuracy of all methods, and the three regimes."""
    return [*plot_accuracy(result, folder), *plot_regimes(result, folder)]


def plot_accuracy(result: Result, folder: Path) -> list[Path]:
    """Write early and late accuracy of every method, one panel a task: mean, 95 % interval."""
    from matplotlib.figure import Figure

    tasks = list(result.sizes)
    figure = Figure(figsize=(5.2 * len(tasks) + 1.5, 6), layout="constrained")
    panels = figure.subplots(1, len(tasks), squeeze=False, sharey=True)[0]
    for axes, task in zip(panels, tasks, strict=True):
        outcomes = [outcome for outcome in result.outcomes if outcome.task == task]
        places = np.arange(len(outcomes))[::-1]
        epochs = result.config.epochs if task == "flowers" else result.config.digits_epochs
        for column, colour in ((0, pictures.COLOURS[1]), (-1, pictures.COLOURS[0])):
            values = [100 * outcome.accuracy[:, column] for outcome in outcomes]
            axes.errorbar(
                [each.mean() for each in values],
                places,
                xerr=[margin(each) for each in values],
                fmt="o",
                color=colour,
                capsize=3,
                label=f"after {epochs[column]:g} epoch{'s' if epochs[column] != 1 else ''}",
            )
            axes.axvline(values[0].mean(), color=colour, linewidth=0.8, linestyle=":")
        axes.set_yticks(places, [outcome.method for outcome in outcomes])
        axes.set_xlabel("accuracy on the balanced test set, %")
        k = result.config.k if task == "flowers" else result.config.digits_k
        axes.set_title(f"{NAMES[task]}, k = {k}")
        axes.legend(framealpha=1, edgecolor="none", loc="lower left", ncols=2)  # over dotted lines
        axes.set_ylim(bottom=-1.8)  # room for the legend
        low, high = axes.get_xlim()
        axes.set_xlim(max(low, 0), min(high, 100))
        pictures.dress(axes, "x")
    return pictures.save(figure, folder, "targets-accuracy")


def plot_regimes(result: Result, folder: Path) -> list[Path]:
    """Write how often items are seen, what they weigh, and how noisy updates are, by regime."""
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.6, 4.4), layout="constrained")
    seen, weight, noise = figure.subplots(1, 3)
    order = np.argsort(result.labels, kind="stable")
    items = np.arange(order.size)
    for regime, colour in zip(result.regimes, REGIMES, strict=True):
        style = {"color": colour, "s": 7, "linewidth": 0, "label": regime.name}
        size = 26 if regime is result.regimes[-1] else 7
        if regime is not result.regimes[-1]:  # its batches are those of the first
            seen.scatter(items, regime.seen[order], **style)
        # Two regimes give every item the weight 1: the second is drawn as larger, sparser dots.
        shown = slice(None, None, 12) if regime is result.regimes[-1] else slice(None)
        weight.scatter(items[shown], regime.weight[order][shown], **style | {"s": size})
    rows = np.arange(len(result.regimes))[::-1]
    for offset, when, shade in ((0.2, "at the start", 0.45), (-0.2, "after training", 1.0)):
        values = [regime.noise[0 if when == "at the start" else 1] for regime in result.regimes]
        bars = noise.barh(rows + offset, values, 0.36, color=REGIMES, alpha=shade)
        noise.bar_label(bars, [f"{value:.2f}" for value in values], padding=3, fontsize=9)
    noise.axvline(1, color="black", linewidth=0.8)
    noise.set_xlim(0, 1.15 * max(regime.noise.max() for regime in result.regimes))
    noise.set_yticks(rows, [regime.name for regime in result.regimes])
    seen.set_title("How often is an item seen?")
    weight.set_title("What does it weigh in the expected update?")
    noise.set_title("How noisy is the update?")
    noise.set_xlabel(
        "variance / uniform batches of the same\nexpected gradient (pale: start, full: end)"
    )
    edges = np.cumsum(np.bincount(result.labels))
    for axes in (seen, weight):
        axes.set_xlabel("items, from the commonest class to the rarest")
        axes.set_yscale("log")
        ticks = [0.2, 0.5, 1, 2, 5, 10]
        axes.set_yticks(ticks, [f"{tick:g} x" for tick in ticks])
        axes.set_yticks([], minor=True)
        axes.set_ylim(0.25, 10)
        for edge in edges[:-1]:
            axes.axvline(edge - 0.5, color="#dddddd", linewidth=0.7)
        pictures.dress(axes, "x")
    legend = weight.legend(frameon=False, fontsize=9, loc="upper left")
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([30])
    seen.set_ylabel("times a uniform batch's")
    pictures.dress(noise, "x")
    figure.suptitle(
        f"Three regimes of one k-DPP (long-tailed digits, k = {result.config.digits_k}): "
        f"as the kernel gives it, prescribed, re-weighted"
    )
    return pictures.save(figure, folder, "targets")
