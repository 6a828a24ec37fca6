"""What is run on generated topics of very unequal shares, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import SAME_B
from dmsgd.paper.models import budgets
from dmsgd.paper.models.topics import Inference

TITLE = "Which topics are found: shares from 20 % to 0.02 %, up to a million documents"

#: The designs; see `topics.run`.
UNIFORM, LENGTH, KDPP, UNIT, CLUSTERED = (
    "uniform", "by length", "k-DPP", "k-DPP, unit rows", "pre-clustered",
)  # fmt: skip
UNIT_B = f"{SAME_B}, unit rows"
ARMS = (UNIFORM, LENGTH, SAME_B, KDPP, UNIT_B, UNIT, CLUSTERED)

#: By which designs are compared: equal updates, and equal words.
CLOCKS = budgets.CLOCKS

#: Each k-DPP with what draws documents as often.
PAIRS = {KDPP: SAME_B, UNIT: UNIT_B}


@dataclass(frozen=True)
class Config:
    """What is run; see the folder's text for the reasons.

    sizes:        numbers of documents.
    large, large_seeds: from this size on there are so many seeds at most, and no pre-clustering,
                  whose k-means takes longer than all the rest.
    budgets:      numbers of updates, and of average batches of words, after which topics are
                  compared.
    topics:       of the model.
    words:        of the vocabulary.
    true_topics, ratio: how many there are, and the share of each in that of the one before.
    foreign:      share of a document's words that comes from any topic.
    alpha to iterations: see `models.topics.Inference`.
    rho:          the power of tf-idf in the k-DPP of the paper's kernel.
    threshold:    the largest distance (total variation) at which a topic counts as found.
    """

    seeds: int = 10
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    large: int = 1_000_000
    large_seeds: int = 5
    k: int = 100
    budgets: tuple[int, ...] = (12, 25, 50, 100, 200, 400)
    topics: int = 40
    words: int = 1000
    true_topics: int = 32
    ratio: float = 0.8
    foreign: float = 0.2
    alpha: float = 0.025
    eta: float = 0.025
    offset: float = 10.0
    decay: float = 0.7
    iterations: int = 20
    rho: float = 0.1
    threshold: float = 0.3
    workers: int = 1

    @property
    def shares(self) -> FloatArray:
        """The share of every topic, the largest first: 20 % to 0.02 % as it stands."""
        shares = self.ratio ** np.arange(self.true_topics)
        return np.asarray(shares / shares.sum())

    @property
    def inference(self) -> Inference:
        """The settings of LDA's inference."""
        return Inference(self.alpha, self.eta, self.offset, self.decay, self.iterations)

    def arms(self, size: int) -> tuple[str, ...]:
        """Return the designs that are run with so many documents."""
        return tuple(arm for arm in ARMS if size < self.large or arm != CLUSTERED)

    def seeds_of(self, size: int) -> range:
        """Return the seeds that are run with so many documents."""
        return range(self.seeds if size < self.large else min(self.seeds, self.large_seeds))


QUICK = Config(seeds=2, sizes=(2000,), budgets=(25, 50))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one design found in documents of one size.

    by_updates, by_words: (seeds, budgets) topics found after so many updates, or when so many words
              had been read.
    distance, distance_by_words: (seeds, true topics) from each true topic to the one assigned to
              it, at the last budget of either kind.
    expected: (true topics,) expected share of a batch, over the share of the documents; 0 where
              there are none; mean over the seeds that have some.
    words:    words in an average batch, over those of uniform ones; mean over seeds.
    """

    size: int
    arm: str
    by_updates: FloatArray
    by_words: FloatArray
    distance: FloatArray
    distance_by_words: FloatArray
    expected: FloatArray
    words: float

    def found(self, clock: str) -> FloatArray:
        """Return the topics found at every budget of "updates" or "words"."""
        return self.by_updates if clock == "updates" else self.by_words

    def hits(self, clock: str, threshold: float) -> FloatArray:
        """Return for each seed and topic 1.0 if it was found at the last budget, else 0.0."""
        distance = self.distance if clock == "updates" else self.distance_by_words
        return np.asarray(distance <= threshold, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Result:
    """All sizes and designs."""

    config: Config
    outcomes: tuple[Outcome, ...]

    def of(self, size: int, arm: str) -> Outcome:
        """Return one outcome."""
        return next(each for each in self.outcomes if (each.size, each.arm) == (size, arm))
