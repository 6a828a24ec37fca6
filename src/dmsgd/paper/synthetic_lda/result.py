"""What is run for Figure 3, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.models.topics import Inference

TITLE = "Fig. 3: rare topics of generated documents, SVI against DM-SVI"

#: The two methods that the paper compares.
COMPARED = ("SVI", "DM-SVI")


@dataclass(frozen=True)
class Config:
    """What is run; see the folder's text for the reasons.

    alpha to iterations: see `models.topics.Inference`.
    words_per_topic, length: of the generated documents.
    threshold: the largest distance (total variation) at which a topic counts as recovered.
    """

    seeds: int = 80
    k: int = 40
    steps: int = 90
    alpha: float = 0.5
    eta: float = 0.2
    offset: float = 64.0
    decay: float = 0.7
    iterations: int = 100
    words_per_topic: int = 10
    length: int = 100
    threshold: float = 0.2
    workers: int = 1

    @property
    def inference(self) -> Inference:
        """The settings of LDA's inference."""
        return Inference(self.alpha, self.eta, self.offset, self.decay, self.iterations)


QUICK = Config(seeds=10)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method found.

    distance: (seeds, topics) from each true topic to the one assigned to it.
    topics:   (topics, words) the topics found at the seed that is shown, in the order of the true
              ones.
    shares:   (groups,) expected share of a batch by group of documents; mean over seeds.
    """

    distance: FloatArray
    topics: FloatArray
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All methods on the same documents.

    counts, group: the first seed's documents, to show.
    shown:         the seed whose topics are shown.
    """

    config: Config
    truth: FloatArray
    counts: IntArray
    group: IntArray
    shown: int
    outcomes: dict[str, Outcome]

    def recovered(self, method: str) -> FloatArray:
        """Return the number of topics that were recovered, one value per seed."""
        return recovered_of(self.outcomes[method].distance, self.config.threshold)

    def complete(self, method: str) -> FloatArray:
        """Return for each seed 1.0 if all topics were recovered, else 0.0."""
        return np.asarray(self.recovered(method) == len(self.truth), dtype=np.float64)


def recovered_of(distance: FloatArray, threshold: float) -> FloatArray:
    """Return the number of topics within `threshold`, one value per seed."""
    return np.asarray((distance <= threshold).sum(axis=1), dtype=np.float64)


def typical_seed(*recovered: FloatArray) -> int:
    """Return the first seed at which methods recover as many topics as in their median run.

    Where there is none, the seed that comes nearest. `recovered` has one array a method.
    """
    counts = np.array(recovered)
    medians = np.sort(counts, axis=1)[:, counts.shape[1] // 2]
    return int(np.abs(counts - medians[:, None]).sum(axis=0).argmin())
