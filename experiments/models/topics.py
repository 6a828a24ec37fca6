"""What the LDA experiments share: training topics, matching them, and how alike they are."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from dmsgd.lda import train


@dataclass(frozen=True)
class Inference:
    """The settings of SVI for LDA that the paper leaves open.

    alpha, eta:    Dirichlet priors of a document's topics and of a topic's words.
    offset, decay: τ0 and κ of the learning rate (τ0 + t)^-κ.
    iterations:    local updates of a document's topic proportions, at most.
    """

    alpha: float
    eta: float
    offset: float
    decay: float
    iterations: int


def topic_model(design: Any, topics: int, inference: Inference, seed: int) -> Any:
    """Return scikit-learn's LDA, untrained, that makes one update a draw of `design`."""
    from sklearn.decomposition import LatentDirichletAllocation

    return LatentDirichletAllocation(
        topics,
        doc_topic_prior=inference.alpha,
        topic_word_prior=inference.eta,
        learning_offset=inference.offset,
        learning_decay=inference.decay,
        max_doc_update_iter=inference.iterations,
        random_state=seed,
        batch_size=design.k,
        total_samples=design.n,
    )


def learn_topics(
    counts: Any, design: Any, steps: int, topics: int, inference: Inference, seed: int
) -> Any:
    """Return LDA trained by `steps` updates, each on one draw of `design` (Algorithm 2)."""
    model = topic_model(design, topics, inference, seed)
    deque(train(model, counts, design, steps, seed), maxlen=0)
    return model


def word_distributions(model: Any) -> np.ndarray:
    """Return the expected word distribution of each topic, shape (topics, words)."""
    return np.asarray(model.components_ / model.components_.sum(axis=1, keepdims=True))


def match(truth: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each true topic the found topic assigned to it and their distance.

    The distance is total variation, the share of a topic's weight that sits on the wrong words; the
    assignment is one to one with the smallest sum.

    >>> match(np.eye(2), np.array([[0.2, 0.8], [1.0, 0.0]]))
    (array([1, 0]), array([0. , 0.2]))
    """
    distance = np.abs(truth[:, None] - found).sum(axis=2) / 2
    rows, columns = linear_sum_assignment(distance)
    return columns.astype(np.int64), distance[rows, columns]


def redundancy(topics: np.ndarray) -> float:
    """Return the mean cosine between two different topics: 1 if all are the same.

    >>> redundancy(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))
    0.3333333333333333
    """
    unit = topics / np.linalg.norm(topics, axis=1, keepdims=True)
    count = len(unit)
    return float(((unit @ unit.T).sum() - count) / (count * (count - 1)))
