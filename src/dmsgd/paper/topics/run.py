"""Topics learnt from generated documents of every size by every design and seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import SAME_B
from dmsgd.paper.models.budgets import CLOCKS, looks
from dmsgd.paper.models.topics import match, word_distributions
from dmsgd.paper.protocol import Progress
from dmsgd.paper.topics.documents import Documents, documents
from dmsgd.paper.topics.result import (
    CLUSTERED,
    KDPP,
    LENGTH,
    UNIFORM,
    UNIT,
    UNIT_B,
    Config,
    Outcome,
    Result,
)
from dmsgd.paper.trials import run_trials

#: How a design draws its batches: (config, documents, seed) -> design.
DESIGNS: dict[str, Callable[[Config, Documents, int], dmsgd.ClosedForm]] = {
    UNIFORM: lambda config, data, seed: dmsgd.Uniform(data.main.size, config.k),
    LENGTH: lambda config, data, seed: dmsgd.Weighted(weights=data.lengths, k=config.k),
    SAME_B: lambda config, data, seed: dmsgd.Weighted(
        dmsgd.inclusion(dmsgd.anneal(data.tfidf, config.rho), config.k), config.k
    ),
    KDPP: lambda config, data, seed: dmsgd.diversify(
        dmsgd.anneal(data.tfidf, config.rho), config.k
    ),
    UNIT_B: lambda config, data, seed: dmsgd.Weighted(
        dmsgd.inclusion(data.tfidf, config.k), config.k
    ),
    UNIT: lambda config, data, seed: dmsgd.diversify(data.tfidf, config.k),
    CLUSTERED: lambda config, data, seed: dmsgd.clustered(data.tfidf, config.k, seed=seed),
}


def load(config: Config, data_dir: str | None = None) -> None:
    """Return nothing: every run generates its documents, and `data_dir` is not used."""


def run(config: Config, data: None, progress: Progress | None = None) -> Result:
    """Return what every design found in the documents of every size and seed."""
    kinds = [(size, arm) for size in sorted(config.sizes) for arm in config.arms(size)]
    jobs = [(config, *kind, seed) for kind in kinds[::-1] for seed in config.seeds_of(kind[0])]
    trials = dict(zip(jobs, run_trials(_trial, jobs, progress, config.workers), strict=True))
    outcomes = []
    for size, arm in kinds:
        own = [trials[config, size, arm, seed] for seed in config.seeds_of(size)]
        distance = np.array([trial.distance for trial in own])
        found = (distance <= config.threshold).sum(axis=3).astype(np.float64)
        seen = np.array([trial.seen for trial in own])
        outcomes.append(
            Outcome(
                size,
                arm,
                found[:, 0],
                found[:, 1],
                distance[:, 0, -1],
                distance[:, 1, -1],
                seen.sum(axis=0) / np.maximum((seen > 0).sum(axis=0), 1),
                float(np.mean([trial.words for trial in own])),
            )
        )
    return Result(config, tuple(outcomes))


@dataclass(frozen=True, eq=False)
class _Trial:
    """(clocks, budgets, true topics) distances; how often topics and words are seen."""

    distance: FloatArray
    seen: FloatArray
    words: float


def _trial(config: Config, size: int, arm: str, seed: int) -> _Trial:
    data = documents(config, size, seed)
    design = DESIGNS[arm](config, data, seed)
    distance = np.empty((len(CLOCKS), len(config.budgets), config.true_topics))
    for clock, budget, model in looks(
        data.counts, design, config.budgets, config.topics, config.inference, seed
    ):
        _, found = match(data.topics, word_distributions(model))
        distance[CLOCKS.index(clock), budget] = found
    b = design.inclusion()
    present = np.bincount(data.main, minlength=config.true_topics)
    seen = np.bincount(data.main, b, config.true_topics) / np.maximum(present, 1)
    words = float(b @ data.lengths) / config.k / float(data.lengths.mean())
    return _Trial(distance, seen * size / config.k, words)
