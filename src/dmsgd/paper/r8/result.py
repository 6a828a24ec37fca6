"""What is run on R8, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.models.topics import Inference

TITLE = "Fig. 4 to 6: news topics as features, SVI against DM-SVI on Reuters R8"

#: The two methods that the paper compares.
COMPARED = ("SVI", "DM-SVI")


@dataclass(frozen=True)
class Config:
    """What is run. k, steps, topics and rho are the paper's; see `search` for the others.

    documents:    training documents, None for all; fewer make an eigendecomposition of seconds.
    variant:      "no-short" (words of three letters or more, as in the paper's tables) or
                  "all-terms".
    min_df:       a word of the vocabulary is in at least so many training documents.
    stop_words:   leave out scikit-learn's English stop words.
    alpha to iterations: see `models.topics.Inference`.
    form:         what the SVM sees of the topic proportions θ: "plain" or "root" (√θ).
    penalty:      C of the SVM.
    """

    seeds: int = 40
    k: int = 80
    steps: int = 69
    topics: int = 30
    rho: float = 0.1
    documents: int | None = None
    variant: str = "no-short"
    min_df: int = 5
    stop_words: bool = True
    alpha: float = 0.3
    eta: float = 1.0
    offset: float = 1.0
    decay: float = 0.5
    iterations: int = 5
    form: str = "root"
    penalty: float = 10.0
    workers: int = 1

    @property
    def inference(self) -> Inference:
        """The settings of LDA's inference."""
        return Inference(self.alpha, self.eta, self.offset, self.decay, self.iterations)


QUICK = Config(seeds=2, steps=25, documents=2000)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method did. Topics and words are those of the first seed.

    confusion:  (classes, classes) share of the documents of a class (row) taken for another
                (column); mean over seeds.
    accuracy:   (seeds, classes) the diagonal, for each seed.
    total:      (seeds,) share of all test documents that are classified rightly.
    redundancy: (seeds,) mean cosine between two topics.
    expected:   (classes,) expected share of a batch by class, from `inclusion()`.
    drawn:      (classes,) the share in the batches that were used, all seeds together.
    plane:      (topics, 2) topics on the first two principal components of all methods' topics.
    top_words:  the most probable words of each topic.
    """

    confusion: FloatArray
    accuracy: FloatArray
    total: FloatArray
    redundancy: FloatArray
    expected: FloatArray
    drawn: FloatArray
    plane: FloatArray
    top_words: tuple[tuple[str, ...], ...]

    @property
    def average(self) -> FloatArray:
        """Mean accuracy over the classes, one value per seed."""
        return np.asarray(self.accuracy.mean(axis=1))


@dataclass(frozen=True, eq=False)
class Result:
    """All methods; `names` and `sizes` are the classes and their training documents.

    defaults: average and total accuracy by method with scikit-learn's default inference, shape
              (seeds, 2).
    """

    config: Config
    names: tuple[str, ...]
    sizes: IntArray
    outcomes: dict[str, Outcome]
    defaults: dict[str, FloatArray]
