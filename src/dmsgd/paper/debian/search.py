"""How the settings of the Debian experiment were chosen.

`search` scores settings on the *validation* documents, with uniform batches and with the k-DPP of
LSA, on seeds from 1000 on, which are not reported; the test documents are not looked at. `best`
takes those with the highest mean of average accuracy, plain and weighted, and total accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dmsgd.designs.source import Source
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.debian.corpus import DESIGNS, Corpus
from dmsgd.paper.debian.result import LSA, UNIFORM, Config
from dmsgd.paper.debian.scores import scores
from dmsgd.paper.models.topics import learn_topics
from dmsgd.paper.protocol import Progress
from dmsgd.paper.trials import run_trials

#: The first seed that settings are chosen on.
FIRST = 1000


def candidates() -> list[Config]:
    """Return the settings that were compared: those of `Config`, and others in one way each."""
    others = (
        {"topics": 100},
        {"topics": 30},
        {"alpha": 1 / 60, "eta": 1 / 60},
        {"eta": 0.5},
        {"offset": 1.0, "decay": 0.5},
        {"iterations": 5},
        {"penalty": 10.0},
    )
    return [Config(), *(replace(Config(), **each) for each in others)]


def search(
    corpus: Corpus, configs: Sequence[Config], seeds: int = 1, progress: Progress | None = None
) -> FloatArray:
    """Return the scores, shape (settings, designs, seeds, 4): average, weighted, total, perplexity.

    The designs are the same for all settings.
    """
    designs = [DESIGNS[arm](configs[0], corpus) for arm in (UNIFORM, LSA)]
    jobs = [
        (config, corpus, design, FIRST + seed)
        for config in configs
        for design in designs
        for seed in range(seeds)
    ]
    found = run_trials(score, jobs, progress, configs[0].workers)
    return np.array(found).reshape(len(configs), len(designs), seeds, 4)


def score(
    config: Config, corpus: Corpus, design: Source, seed: int
) -> tuple[float, float, float, float]:
    """Return average, weighted and total accuracy and perplexity on the validation documents."""
    model = learn_topics(
        corpus.train.counts, design, config.budgets[-1], config.topics, config.inference, seed
    )
    found = scores(config, model, corpus.train, corpus.validation)
    average, weighted = (float(np.nanmean(each)) for each in (found.sections, found.weighted))
    return average, weighted, found.total, found.perplexity


def best(configs: Sequence[Config], found: FloatArray) -> Config:
    """Return the settings with the highest mean accuracy."""
    return configs[int(found[..., :3].mean(axis=(1, 2, 3)).argmax())]
