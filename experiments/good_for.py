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
    simplest, simple: the same of the alternative; None if that is the baseline. Backticks mark what
                      is of this package.
    against:          the arm of the baseline.
    label:            what is measured, for readers; by default the measure.
    level, unit:      units of the baseline's value, and of gains.
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
    label: str = ""
    level: str = " %"
    unit: str = ""
    digits: int = 1
    ratio: bool = False

    def cells(self, table: pl.DataFrame) -> list[str]:
        """Return the row: task, data, level of the baseline, gain, and the simplest design."""
        level = values(table, self.case, self.against, self.measure, self.step)
        simplest = self.simplest
        if self.simple is not None:
            simplest += f": {self._text(self._gain(table, self.simple))}"
        base = "" if self.against == "shuffled" else f" ({self.against})"
        found = self._gain(table, self.arm)
        data = self.data + (f" ({found.seeds} seeds)" if found.seeds != SEEDS else "")
        measure = f"{self.label or self.measure}: {level.mean():.{self.digits}f}{self.level}{base}"
        return [self.task, data, measure, f"{self.design}: {self._text(found)}", simplest]

    def _gain(self, table: pl.DataFrame, arm: str) -> Difference:
        where = self.case, arm, self.against, self.measure, self.step
        return compare(table, *where, ratio=self.ratio)

    def _text(self, found: Difference) -> str:
        if self.ratio:
            return found.factor().replace(" (", " times (")
        return found.text(self.digits) + self.unit


#: The last column where nothing simple is better than the baseline.
BASELINE = "the baseline, shuffling"

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
            "`Stratified` by main label, if known", "partition of stratified by main label",
            label="accuracy, mean over rounds"),
    Setting("federated averaging, clients overlap (Dirichlet 0.3)", "the same", "federated",
            "federated/mnist, Dirichlet, k=10", "mean accuracy", "`Partition(cells(updates, k))`",
            "partition of cells by last update", "`Stratified` by main label, if known",
            "partition of stratified by main label", label="accuracy, mean over rounds"),
    Setting("topic models of text", "R8, LDA, k = 80", "r8", "r8", "average accuracy",
            '`diversify(X, k, quality="length")`', "k-DPP", "`Weighted` by length", "by length",
            label="accuracy, mean over classes"),
    Setting("topic models of text", "Debian descriptions, LDA, k = 100", "debian", "debian",
            "average accuracy", "`Weighted.like(diversify(X, k))`", "k-DPP, frequency-matched",
            "`Weighted` by length", "by length", label="accuracy, mean over classes"),
    Setting("rare topics, no labels", "generated documents, LDA", "synthetic_lda", "synthetic_lda",
            "all five topics", '`diversify(X, k, quality="length")`, the paper\'s kernel', "k-DPP",
            "`Weighted.like` of it", "k-DPP, frequency-matched",
            label="runs that find all five topics"),
    Setting("rare topics that are clusters", "100,000 generated documents, LDA", "topics",
            "topics/n=100000", "topics found", "`designs.clustered(X, k)`", "pre-clustering",
            "`Weighted.like` of a k-DPP", "k-DPP, frequency-matched", level=" of 32",
            unit=" topics"),
    Setting("rare classes, no labels", "Oxford-102, 40 to 2 items per class, k = 64", "rare",
            "rare/flowers", "accuracy", "a k-DPP with a density target (removed)",
            "k-DPP linear, density target", "`Weighted` by density", "weighted by density"),
    Setting("what to label next", "Oxford-102, ten rounds of 50", "labelling",
            "labelling/Oxford-102, k=50", "mean accuracy",
            "`select(X, k, quality=u, given=labelled)`", "select",
            "UHerding", "UHerding", against="BADGE",
            label="accuracy, mean over rounds"),
    Setting("what to label next", "R8, ten rounds of 50", "labelling", "labelling/R8, k=50",
            "mean accuracy", "the same", "select", "UHerding", "UHerding",
            against="BADGE", label="accuracy, mean over rounds"),
    Setting("one set to label", "500 of 50,000 package descriptions", "labelling",
            "labelling/one set", "mean over classes", "`select(X, k)`", "select",
            "k-means medoids", "k-means medoids", step=500, against="random",
            label="accuracy, mean over classes"),
    Setting("what to keep for training, classes known", "10 % of MNIST 100:1 with duplicates",
            "labelling", "labelling/kept, MNIST", "accuracy",
            "`select(X, k, groups=y, at_least=...)`", "select, quotas",
            "random rows with the same quotas", "random, quotas", step=10, against="random"),
    Setting("picture coordinates", "elevation map, k = 4,096, 200 updates", "coordinates",
            "coordinates/elevation, k=4096", "PSNR", "`Partition(cells(X, k))`",
            "Partition(cells)", "`cells(X, k)`", "cells", step=200, level=" dB",
            unit=" dB", digits=2),
    Setting("near-duplicates", "generated, k = 64", "repulsion",
            "repulsion/near-copies, skewed/k=64", "steps", "`cells(X, k)`", "cells of x",
            f'{BASELINE}; `diversify(X, k, target="uniform")`', "k-DPP on x", level="", digits=0,
            ratio=True, label="updates to a given loss, fewer are better"),
    Setting("PINN collocation points", "Burgers, k = 256", "pinn",
            "pinn/Burgers, k=256", "relative L2 error", "`cells(X, k)`", "cells",
            "Sobol points", "Sobol", level="", digits=2, ratio=True,
            label="relative L2 error, lower is better"),
    Setting("in-batch negatives", "Abt-Buy records, k = 64", "negatives",
            "negatives/Abt-Buy, alone", "recall@1", "`diversify(X, k, target=\"uniform\")`",
            "k-DPP", "`designs.OnePerGroup(groups, k)`, if known",
            "groups apart"),
    Setting("sensor streams", "robot sonar, MLP, k = 64", "streams",
            "streams/sonar, MLP, k=64", "accuracy", "`Partition(cells(time, k))`",
            "partition of cells of time", BASELINE),
    Setting("ordinary images, even classes", "MNIST, CNN, k = 200", "mnist", "mnist/k=200",
            "accuracy", "`diversify(X, k, labels=y, w=0.5)`", "k-DPP", BASELINE, digits=2,
            label="accuracy at the end"),
    Setting("ordinary images, even classes", "MNIST, CNN, k = 200", "mnist", "mnist/k=200",
            "mean accuracy", "`diversify(X, k, labels=y, w=0.5)`", "k-DPP",
            "`Stratified(y, k)`", "stratified", digits=2, label="accuracy, averaged over training"),
    Setting("ordinary images, one epoch", "MNIST, softmax, k = 64", "partitions",
            "partitions/mnist/1 epoch", "accuracy", "`Partition(Stratified(y, k))`",
            "classes spread", BASELINE),
    Setting("following `dmsgd inspect`", "six held-out data sets, softmax", "advice",
            "advice/held out", advice.SCORE, "what it recommends", advice.ADVICE,
            "`Stratified` always", "stratified", label="accuracy, mean over classes"),
]  # fmt: skip


def rows(stored: Mapping[str, pl.DataFrame]) -> list[list[str]]:
    """Return the table from the stored results, by name of the experiment."""
    head = [
        "task",
        f"data ({SEEDS} seeds unless named)",
        "measure, and the baseline",
        "design, and its gain",
        "strongest simple alternative, and its gain",
    ]
    stored = {**stored, "advice": advice.pooled(stored["advice"])}
    return [head, *(each.cells(stored[each.results]) for each in SETTINGS)]
