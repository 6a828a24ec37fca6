"""Figure 3: LDA on documents of five topics, two of them rare. Which batches find all five?

300 documents are about topics 1 and 2, 50 about 2, 3 and 4, and only 10 about 4 and 5. All arms
make equally many updates with equally large batches. A seed has documents, batches and starting
values of its own; documents and starting values are the same for all arms.

A topic is found if its distance (total variation) to the learnt topic that is assigned to it is at
most 0.2. Two true topics are 1 apart and an equal mixture of two is 0.5 from either, so 0.2 leaves
no room for a mixture.

The paper shows one run and states no settings. alpha = 0.5 is the prior that made the documents;
eta = 1 / topics and decay 0.7 are scikit-learn's defaults. The kernel's rank is the number of
words, 50, which bounds k; 90 updates of 40 are ten epochs. With offset 64 the first few batches do
not decide everything, which helps all arms.

No arm has the k-DPP's repulsion with uniform frequency: it would have to draw 33 documents per
batch from the first group, whose counts have rank 20. None is unbiased: scikit-learn's update takes
no weight per document.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from experiments.core import Case, Claim, Decomposition, training
from experiments.core.compare import Column, mean, values
from experiments.core.figures import differences, save
from experiments.datasets import Topics, synthetic_topics
from experiments.models.topics import Inference, learn_topics, match, word_distributions

TITLE = "Figure 3: rare topics of generated documents"
N, K, STEPS, FOUND = 360, 40, 90, 0.2
INFERENCE = Inference(alpha=0.5, eta=0.2, offset=64.0, decay=0.7, iterations=100)
ALL, HOW_MANY, RAREST = "all five topics", "topics found", "share of the ten rarest documents"


def kdpp(task: Topics, normalize: bool = False) -> Any:
    """Return the k-DPP of the word counts."""
    counts = task.counts.astype(float)
    return dmsgd.diversify(counts, K, kernel="linear", normalize=normalize)


#: An arm of which the runs are stored alone; commit 5021779 is the last with its code.
DENSITY = "k-DPP, density target"
ARMS = training(
    N,
    K,
    {
        "k-DPP": lambda task, seed: kdpp(task),
        "k-DPP, frequency-matched": lambda task, seed: dmsgd.Weighted.like(kdpp(task)),
        "k-DPP, unit rows": lambda task, seed: kdpp(task, normalize=True),
        "by squared length": lambda task, seed: dmsgd.Weighted(
            weights=(task.counts.astype(float) ** 2).sum(axis=1), k=K
        ),
        "pre-clustering": lambda task, seed: dmsgd.designs.clustered(
            task.counts.astype(float), K, seed=seed
        ),
    },
)


def learn(task: Topics, design: Any, seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the learnt topics in the order of the true ones, and their distances to them."""
    counts = task.counts.astype(float)
    model = learn_topics(counts, design, steps, len(task.topics), INFERENCE, seed)
    found = word_distributions(model)
    partner, distance = match(task.topics, found)
    return found[partner], distance


def run(task: Topics, design: Any, seed: int, rate: float, steps: int) -> Any:
    """Yield which topics are found, and how often the rarest documents are in a batch."""
    _, distance = learn(task, design, seed, steps)
    found = distance <= FOUND
    yield steps, HOW_MANY, found.sum()
    yield steps, ALL, 100 * found.all()
    yield steps, "a topic missed", 100 * (not found.all())
    yield steps, "topic 5 missed", 100 * (not found[-1])
    for topic, value in enumerate(distance, start=1):
        yield steps, f"distance of topic {topic}", value
    yield 0, RAREST, 100 * design.inclusion()[task.group == 2].sum() / K


def cases(quick: bool = False) -> list[Case]:
    """Return all arms on documents of 80 seeds."""
    seeds, loop = 10 if quick else 80, partial(run, steps=STEPS)
    return [Case("synthetic_lda", synthetic_topics, ARMS, loop, seeds)]


def tiny() -> list[Case]:
    """Return the same with few updates."""
    return [Case("synthetic_lda", synthetic_topics, ARMS, partial(run, steps=4), seeds=2)]


def most(where: str, statement: str, arm: str, measure: str) -> Claim:
    """Return the claim that more than half of all runs have the measure."""
    return Claim(where, f"{statement} in most runs", "synthetic_lda", arm, measure, limit=0.5,
                 share=True, paper="yes (one run)", note="most: Wilson's 95 % interval of the "
                 "share lies above a half")  # fmt: skip


def better(statement: str, arm: str, against: str, measure: str, paper: str = "") -> Claim:
    """Return the claim that an arm is better than another."""
    return Claim("Fig. 3" if against == "uniform" else "beyond", statement, "synthetic_lda", arm,
                 measure, against, paper=paper, digits=2 if measure == HOW_MANY else 1,
                 note="the same documents and starting values for both")  # fmt: skip


CLAIMS = [
    most("Fig. 3 (c)", "the k-DPP finds all five topics", "k-DPP", ALL),
    most("Fig. 3 (b)", "uniform batches miss a topic", "uniform", "a topic missed"),
    most("Fig. 3 (b)", "uniform batches miss topic 5", "uniform", "topic 5 missed"),
    better("% of runs with all five topics, k-DPP over uniform", "k-DPP", "uniform", ALL),
    better("topics found, k-DPP over uniform", "k-DPP", "uniform", HOW_MANY, "3 and 5 (one run)"),
    better("% of runs with all five topics, k-DPP over shuffled", "k-DPP", "shuffled", ALL),
    better("topics found, k-DPP over shuffled", "k-DPP", "shuffled", HOW_MANY),
]

DECOMPOSED = [
    Decomposition("% of runs with all five topics", "synthetic_lda", "k-DPP", ALL),
    Decomposition("topics found of five", "synthetic_lda", "k-DPP", HOW_MANY, digits=2),
]


def arms_table(table: Any) -> list[list[str]]:
    """Return what every arm finds, and how often it draws the rarest documents."""
    rows = [["batches", "runs with all five topics", "topics found", "rarest ten documents"]]
    for arm in (*ARMS, DENSITY):
        if table.filter(arm=arm).height:
            share, found, rarest = (
                values(table, "synthetic_lda", arm, each) for each in (ALL, HOW_MANY, RAREST)
            )
            text = mean(found).text(2, sign=False)
            rows.append([arm, f"{share.mean():.0f} %", text, f"{rarest.mean():.1f} %"])
    return rows


TABLES = {"synthetic-lda": arms_table}


def typical_seed(table: Any) -> int:
    """Return the first seed at which uniform and k-DPP find as many topics as in their median run.

    Where there is none, the seed that comes nearest.
    """
    found = np.array([values(table, "synthetic_lda", a, HOW_MANY) for a in ("uniform", "k-DPP")])
    medians = np.sort(found, axis=1)[:, found.shape[1] // 2]
    return int(np.abs(found - medians[:, None]).sum(axis=0).argmin())


def figures(table: Any, folder: Path) -> list[Path]:
    """Write the topics of a typical run, and what every arm finds beyond uniform batches."""
    from matplotlib.figure import Figure

    seed, steps = typical_seed(table), int(table["step"].max())
    task = synthetic_topics(seed)
    panels = {"truth": task.topics}
    for arm in ("uniform", "k-DPP", "k-DPP, frequency-matched"):
        panels[arm.removeprefix("k-DPP, ")] = learn(task, ARMS[arm](task, seed), seed, steps)[0]
    figure = Figure(figsize=(11, 2.4), layout="constrained")
    for axes, (title, topics) in zip(figure.subplots(1, 4), panels.items(), strict=True):
        axes.imshow(topics, cmap="gray", vmin=0, vmax=task.topics.max(), aspect="auto")
        axes.set(title=title, xlabel="word", xticks=[])
        axes.set_yticks(range(5), [f"topic {topic}" for topic in range(1, 6)])
    figure.suptitle(f"A typical run (seed {seed}): word distribution of each topic")
    gains: dict[str, Column] = {"% of runs with all five topics": ("synthetic_lda", ALL, None)}
    return [
        save(figure, folder / "synthetic-lda-topics.png"),
        differences(table, folder / "synthetic-lda.png", gains, "uniform",
                    "difference from uniform batches, points"),
    ]  # fmt: skip
