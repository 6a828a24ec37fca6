"""Topics learnt from generated documents by every method and seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dmsgd
from dmsgd.datasets import Topics, synthetic_topics
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import SAME_B
from dmsgd.paper.models.topics import learn_topics, match, word_distributions
from dmsgd.paper.protocol import Progress
from dmsgd.paper.synthetic_lda.result import (
    COMPARED,
    Config,
    Outcome,
    Result,
    recovered_of,
    typical_seed,
)
from dmsgd.paper.trials import run_trials

#: How a method draws its batches: (word counts, k, seed) -> design.
METHODS: dict[str, Callable[[Any, int, int], dmsgd.ClosedForm]] = {
    "SVI": lambda counts, k, seed: dmsgd.Uniform(len(counts), k),
    "DM-SVI": lambda counts, k, seed: dmsgd.diversify(counts, k),
    SAME_B: lambda counts, k, seed: dmsgd.diversify(counts, k).without_repulsion(),
    "by length": lambda counts, k, seed: dmsgd.Weighted(weights=(counts**2).sum(axis=1), k=k),
    "unit rows": lambda counts, k, seed: dmsgd.diversify(counts, k, normalize=True),
    "density target": lambda counts, k, seed: dmsgd.diversify(counts, k, target="density"),
    "pre-clustered": lambda counts, k, seed: dmsgd.clustered(counts, k, seed=seed),
}


def load(config: Config, data_dir: str | None = None) -> tuple[Topics, ...]:
    """Return the documents of every seed; they are generated, so `data_dir` is not used."""
    return tuple(
        synthetic_topics(seed, config.words_per_topic, config.length)
        for seed in range(config.seeds)
    )


def run(config: Config, data: tuple[Topics, ...], progress: Progress | None = None) -> Result:
    """Return what every method found in every seed's documents."""
    jobs = [
        (config, method, documents, seed)
        for method in METHODS
        for seed, documents in enumerate(data)
    ]
    trials = run_trials(_trial, jobs, progress, config.workers)
    found = {}
    for number, method in enumerate(METHODS):
        own = trials[number * len(data) : (number + 1) * len(data)]
        found[method] = [np.array(part) for part in zip(*own, strict=True)]
    seen = typical_seed(*(recovered_of(found[m][0], config.threshold) for m in COMPARED))
    outcomes = {
        method: Outcome(distance, topics[seen], shares.mean(axis=0))
        for method, (distance, topics, shares) in found.items()
    }
    first = data[0]
    return Result(config, first.topics, first.counts, first.group, seen, outcomes)


def _trial(
    config: Config, method: str, documents: Topics, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distances, the topics in the order of the true ones and the groups' shares."""
    counts = documents.counts.astype(np.float64)
    design = METHODS[method](counts, config.k, seed)
    model = learn_topics(
        counts, design, config.steps, len(documents.topics), config.inference, seed
    )
    found = word_distributions(model)
    partner, distance = match(documents.topics, found)
    shares = np.bincount(documents.group, design.inclusion()) / config.k
    return distance, found[partner], shares
