"""Pictures of the R8 experiment, and the top words of its topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.core.compare import values
from experiments.core.figures import COLOURS, differences, dress, save
from experiments.models.topics import redundancy, word_distributions
from experiments.r8.corpus import FULL, QUICK, SEARCHED, TINY, Corpus, Size, arms, corpus, learn

#: The two that the paper compares.
COMPARED = ("uniform", "k-DPP")
AVERAGES = {
    "average accuracy": ("r8", "average accuracy", None),
    "default inference": ("r8/default inference", "average accuracy", None),
}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write Figures 4 to 6, the differences of all arms from uniform batches, and top words."""
    size = next(each for each in (FULL, QUICK, TINY) if each.steps == table["step"].max())
    task = corpus(size)
    topics = {arm: learn_again(task, size, arm) for arm in COMPARED}
    return [
        class_shares(table, task, folder / "r8-class-shares.png"),
        confusions(table, task, folder / "r8-confusion.png"),
        plane(topics, folder / "r8-topics.png"),
        differences(table, folder / "r8.png", AVERAGES, "uniform", "minus uniform, points", True),
        top_words(topics, task, folder / "r8-top-words.md"),
    ]


def learn_again(task: Corpus, size: Size, arm: str) -> np.ndarray:
    """Return the topics of seed 0, which are not stored."""
    return word_distributions(learn(task, arms(size)[arm](task, 0), 0, size, SEARCHED))


def class_shares(table: Any, task: Corpus, path: Path) -> Path:
    """Write the expected share of each class in the data and in batches (Figure 4)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4), layout="constrained")
    axes, places = figure.subplots(), np.arange(len(task.names))
    labels = ("data (uniform batches)", "k-DPP batches")
    for at, arm, label in zip((-0.2, 0.2), COMPARED, labels, strict=True):
        shares = [values(table, "r8", arm, f"share of {name}")[0] for name in task.names]
        axes.bar(places + at, shares, 0.4, color=COLOURS[int(at > 0)], label=label)
    axes.set_yscale("log")
    axes.set_yticks(ticks := [1, 2, 5, 10, 20, 50], [f"{tick} %" for tick in ticks])
    axes.set_yticks([], minor=True)
    sizes = np.bincount(task.y)
    axes.set_xticks(places, [f"{n}\n{s}" for n, s in zip(task.names, sizes, strict=True)])
    axes.set(xlabel="class and its training documents", ylabel="expected share",
             title="Classes in a batch; the k-DPP does not know them")  # fmt: skip
    dress(axes, "y")
    axes.legend(frameon=False)
    return save(figure, path)


def confusions(table: Any, task: Corpus, path: Path) -> Path:
    """Write the confusion matrices, mean over seeds (Figure 5)."""
    from matplotlib.figure import Figure

    figure, places = Figure(figsize=(11, 5.2), layout="constrained"), range(len(task.names))
    for axes, arm in zip(figure.subplots(1, 2), COMPARED, strict=True):
        shares = [
            [values(table, "r8", arm, f"{row} taken for {column}").mean() for column in task.names]
            for row in task.names
        ]
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=100)
        for row, column in np.ndindex(len(places), len(places)):
            share = shares[row][column]
            if share >= 0.5:
                colour = "white" if share > 60 else "black"
                axes.text(column, row, f"{share:.0f}", ha="center", va="center", color=colour)
        axes.set_xticks(places, task.names, rotation=45, ha="right")
        axes.set_yticks(places, task.names)
        average, total = (
            values(table, "r8", arm, f"{kind} accuracy") for kind in ("average", "total")
        )
        title = f"{arm}: average {average.mean():.1f} %, total {total.mean():.1f} %"
        axes.set(xlabel="taken for", ylabel="class", title=title)
    seeds = average.size
    figure.suptitle(f"Share of a class's test documents, in percent; mean of {seeds} seeds")
    return save(figure, path)


def plane(topics: dict[str, np.ndarray], path: Path) -> Path:
    """Write the topics on the first two principal components of both arms' topics (Figure 6)."""
    from matplotlib.figure import Figure

    every = np.concatenate(list(topics.values()))
    middle = every.mean(axis=0)
    directions = np.linalg.svd(every - middle, full_matrices=False)[2][:2]
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, colour, (arm, found) in zip(panels, COLOURS, topics.items(), strict=False):
        axes.scatter(*directions @ (found - middle).T, color=colour, alpha=0.8)
        axes.set(title=f"{arm}: mean cosine {redundancy(found):.2f}",
                 xlabel="first principal component")  # fmt: skip
        dress(axes)
    panels[0].set_ylabel("second principal component")
    figure.suptitle("Topics (seed 0), on the same axes")
    return save(figure, path)


def top_words(topics: dict[str, np.ndarray], task: Corpus, path: Path) -> Path:
    """Write the ten most probable words of every topic as Markdown tables."""
    about = "The ten most probable words of each topic, from one seed of `python -m experiments r8`"
    about += ": [what the topics are worth](paper-r8.md)."
    lines = ["# Top words of each topic (seed 0)", "", about, ""]
    for arm, found in topics.items():
        lines += [f"## {arm} batches", "", "| topic | words |", "| --- | --- |"]
        for number, topic in enumerate(found, start=1):
            lines.append(f"| {number} | {' '.join(task.words[np.argsort(-topic)[:10]])} |")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path
