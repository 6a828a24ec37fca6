"""How good topics are on texts with sections: a classifier of topic proportions, and perplexity."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.datasets import Corpus
from experiments.models.topics import word_distributions

#: What `scores` returns. Average accuracy is the mean over sections; "sections weighted" is that of
#: a classifier that gives every section the same weight.
SCORES = ("average accuracy", "average accuracy, sections weighted", "total accuracy",
          "accuracy of the smaller half of the sections", "perplexity")  # fmt: skip


def scores(model: Any, corpus: Corpus, most: int) -> tuple[float, ...]:
    """Return the SCORES on the test texts; the classifier learns from `most` training texts."""
    from sklearn.linear_model import LogisticRegression

    chosen = np.sort(np.random.default_rng(0).permutation(corpus.y.size)[:most])
    learnt, asked = (np.sqrt(model.transform(x)) for x in (corpus.counts[chosen], corpus.test))
    right = {}
    for weight in (None, "balanced"):
        classifier = LogisticRegression(C=100.0, class_weight=weight, max_iter=1000, tol=1e-3)
        classifier.fit(learnt, corpus.y[chosen])
        right[weight] = 100.0 * (classifier.predict(asked) == corpus.test_y)
    y, small = corpus.test_y, np.isin(corpus.test_y, corpus.small)
    return (
        by_section(right[None], y),
        by_section(right["balanced"], y),
        float(right[None].mean()),
        by_section(right[None][small], y[small]),
        perplexity(model, corpus.test),
    )


def by_section(each: np.ndarray, y: np.ndarray) -> float:
    """Return the mean over sections of their means; sections without texts do not count."""
    sizes = np.bincount(y)
    return float((np.bincount(y, each)[sizes > 0] / sizes[sizes > 0]).mean())


def perplexity(model: Any, counts: Any) -> float:
    """Return the perplexity of half of the words of each text given the other half.

    exp(-mean log p(w)) over these words, p(w) = Σ_k θ_k φ_kw. The halves are the same for all
    models.
    """
    rng = np.random.default_rng(0)
    known = counts.tocsr(copy=True)
    known.data = rng.binomial(known.data.astype(np.int64), 0.5).astype(np.float64)
    asked = (counts - known).tocoo()
    theta, phi = model.transform(known), word_distributions(model)
    likely = np.einsum("ij,ij->i", theta[asked.row], phi.T[asked.col])
    return float(np.exp(-(asked.data @ np.log(likely)) / asked.data.sum()))
