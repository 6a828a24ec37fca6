"""How good topics are: a classifier of topic proportions, and words not seen yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.debian.corpus import Part
from dmsgd.paper.debian.result import Config
from dmsgd.paper.models.topics import word_distributions


@dataclass(frozen=True, eq=False)
class Scores:
    """Accuracy by section, without and with weights of the sections; in total; perplexity."""

    sections: FloatArray
    weighted: FloatArray
    total: float
    perplexity: float


def scores(config: Config, model: Any, train: Part, test: Part) -> Scores:
    """Return how good the topics of a model are on other documents than it learnt from."""
    chosen = np.sort(np.random.default_rng(0).permutation(train.y.size)[: config.classified])
    features = np.sqrt(model.transform(train.counts[chosen]))
    asked = np.sqrt(model.transform(test.counts))
    y = train.y[chosen]
    right, fair = (
        _classifier(config, weight).fit(features, y).predict(asked) == test.y
        for weight in (None, "balanced")
    )
    found = perplexity(model, test.counts)
    return Scores(test.mean(right), test.mean(fair), float(right.mean()), found)


def _classifier(config: Config, weight: str | None) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=config.penalty, class_weight=weight, max_iter=1000, tol=1e-3)


def perplexity(model: Any, counts: Any) -> float:
    """Return that of half of the words of each document, whose topics the other half tells.

    exp(-mean log p(w)) over these words, p(w) = Σ_k θ_k φ_kw; the halves are the same for all
    models.
    """
    rng = np.random.default_rng(0)
    known = counts.tocsr(copy=True)
    known.data = rng.binomial(known.data.astype(np.int64), 0.5).astype(np.float64)
    asked = (counts - known).tocoo()
    theta, phi = model.transform(known), word_distributions(model)
    likely = np.einsum("ij,ij->i", theta[asked.row], phi.T[asked.col])
    return float(np.exp(-(asked.data @ np.log(likely)) / asked.data.sum()))
