"""How the settings of the Debian experiment were chosen.

`search` scores settings on the *validation* documents, with uniform batches and with the k-DPP of
LSA, on seeds from 1000 on, which are not reported; the test documents are not looked at. `best`
takes those with the highest mean of average accuracy, plain and weighted, and total accuracy.

With one seed and 400 updates, in points (average, weighted, total) and perplexity:

                                uniform                     k-DPP, LSA                  mean
    60 topics, as below         33.1  37.9  50.5   760      31.5  36.9  46.2   768      39.3
    100 topics                  36.4  41.6  56.0   720      37.0  42.8  53.8   731      44.6   taken
    30 topics                   24.1  32.3  41.3   799      23.6  28.7  37.7   816      31.3
    α = η = 1/60                32.6  38.3  50.8  1131      31.4  36.1  48.7  1137      39.6
    η = 0.5                     33.9  38.5  53.0   654      33.7  39.5  49.0   669      41.3
    τ0 = 1, κ = 0.5             32.0  37.0  48.6   875      30.6  36.0  45.5   894      38.3
    5 local iterations          32.5  38.4  51.5   729      34.0  36.7  51.4   731      40.8
    C = 10                      32.3  40.0  50.7   760      29.4  37.5  45.9   768      39.3

Each differs from the first in one way; two at a time, and more than 100 topics, were not tried.
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
    """Return the settings that were compared: the first, and what differs from it in one way."""
    others = (
        {"topics": 100},
        {"topics": 30},
        {"alpha": 1 / 60, "eta": 1 / 60},
        {"eta": 0.5},
        {"offset": 1.0, "decay": 0.5},
        {"iterations": 5},
        {"penalty": 10.0},
    )
    first = replace(Config(), topics=60)
    return [first, *(replace(first, **each) for each in others)]


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
