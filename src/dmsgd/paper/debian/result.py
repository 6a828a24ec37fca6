"""What is run on the descriptions of Debian's packages, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.halves import SAME_B
from dmsgd.paper.models import budgets
from dmsgd.paper.models.topics import Inference

TITLE = "58 sections of Debian's packages, 6,271 to 15 texts each: topics as features"

#: The designs that are trained with; see `debian.corpus`.
UNIFORM, LENGTH, KDPP, LSA, CLUSTERED, STRATIFIED = (
    "uniform", "by length", "k-DPP", "k-DPP, LSA", "pre-clustered", "stratified by section",
)  # fmt: skip
LSA_B = f"{SAME_B}, LSA"
ARMS = (UNIFORM, LENGTH, SAME_B, KDPP, LSA_B, LSA, CLUSTERED, STRATIFIED)

#: By which designs are compared: equal updates, and equal words.
CLOCKS = budgets.CLOCKS

#: What `Result.measured` measures: name, unit, digits. More is better in all of them.
MEASURES = (
    ("average accuracy", "points", 1),
    ("average accuracy, sections weighted", "points", 1),
    ("total accuracy", "points", 2),
    ("accuracy of the smaller half of the sections", "points", 1),
    ("lower perplexity", "words", 1),
)

#: Each k-DPP with what draws documents as often.
PAIRS = {KDPP: SAME_B, LSA: LSA_B}


@dataclass(frozen=True)
class Config:
    """What is run; see the folder's text for the reasons.

    documents:    that are used of all, None for all.
    words:        of the vocabulary: the most frequent ones that are no stop words.
    validation, test: shares of the documents of every section that are not learnt from; settings
                  were chosen on the first, and the second is reported.
    budgets:      numbers of updates, and of average batches of words, after which topics are
                  compared.
    topics:       of the model.
    alpha to iterations: see `models.topics.Inference`.
    penalty:      C of the classifier.
    classified:   training documents at most that the classifier learns from.
    rho:          the power of tf-idf in the k-DPP of the paper's kernel.
    directions:   of the truncated SVD (LSA).
    """

    seeds: int = 10
    k: int = 100
    documents: int | None = None
    words: int = 2500
    validation: float = 0.1
    test: float = 0.2
    budgets: tuple[int, ...] = (100, 400)
    topics: int = 100
    alpha: float = 0.1
    eta: float = 0.1
    offset: float = 10.0
    decay: float = 0.7
    iterations: int = 20
    penalty: float = 100.0
    classified: int = 12_000
    rho: float = 0.1
    directions: int = 150
    workers: int = 1

    @property
    def inference(self) -> Inference:
        """The settings of LDA's inference."""
        return Inference(self.alpha, self.eta, self.offset, self.decay, self.iterations)


QUICK = Config(seeds=2, k=50, documents=2500, words=500, budgets=(30,), topics=20, directions=75)


@dataclass(frozen=True, eq=False)
class Seen:
    """Who is seen by a design, in closed form.

    sections: (sections,) how often a document is drawn, mean over those of a section, times n/k.
    length:   correlation of b with the number of words.
    words:    words in an average batch, over those of uniform ones.
    """

    sections: FloatArray
    length: float
    words: float

    def small(self, sizes: IntArray) -> float:
        """Return how often documents of the smaller half of the sections are drawn, times n/k."""
        half = np.argsort(sizes, kind="stable")[: sizes.size // 2]
        half = half[sizes[half] > 0]
        return float(np.average(self.sections[half], weights=sizes[half]))

    @property
    def average(self) -> float:
        """The mean over sections: above 1 if small ones are seen more than large ones."""
        return float(np.nanmean(self.sections))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one design did on the test documents, at every budget of one clock.

    average:    (seeds, budgets) mean accuracy over sections.
    weighted:   the same of a classifier that gives every section the same weight.
    total:      (seeds, budgets) share of all documents that are classified rightly.
    perplexity: (seeds, budgets) of the other half of a document's words, given one half.
    sections:   (seeds, sections) accuracy by section at the last budget.
    """

    average: FloatArray
    weighted: FloatArray
    total: FloatArray
    perplexity: FloatArray
    sections: FloatArray


@dataclass(frozen=True, eq=False)
class Result:
    """All designs; `names` and `sizes` are the sections and their training documents.

    seen:    by design and, for what is not trained with, by kernel.
    updates, words: outcomes by design, by either clock.
    """

    config: Config
    names: tuple[str, ...]
    sizes: IntArray
    seen: dict[str, Seen]
    updates: dict[str, Outcome]
    words: dict[str, Outcome]

    def of(self, arm: str, clock: str) -> Outcome:
        """Return what a design did by the clock "updates" or "words"."""
        return (self.updates if clock == "updates" else self.words)[arm]

    def measured(self, arm: str, clock: str) -> list[FloatArray]:
        """Return one value a seed for each of MEASURES, at the last budget."""
        outcome = self.of(arm, clock)
        small = np.argsort(self.sizes, kind="stable")[: self.sizes.size // 2]
        return [
            100 * outcome.average[:, -1],
            100 * outcome.weighted[:, -1],
            100 * outcome.total[:, -1],
            100 * np.nanmean(outcome.sections[:, small], axis=1),
            -outcome.perplexity[:, -1],
        ]
