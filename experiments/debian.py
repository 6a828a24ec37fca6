"""Which sections gain: Debian's package descriptions, 58 sections of 4,390 to 10 training texts.

LDA learns topics from 70 % of each section, and a classifier of topic proportions predicts the
section of the test texts, 20 %. Settings were chosen on the remaining tenth
(docs/results/topics.md).

All arms make equally many updates, and are also compared when they have read equally many words,
which is what an update costs. The k-DPPs are linear: in tf-idf to the power of 0.1, as on R8, and
in 150 directions of tf-idf (LSA) with unit rows, the kernel that draws small sections most often of
those that do not simply read more words. Stratified batches use the sections, others do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from experiments.core import Case, Claim, Decomposition
from experiments.core.compare import values
from experiments.core.figures import differences
from experiments.core.markdown import arm_rows
from experiments.datasets import Corpus, Descriptions, UnequalTopics, debian
from experiments.models.budgets import looks
from experiments.models.sections import SCORES, by_section, scores
from experiments.models.topics import Inference

TITLE = "58 sections of Debian's packages, 6,271 to 15 texts each: topics as features"
INFERENCE = Inference(alpha=0.1, eta=0.1, offset=10.0, decay=0.7, iterations=20)

#: How often texts are drawn, in closed form.
FREQUENCY = ("mean over sections", "smaller half", "correlation with length", "words per batch")
WORDS = " at equal words"


@dataclass(frozen=True)
class Setting:
    """What is run. texts: how many, None for all, 0 for generated ones.  budgets: of updates."""

    k: int = 100
    texts: int | None = None
    words: int = 2500
    directions: int = 150
    topics: int = 100
    budgets: tuple[int, ...] = (100, 400)
    classified: int = 12_000


@cache
def corpus(setting: Setting) -> Corpus:
    """Return the texts of a setting."""
    data = generated() if setting.texts == 0 else debian().thinned(setting.texts)
    return Corpus(data, setting.words, setting.directions)


def generated() -> Descriptions:
    """Return 200 texts of four sections."""
    made = UnequalTopics(200, 120, np.array([0.6, 0.25, 0.1, 0.05]), seed=0)
    words = np.array([f"word{number}" for number in range(120)])
    texts = tuple(" ".join(words.repeat(row)) for row in made.counts.toarray().astype(int))
    return Descriptions(texts, made.main, ("a", "b", "c", "d"))


def linear(rows: Any, k: int, normalize: bool = False) -> Any:
    """Return the k-DPP that is linear in rows."""
    return dmsgd.diversify(rows, k, kernel="linear", normalize=normalize)


#: How the arms draw their batches: (corpus, k) -> design.
ARMS: dict[str, Callable[[Corpus, int], Any]] = {
    "uniform": lambda it, k: dmsgd.Uniform(it.y.size, k),
    "shuffled": lambda it, k: dmsgd.Partition(dmsgd.Uniform(it.y.size, k)),
    "by length": lambda it, k: dmsgd.Weighted(weights=it.lengths, k=k),
    "k-DPP": lambda it, k: linear(dmsgd.features.anneal(it.tfidf, 0.1), k),
    "k-DPP, frequency-matched": lambda it, k: dmsgd.Weighted.like(ARMS["k-DPP"](it, k)),
    "k-DPP, LSA": lambda it, k: linear(it.lsa, k, normalize=True),
    "k-DPP, LSA, frequency-matched": lambda it, k: dmsgd.Weighted.like(ARMS["k-DPP, LSA"](it, k)),
    "pre-clustering": lambda it, k: dmsgd.designs.clustered(dmsgd.features.normalize(it.lsa), k),
    "stratified": lambda it, k: dmsgd.Stratified(it.y, k),
}

#: Those of which only the sampling frequency is computed; the RBF factor lacks 0.4 % of the trace.
KERNELS: dict[str, Callable[[Corpus, int], Any]] = {
    "counts": lambda it, k: linear(it.counts, k),
    "counts, unit rows": lambda it, k: linear(it.counts, k, normalize=True),
    "tf-idf": lambda it, k: linear(it.heavy, k),
    "tf-idf, unit rows": lambda it, k: linear(it.tfidf, k),
    "tf-idf to the power of 0.5": lambda it, k: linear(dmsgd.features.anneal(it.tfidf, 0.5), k),
    "tf-idf to the power of 0.1, unit rows":
        lambda it, k: linear(dmsgd.features.anneal(it.tfidf, 0.1), k, normalize=True),
    "LSA": lambda it, k: linear(it.lsa, k),
    "LSA, whitened": lambda it, k: linear(it.white, k),
    "LSA, whitened, unit rows": lambda it, k: linear(it.white, k, normalize=True),
    "RBF of LSA, unit rows": lambda it, k: dmsgd.diversify(
        dmsgd.features.normalize(it.lsa[:, :50]), k, kernel="rbf", scale=2.0,
        spectrum="pivoted_cholesky", rank=min(600, it.y.size)),
}  # fmt: skip


@cache
def design_of(setting: Setting, name: str) -> Any:
    """Return the design of an arm or kernel, which no seed changes."""
    return (ARMS | KERNELS)[name](corpus(setting), setting.k)


def frequency(task: Corpus, design: Any, seed: int, rate: float) -> Iterator[Any]:
    """Yield inclusion probabilities over those of uniform batches, by section and length."""
    b = design.inclusion() * task.y.size / design.k
    along = np.corrcoef(b, task.lengths)[0, 1] if b.std() > 1e-9 else 0.0
    small = b[np.isin(task.y, task.small)].mean()
    numbers = (by_section(b, task.y), small, along, b @ task.lengths / task.lengths.sum())
    yield from ((0, name, number) for name, number in zip(FREQUENCY, numbers, strict=True))


def run(setting: Setting, task: Corpus, design: Any, seed: int, rate: float) -> Iterator[Any]:
    """Yield the scores of the topics at every budget of updates and of words."""
    at = (task.counts, design, setting.budgets, setting.topics, INFERENCE, seed)
    for clock, number, model in looks(*at):
        suffix = WORDS if clock == "words" else ""
        for name, value in zip(SCORES, scores(model, task, setting.classified), strict=True):
            yield setting.budgets[number], name + suffix, value


def cases_of(setting: Setting, seeds: int) -> list[Case]:
    """Return the sampling frequencies of all kernels, and the trainings."""

    def drawn(names: Iterable[str]) -> dict[str, Any]:
        return {name: lambda task, seed, name=name: design_of(setting, name) for name in names}

    def task(seed: int) -> Corpus:
        return corpus(setting)

    return [
        Case("debian/kernels", task, drawn(ARMS | KERNELS), frequency, 1),
        Case("debian", task, drawn(ARMS), partial(run, setting), seeds),
    ]


def cases(quick: bool = False) -> list[Case]:
    """Return the sampling frequencies and the trainings."""
    return cases_of(Setting(50, 2500, 500, 75, 20, (30,)), 3) if quick else cases_of(Setting(), 10)


def tiny() -> list[Case]:
    """Return the same with generated texts, for tests."""
    return cases_of(Setting(10, 0, 120, 15, 6, (3,), 200), 2)


CLAIMS = [
    Claim("beyond", f"{arm} is better than {against}: {score}{suffix or ' at equal updates'}",
          "debian", arm, score + suffix, against, lower=score == "perplexity")
    for arm, against, suffix, every in (
        ("k-DPP", "uniform", WORDS, SCORES), ("k-DPP", "uniform", "", SCORES),
        ("k-DPP", "shuffled", WORDS, SCORES[::4]), ("k-DPP, LSA", "uniform", WORDS, SCORES[::4]),
        ("by length", "uniform", WORDS, SCORES[4:]), ("stratified", "uniform", WORDS, SCORES[3:4]),
    )
    for score in every
] + [
    Claim("beyond", f"sampling frequency of the {arm}: {FREQUENCY[at]}", "debian/kernels",
          arm, FREQUENCY[at], verdict=False, digits=2)
    for arm, at in (("k-DPP", 0), ("k-DPP, LSA", 0), ("k-DPP", 2))
]  # fmt: skip

DECOMPOSED = [
    Decomposition(f"{arm}: {score}{WORDS}", "debian", arm, score + WORDS,
                  lower=score == "perplexity")
    for arm in ("k-DPP", "k-DPP, LSA") for score in SCORES
]  # fmt: skip


def kernels(table: pl.DataFrame) -> list[list[str]]:
    """Return the cells of a table: sampling frequency by arm and kernel, small sections first."""
    rows = [
        (name, *(values(table, "debian/kernels", name, each)[0] for each in FREQUENCY))
        for name in table.filter(experiment="debian/kernels")["arm"].unique(maintain_order=True)
    ]
    rows.sort(key=lambda row: -row[1])
    return [["kernel or arm", *FREQUENCY]] + [[r[0], *(f"{x:.2f}" for x in r[1:])] for r in rows]


COLUMNS = {score: ("debian", score + WORDS, None) for score in SCORES}
TABLES = {
    "kernels": kernels,
    "debian": lambda table: arm_rows(table.filter(experiment="debian"), COLUMNS, "uniform"),
}


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write the differences from uniform batches at equal words, in three of the scores."""
    average, _, _, small, perplexity = COLUMNS.values()
    columns = {"average accuracy": average, "accuracy, smaller sections": small,
               "perplexity (lower is better)": perplexity}  # fmt: skip
    return [differences(table, folder / "debian.png", columns, "uniform", "minus uniform")]
