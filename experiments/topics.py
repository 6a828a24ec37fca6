"""Which topics does LDA find at size: 32 topics whose shares fall from 20 % to 0.02 %.

A million of the generated documents hold 200 of the rarest topic, ten thousand hold two. A true
topic is *found* if the learnt topic assigned to it, one to one (`models.topics.match`), has at most
0.3 of its weight on wrong words. The nearest two true topics are 0.68 apart, so that an equal
mixture of two is further than that from either.

All arms make equally many updates, and are also compared when they have read equally many words.
The k-DPPs are linear in tf-idf: to the power of 0.1, as on R8, and with rows of length 1. LDA has
scikit-learn's default priors and rates, chosen on seed 1000, which is not reported, with uniform
batches and the k-DPP of unit rows (docs/results/topics.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments.core import Case, Claim, Decomposition, compare, lines, training
from experiments.core.compare import mean, values
from experiments.core.figures import COLOURS, dress, logarithmic, save
from experiments.datasets import UnequalTopics
from experiments.models.budgets import looks
from experiments.models.topics import Inference, match, word_distributions

TITLE = "Which topics are found: shares from 20 % to 0.02 %, up to a million documents"
SIZES = (10_000, 100_000, 1_000_000)

#: Largest distance (total variation) at which a topic counts as found, and two others.
FOUND, OTHERS = 0.3, (0.2, 0.4)

#: What is counted by either budget: after equally many updates, and equally many words.
MEASURE = {"updates": "topics found", "words": "topics found at equal words"}


@dataclass(frozen=True)
class Setting:
    """What is generated (`ratio`: of the shares of two topics) and trained (`topics` of LDA)."""

    n: int
    k: int = 100
    budgets: tuple[int, ...] = (12, 25, 50, 100, 200, 400)
    topics: int = 40
    words: int = 1000
    true: int = 32
    ratio: float = 0.8

    @property
    def shares(self) -> np.ndarray:
        """The share of every true topic, the largest first."""
        return (shares := self.ratio ** np.arange(self.true)) / shares.sum()

    def arms(self) -> dict[str, Any]:
        """Return how each arm draws its batches."""
        k = self.k

        def kdpp(task: UnequalTopics, rho: float | None = None) -> Any:
            rows = task.tfidf if rho is None else dmsgd.features.anneal(task.tfidf, rho)
            return dmsgd.diversify(rows, k, kernel="linear", normalize=False)

        return training(self.n, k, {
            "by length": lambda task, seed: dmsgd.Weighted(weights=task.lengths, k=k),
            "k-DPP": lambda task, seed: kdpp(task, 0.1),
            "k-DPP, frequency-matched": lambda task, seed: dmsgd.Weighted.like(kdpp(task, 0.1)),
            "k-DPP, unit rows": lambda task, seed: kdpp(task),
            "k-DPP, unit rows, frequency-matched":
                lambda task, seed: dmsgd.Weighted.like(kdpp(task)),
            "pre-clustering": lambda task, seed: dmsgd.designs.clustered(task.tfidf, k, seed=seed),
        })  # fmt: skip


def run(setting: Setting, task: UnequalTopics, design: Any, seed: int, rate: float) -> Any:
    """Yield topics found at every budget, which ones at the last, and how often each is drawn."""
    prior = 1 / setting.topics
    inference = Inference(prior, prior, offset=10.0, decay=0.7, iterations=20)
    b = design.inclusion() * setting.n / setting.k
    yield 0, "words per batch", b @ task.lengths / task.lengths.sum()
    for topic in np.unique(task.main):
        yield 0, f"frequency of topic {topic:02}", b[task.main == topic].mean()
    at = (task.counts, design, setting.budgets, setting.topics, inference, seed)
    for clock, number, model in looks(*at):
        budget = setting.budgets[number]
        distance = match(task.topics, word_distributions(model))[1]
        yield budget, MEASURE[clock], (distance <= FOUND).sum()
        if clock == "updates" and budget == setting.budgets[-1]:
            for other in OTHERS:
                yield budget, f"topics within {other}", (distance <= other).sum()
            for topic, hit in enumerate(distance <= FOUND):
                yield budget, f"found topic {topic:02}", hit


def case(n: int, seeds: int, setting: Setting) -> Case:
    """Return the case with the name of n; a million documents go without k-means, the slowest."""
    arms = setting.arms()
    if n == SIZES[-1]:
        del arms["pre-clustering"]
    task = partial(UnequalTopics, setting.n, setting.words, setting.shares)
    return Case(f"topics/n={n}", task, arms, partial(run, setting), seeds)


def cases(quick: bool = False) -> list[Case]:
    """Return one case per number of documents."""
    if quick:
        return [case(SIZES[0], 3, Setting(SIZES[0], budgets=(25, 50)))]
    return [case(n, 5 if n == SIZES[-1] else 10, Setting(n)) for n in SIZES]


def tiny() -> list[Case]:
    """Return cases of 200 documents under the names of the real ones, for tests."""
    setting = Setting(200, k=10, budgets=(2, 4), topics=8, words=100, true=6, ratio=0.6)
    return [case(n, 2, setting) for n in SIZES]


CLAIMS = [
    Claim("beyond", f"n = {n:,}, equal {when}: {arm} finds more topics than {against} batches",
          f"topics/n={n}", arm, MEASURE[when], against)
    for n in SIZES
    for arm, against, when in (
        ("k-DPP", "uniform", "updates"), ("k-DPP, unit rows", "uniform", "updates"),
        ("k-DPP, unit rows", "shuffled", "updates"), ("k-DPP, unit rows", "uniform", "words"),
    )
] + [
    Claim("beyond", f"n = 100,000, found means within {other}: k-DPP, unit rows finds more topics",
          "topics/n=100000", "k-DPP, unit rows", f"topics within {other}", "uniform")
    for other in OTHERS
]  # fmt: skip

DECOMPOSED = [
    Decomposition(f"{arm}: topics found of 32, n = {n:,}", f"topics/n={n}", arm, "topics found")
    for n in SIZES for arm in ("k-DPP", "k-DPP, unit rows")
]  # fmt: skip


def by_topic(table: pl.DataFrame, experiment: str, arm: str, measure: str) -> np.ndarray:
    """Return the shares of the topics that have a measure, and its mean over seeds."""
    found = table.filter(pl.col("measure").str.starts_with(measure), experiment=experiment, arm=arm)
    means = found.group_by(pl.col("measure").str.tail(2).cast(int)).agg(pl.col("value").mean())
    topic, value = means.sort("measure")
    return np.array([Setting(0).shares[topic], value])


def summary(table: pl.DataFrame) -> list[list[str]]:
    """Return the cells of a table: topics found by every arm, and less uniform batches."""
    *steps, last = table.filter(measure="topics found")["step"].unique().sort()
    rows = [["documents", "batches", "words per batch",
             *(f"found after {step} updates" for step in steps[::2]), f"{last}", "- uniform",
             f"after the words of {last}", "- uniform", "rarest half"]]  # fmt: skip
    for name, arm in table.select("experiment", "arm").unique(maintain_order=True).iter_rows():
        each = partial(values, table, name, arm)
        first = f"{int(name.partition('=')[2]):,}" if arm == "uniform" else ""
        row = [first, arm, f"{each('words per batch').mean():.2f}"]
        row += [f"{each('topics found', step).mean():.1f}" for step in steps[::2]]
        for measure in MEASURE.values():
            lead = compare(table, name, arm, "uniform", measure).text()
            row += [mean(each(measure)).text(sign=False), "" if first else lead]
        share, runs = by_topic(table, name, arm, "found topic")
        rows.append([*row, f"{100 * share[runs >= 0.5].min(initial=1.0):.2g} %"])
    return rows


TABLES = {"topics": summary}


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write topics found over updates, and by share; frequency-matched arms are dashed."""
    from matplotlib.figure import Figure

    names = table["experiment"].unique(maintain_order=True)
    titles = {f"{int(name.partition('=')[2]):,} documents": name for name in names}
    bases = [arm for arm in table["arm"].unique(maintain_order=True) if "matched" not in arm]
    curves = lines(table, folder / "topics-updates.png", titles, bases, "topics found",
                   "topics found", log="x")  # fmt: skip
    figure = Figure(figsize=(max(4.2 * len(names), 6.4), 6.4), layout="constrained")
    panels = figure.subplots(2, len(names), sharex=True, sharey="row", squeeze=False)
    for (above, below), (title, name) in zip(panels.T, titles.items(), strict=True):
        for arm in table.filter(experiment=name)["arm"].unique(maintain_order=True):
            base = arm.removesuffix(", frequency-matched")
            style = {"color": COLOURS[bases.index(base)], "ls": "-" if arm == base else "--"}
            share, drawn = by_topic(table, name, arm, "frequency of topic")
            above.plot(100 * share, drawn, label=arm, **style)
            share, runs = by_topic(table, name, arm, "found topic")
            smooth = 100 * np.convolve(np.pad(runs, 1, "edge"), np.ones(3) / 3, "valid")
            below.plot(100 * share, smooth, **style)
        above.set(title=title)
        below.set(xlabel="share of a topic, %")
        for axes, axis in ((above, above.yaxis), (below, below.xaxis)):
            logarithmic(axis)
            dress(axes)
    panels[0, 0].set_ylabel("sampling frequency, over uniform")
    panels[1, 0].set_ylabel("runs that find it, %\n(mean with its neighbours)")
    panels[0, 0].invert_xaxis()
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=4, loc="outside upper center")
    return [curves, save(figure, folder / "topics-shares.png")]
