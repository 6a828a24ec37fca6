"""Pictures and tables of the R8 experiment, drawn from its result."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.intervals import margin
from dmsgd.paper.r8.result import COMPARED, Result


def plot(result: Result, folder: Path) -> list[Path]:
    """Write class shares, confusion matrices, topics in the plane, all methods, top words."""
    return [
        *class_shares(result, folder),
        *confusions(result, folder),
        *planes(result, folder),
        *arms(result, folder),
        word_tables(result, folder),
    ]


def class_shares(result: Result, folder: Path) -> list[Path]:
    """Write the share of each class in the data and in batches (Figure 4).

    Bars are expected shares, in closed form; dots are the batches that were drawn.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4), layout="constrained")
    axes = figure.subplots()
    places, width = np.arange(len(result.names)), 0.4
    labels = ("data (uniform batches)", "k-DPP batches")
    for number, (method, label) in enumerate(zip(COMPARED, labels, strict=True)):
        outcome, at = result.outcomes[method], places + (number - 0.5) * width
        axes.bar(at, 100 * outcome.expected, width, color=pictures.COLOURS[number], label=label)
        axes.plot(at, 100 * outcome.drawn, "k.", label="drawn" if number else None)
    axes.set_yscale("log")
    axes.set_yticks(ticks := [1, 2, 5, 10, 20, 50], [f"{tick} %" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_xticks(places, [f"{n}\n{s}" for n, s in zip(result.names, result.sizes, strict=True)])
    axes.set_xlabel("class and its training documents")
    axes.set_ylabel("share")
    axes.set_title("Who is in a batch? The classes are not known to the k-DPP")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return pictures.save(figure, folder, "r8-class-shares")


def confusions(result: Result, folder: Path) -> list[Path]:
    """Write the confusion matrices, mean over seeds (Figure 5)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.2), layout="constrained")
    places = range(len(result.names))
    for axes, letter, method in zip(figure.subplots(1, 2), "ab", COMPARED, strict=True):
        outcome = result.outcomes[method]
        axes.imshow(outcome.confusion, cmap="Blues", vmin=0, vmax=1)
        for row in places:
            for column in places:
                share = 100 * outcome.confusion[row, column]
                if share >= 0.5:
                    colour = "white" if share > 60 else "black"
                    axes.text(column, row, f"{share:.0f}", ha="center", va="center", color=colour)
        axes.set_xticks(places, result.names, rotation=45, ha="right")
        axes.set_yticks(places, result.names)
        axes.set_xlabel("taken for")
        axes.set_ylabel("class")
        mean = 100 * outcome.average.mean()
        total = 100 * outcome.total.mean()
        axes.set_title(f"({letter}) {method}: average {mean:.1f} %, total {total:.1f} %")
    seeds = result.config.seeds
    figure.suptitle(f"Share of a class's test documents, in percent; mean of {seeds} seeds")
    return pictures.save(figure, folder, "r8-confusion")


def planes(result: Result, folder: Path) -> list[Path]:
    """Write the topics on their first two principal components, axes shared (Figure 6)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for number, (axes, method) in enumerate(zip(panels, COMPARED, strict=True)):
        outcome = result.outcomes[method]
        axes.scatter(*outcome.plane.T, color=pictures.COLOURS[number], alpha=0.8)
        cosine = outcome.redundancy[0]
        axes.set_title(f"({'ab'[number]}) {method}: mean cosine {cosine:.2f}")
        axes.set_xlabel("first principal component")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("second principal component")
    figure.suptitle("Topics (seed 0), on the same axes")
    return pictures.save(figure, folder, "r8-topics")


def arms(result: Result, folder: Path) -> list[Path]:
    """Write average accuracy of every method: mean over seeds, 95 % interval."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(result.outcomes))[::-1]
    tuned = {method: outcome.average for method, outcome in result.outcomes.items()}
    default = {method: scores[:, 0] for method, scores in result.defaults.items()}
    named = (("settings of the search", tuned, 0), ("scikit-learn's defaults", default, 1))
    for name, values, colour in named:
        at = [place for place, method in zip(places, tuned, strict=True) if method in values]
        scores = [100 * values[method] for method in tuned if method in values]
        axes.errorbar(
            [each.mean() for each in scores],
            at,
            xerr=[margin(each) for each in scores],
            fmt="o",
            capsize=3,
            color=pictures.COLOURS[colour],
            label=name,
        )
        axes.axvline(scores[0].mean(), color=pictures.COLOURS[colour], linewidth=0.8, linestyle=":")
    axes.set_yticks(places, list(tuned))
    axes.set_xlabel("average accuracy over the classes, %; dotted: SVI")
    axes.set_title(f"Which half helps? Mean of {result.config.seeds} seeds, 95 % intervals")
    pictures.dress(axes, "x")
    axes.set_ylim(bottom=-1.4)  # room for the legend
    axes.legend(framealpha=1, edgecolor="none", loc="lower center", ncols=2)  # over the dotted line
    return pictures.save(figure, folder, "r8-halves")


def word_tables(result: Result, folder: Path) -> Path:
    """Write the most probable words of every topic as a Markdown table."""
    lines = ["# Top words of each topic (seed 0)", ""]
    for method in COMPARED:
        lines += [f"## {method}", "", "| topic | words |", "| --- | --- |"]
        for number, words in enumerate(result.outcomes[method].top_words, start=1):
            lines.append(f"| {number} | {' '.join(words)} |")
        lines.append("")
    path = folder / "r8-top-words.md"
    path.write_text("\n".join(lines))
    return path
