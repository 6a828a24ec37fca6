"""Who is seen by every kernel; topics and their scores by every design and seed."""

from __future__ import annotations

import numpy as np

import dmsgd
from dmsgd import datasets
from dmsgd.paper.debian.corpus import DESIGNS, KERNELS, Corpus, Part, inclusion, make_corpus, seen
from dmsgd.paper.debian.result import ARMS, Config, Outcome, Result, Seen
from dmsgd.paper.debian.scores import Scores, scores
from dmsgd.paper.models.budgets import CLOCKS, PATIENCE, looks
from dmsgd.paper.protocol import Progress
from dmsgd.paper.trials import run_trials


def load(config: Config, data_dir: str | None = None) -> datasets.Descriptions:
    """Return the descriptions."""
    return datasets.debian(data_dir).thinned(config.documents)


def run(config: Config, data: datasets.Descriptions, progress: Progress | None = None) -> Result:
    """Return who is seen, and the scores of all designs on the test documents."""
    corpus = make_corpus(config, data)
    made = run_trials(_design, [(config, corpus, arm) for arm in ARMS], workers=config.workers)
    looked = run_trials(
        _looked_at, [(config, corpus, kernel) for kernel in KERNELS], workers=config.workers
    )
    who = {arm: found for arm, (found, _) in zip(ARMS, made, strict=True)}
    who |= dict(zip(KERNELS, looked, strict=True))
    jobs = [
        (config, corpus.train, corpus.test, schedules[seed], seed)
        for _, schedules in made
        for seed in range(config.seeds)
    ]
    trials = run_trials(_trial, jobs, progress, config.workers)
    clocks: list[dict[str, Outcome]] = [{} for _ in CLOCKS]
    for number, arm in enumerate(ARMS):
        own = trials[number * config.seeds : (number + 1) * config.seeds]
        for clock, outcomes in enumerate(clocks):
            outcomes[arm] = _outcome([trial[clock] for trial in own])
    sizes = np.bincount(corpus.train.y, minlength=len(data.names)).astype(np.int64)
    return Result(config, data.names, sizes, who, *clocks)


def _design(config: Config, corpus: Corpus, arm: str) -> tuple[Seen, list[dmsgd.Schedule]]:
    """Return who is seen, and the batches of every seed, more than will be needed."""
    design = DESIGNS[arm](config, corpus)
    steps = PATIENCE * config.budgets[-1]
    schedules = [dmsgd.presample(design, steps, seed) for seed in range(config.seeds)]
    return seen(corpus, design.inclusion(), config.k), schedules


def _looked_at(config: Config, corpus: Corpus, kernel: str) -> Seen:
    return seen(corpus, inclusion(config, corpus, kernel), config.k)


def _trial(
    config: Config, train: Part, test: Part, schedule: dmsgd.Schedule, seed: int
) -> list[list[Scores]]:
    """Return the scores by clock and budget."""
    found: list[list[Scores]] = [[] for _ in CLOCKS]
    for clock, _, model in looks(
        train.counts, schedule, config.budgets, config.topics, config.inference, seed
    ):
        found[CLOCKS.index(clock)].append(scores(config, model, train, test))
    return found


def _outcome(own: list[list[Scores]]) -> Outcome:
    """Return the scores of all seeds, each with one for every budget."""
    return Outcome(
        np.array([[np.nanmean(each.sections) for each in run] for run in own]),
        np.array([[np.nanmean(each.weighted) for each in run] for run in own]),
        np.array([[each.total for each in run] for run in own]),
        np.array([[each.perplexity for each in run] for run in own]),
        np.array([run[-1].sections for run in own]),
    )
