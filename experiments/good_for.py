"""The table of docs/good-for.md: what a design gains over shuffled epochs, setting by setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from experiments import advice
from experiments.core.compare import Difference, compare, values

#: Rows with another number of seeds name it.
SEEDS = 20


@dataclass(frozen=True)
class Setting:
    """One row: a task, the design that the page speaks of, and the strongest simple alternative.

    results, case, measure, step: where the figures are (step None: the last).
    design, arm:      what a user writes, and its arm.
    simplest, simple: the same of the alternative; None if that is the baseline.
    against:          the arm of the baseline.
    """

    task: str
    data: str
    results: str
    case: str
    measure: str
    design: str
    arm: str
    simplest: str
    simple: str | None = None
    step: int | None = None
    against: str = "shuffled"
    unit: str = "points"
    digits: int = 1
    ratio: bool = False

    def cells(self, table: pl.DataFrame) -> list[str]:
        """Return the row: task, data, level of the baseline, gain, and the simplest design."""
        where = self.case, self.measure
        level = values(table, self.case, self.against, self.measure, self.step)
        simplest = self.simplest
        if self.simple is not None:
            simplest += f" ({self._text(self._gain(table, self.simple))})"
        base = "" if self.against == "shuffled" else f", {self.against}"
        found = self._gain(table, self.arm)
        data = self.data + (f" ({found.seeds} seeds)" if found.seeds != SEEDS else "")
        measure = f"{where[1]}: {level.mean():.{self.digits}f}{base}"
        unit = "" if self.unit == "points" else f" {self.unit}"
        gain = f"{self._text(found)}{unit}"
        return [self.task, data, measure, f"{self.design}: {gain}", simplest]

    def _gain(self, table: pl.DataFrame, arm: str) -> Difference:
        where = self.case, arm, self.against, self.measure, self.step
        return compare(table, *where, ratio=self.ratio)

    def _text(self, found: Difference) -> str:
        return found.factor() if self.ratio else found.text(self.digits)


SETTINGS = [
    Setting("labels, uneven classes", "MNIST 200:1, CNN, k = 64", "long_tailed",
            "long_tailed/mnist", "accuracy", "`Stratified(y, k)`", "stratified",
            "torch's WeightedRandomSampler", "WeightedRandomSampler"),
    Setting("labels, one epoch", "Oxford-102, softmax, k = 102", "flowers", "flowers/k=102",
            "accuracy", "`diversify(X, k, labels=y, w=0.9)`", "k-DPP w=0.9",
            "`Stratified(y, k)`", "stratified", step=60),
    Setting("federated averaging, two labels per client", "MNIST, 10 of 100 clients",
            "federated", "federated/mnist, shards, k=10", "mean accuracy",
            "`Partition(cells(updates, k))`", "partition of cells by last update",
            "`Stratified` by main label, if known", "partition of stratified by main label"),
    Setting("the same, labels by Dirichlet(0.3)", "the same", "federated",
            "federated/mnist, Dirichlet, k=10", "mean accuracy", "`Partition(cells(updates, k))`",
            "partition of cells by last update", "`Stratified` by main label",
            "partition of stratified by main label"),
    Setting("topic models of text", "R8, LDA, k = 80", "r8", "r8", "average accuracy",
            '`diversify(X, k, quality="length")`', "k-DPP", "`Weighted` by length", "by length"),
    Setting("the same", "Debian descriptions, LDA, k = 100", "debian", "debian",
            "average accuracy", "`Weighted.like(diversify(X, k))`", "k-DPP, frequency-matched",
            "`Weighted` by length", "by length"),
    Setting("rare topics, no labels", "generated documents, LDA", "synthetic_lda", "synthetic_lda",
            "all five topics", "`diversify(X, k)`", "k-DPP, unit rows", "`Weighted.like` of it",
            "k-DPP, frequency-matched"),
    Setting("the same, topics are clusters", "100,000 generated documents, LDA", "topics",
            "topics/n=100000", "topics found", "`clustered(X, k)`", "pre-clustering",
            "`Weighted.like` of a k-DPP", "k-DPP, frequency-matched", unit="topics"),
    Setting("rare classes, no labels", "Oxford-102, 40 to 2 items per class, k = 64", "rare",
            "rare/flowers", "accuracy", '`diversify(X, k, target="density")`',
            "k-DPP linear, density target", "`Weighted` by density", "weighted by density"),
    Setting("what to label next", "Oxford-102, ten rounds of 50", "labelling",
            "labelling/Oxford-102", "mean accuracy",
            '`select(X, k, quality=u, given=labelled, how="cover")`', "cover",
            "k-means medoids by uncertainty", "CLUE", against="BADGE"),
    Setting("the same", "R8", "labelling", "labelling/R8",
            "mean accuracy", "the same", "cover", "k-means medoids by uncertainty", "CLUE",
            against="BADGE"),
    Setting("one set to label", "500 of 50,000 package descriptions", "labelling",
            "labelling/one set", "mean over classes", '`select(X, k, how="cover")`', "cover",
            "k-means medoids", "k-means medoids", step=500, against="random"),
    Setting("picture coordinates", "elevation map, k = 4,096, 200 updates", "coordinates",
            "coordinates/elevation, k=4096", "PSNR", "`Partition(cells(X, k))`",
            "Partition(cells)", "`cells(X, k)`", "cells", step=200, unit="dB", digits=2),
    Setting("near-duplicates", "generated, k = 64", "repulsion",
            "repulsion/near-copies, skewed/k=64", "steps", "`cells(X, k)`", "cells of x",
            '`diversify(X, k, target="uniform")`', "k-DPP on x", unit="times", digits=0,
            ratio=True),
    Setting("PINN collocation points", "Burgers, k = 256", "pinn",
            "pinn/Burgers, k=256", "relative L2 error", "`cells(X, k)`", "cells",
            "Sobol points", "Sobol", unit="times", digits=2, ratio=True),
    Setting("in-batch negatives", "Abt-Buy records, k = 64", "negatives",
            "negatives/Abt-Buy, alone", "recall@1", "`Partition(diversify(X, k))`",
            "Partition(k-DPP)", "`OnePerGroup(groups, k)`, if known",
            "groups apart"),
    Setting("sensor streams", "robot sonar, MLP, k = 64", "streams",
            "streams/sonar, MLP, k=64", "accuracy", "`Partition(cells(time, k))`",
            "partition of cells of time", "shuffling"),
    Setting("ordinary images, even classes", "MNIST, CNN, k = 200", "mnist", "mnist/k=200",
            "accuracy", "`diversify(X, k, labels=y, w=0.5)`", "k-DPP", "shuffling", digits=2),
    Setting("the same, one epoch", "MNIST, softmax, k = 64", "partitions",
            "partitions/mnist/1 epoch", "accuracy", "`Partition(Stratified(y, k))`",
            "classes spread", "shuffling"),
    Setting("following `dmsgd inspect`", "six held-out data sets, softmax", "advice",
            "advice/held out", advice.SCORE, "what it recommends", advice.ADVICE,
            "`Stratified` always", "stratified"),
]  # fmt: skip


def rows(stored: Mapping[str, pl.DataFrame]) -> list[list[str]]:
    """Return the table from the stored results, by name of the experiment."""
    head = [
        "task",
        f"data ({SEEDS} seeds unless named)",
        "baseline",
        "gain, points unless named",
        "strongest simple alternative",
    ]
    stored = {**stored, "advice": advice.pooled(stored["advice"])}
    return [head, *(each.cells(stored[each.results]) for each in SETTINGS)]
