"""Pictures of generated topics: a typical run, the documents, what is recovered."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.halves import SAME_B
from dmsgd.paper.intervals import wilson
from dmsgd.paper.synthetic_lda.result import COMPARED, Result


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the topics of a typical run, the documents, and how often each topic is recovered."""
    return [
        *_plot_topics(result, folder),
        *_plot_documents(result, folder),
        *_plot_recovery(result, folder),
    ]


def _plot_topics(result: Result, folder: Path) -> list[Path]:
    from matplotlib.figure import Figure

    panels = {"(a) truth": result.truth} | {
        f"({letter}) {method}": result.outcomes[method].topics
        for letter, method in zip("bcd", (*COMPARED, SAME_B), strict=True)
    }
    figure = Figure(figsize=(11, 2.4), layout="constrained")
    for axes, (title, topics) in zip(figure.subplots(1, 4), panels.items(), strict=True):
        axes.imshow(topics, cmap="gray", vmin=0, vmax=result.truth.max(), aspect="auto")
        axes.set_title(title)
        axes.set_xlabel("word")
        axes.set_xticks([])
        axes.set_yticks(range(len(topics)), [f"topic {t + 1}" for t in range(len(topics))])
    figure.suptitle(f"A typical run (seed {result.shown}): word distribution of each topic")
    return pictures.save(figure, folder, "synthetic-lda-topics")


def _plot_documents(result: Result, folder: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 6), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(
        result.counts, cmap="gray_r", aspect="auto", interpolation="nearest", vmin=0
    )
    for edge in np.flatnonzero(np.diff(result.group)):
        axes.axhline(edge + 0.5, color=pictures.COLOURS[5], linewidth=1)
    axes.set_xlabel("word")
    axes.set_ylabel("document")
    axes.set_title("The documents (lines part the groups)")
    figure.colorbar(image, label="count")
    return pictures.save(figure, folder, "synthetic-lda-documents")


def _plot_recovery(result: Result, folder: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots()
    topics, runs = len(result.truth), result.config.seeds
    methods = len(result.outcomes)
    width = 0.8 / methods
    shown = zip(result.outcomes.items(), pictures.COLOURS, strict=False)
    for number, ((method, outcome), colour) in enumerate(shown):
        good = outcome.distance <= result.config.threshold
        hits = np.append(good.sum(axis=0), good.all(axis=1).sum())
        centre, half = np.array([wilson(int(hit), runs) for hit in hits]).T
        share, at = hits / runs, np.arange(topics + 1) + (number - (methods - 1) / 2) * width
        error = 100 * np.maximum([share - (centre - half), centre + half - share], 0)
        axes.bar(at, 100 * share, width, yerr=error, color=colour, label=method, capsize=1.5)
    axes.set_xticks(range(topics + 1), [*(f"topic {t + 1}" for t in range(topics)), "all"])
    axes.set_ylim(0, 105)
    axes.yaxis.set_major_formatter("{x:.0f} %")
    axes.set_ylabel("runs that recover it")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, ncols=4, loc="outside upper center")
    return pictures.save(figure, folder, "synthetic-lda-recovery")
