"""R8 as word counts and tf-idf, the designs that draw its documents, and LDA on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import dmsgd
from experiments.core import training
from experiments.datasets import R8, r8
from experiments.models.topics import Inference, learn_topics

TOPICS = 30

#: Chosen by cross-validation, and scikit-learn's defaults: what one gets without a search.
SEARCHED = Inference(alpha=0.3, eta=1.0, offset=1.0, decay=0.5, iterations=5)
DEFAULT = Inference(alpha=1 / 30, eta=1 / 30, offset=10.0, decay=0.7, iterations=100)


@dataclass(frozen=True)
class Size:
    """How much is run: training documents, documents per batch, updates."""

    documents: int
    k: int
    steps: int


#: The paper's, a small one, and one on generated documents.
FULL, QUICK, TINY = Size(5485, 80, 69), Size(2000, 80, 25), Size(200, 20, 3)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Word counts, tf-idf and classes; `words` names the columns, `names` the classes."""

    counts: Any
    tfidf: Any
    y: np.ndarray
    test_counts: Any
    test_y: np.ndarray
    words: np.ndarray
    names: tuple[str, ...]


@cache
def corpus(size: Size) -> Corpus:
    """Return the documents; the vocabulary is that of the training part."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    data = generated() if size == TINY else r8().thinned(size.documents)
    vectorizer = CountVectorizer(token_pattern=r"\S+", min_df=5, stop_words="english")
    counts = vectorizer.fit_transform(data.train).astype(float)
    return Corpus(
        counts,
        TfidfTransformer().fit_transform(counts),
        data.y_train,
        vectorizer.transform(data.test).astype(float),
        data.y_test,
        vectorizer.get_feature_names_out(),
        data.names,
    )


def generated() -> R8:
    """Return four classes of 150, 30, 12 and 8 documents: words of their own and common ones."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(120)])
    parts = []
    for sizes in ((150, 30, 12, 8), (30, 10, 5, 5)):
        y = np.repeat(np.arange(4), sizes)
        own = [rng.integers(20 * label, 20 * label + 20, rng.integers(10, 21)) for label in y]
        both = [np.append(each, rng.integers(80, 120, rng.integers(10, 21))) for each in own]
        parts.append((tuple(" ".join(words[each]) for each in both), y))
    return R8(*parts[0], *parts[1], ("earn", "acq", "ship", "grain"))


@cache
def kdpp(task: Corpus, k: int, normalize: bool = False, target: Any = None) -> Any:
    """Return the paper's k-DPP: linear in tf-idf to the power of 0.1."""
    rows = dmsgd.features.anneal(task.tfidf, 0.1)
    return dmsgd.diversify(rows, k, kernel="linear", normalize=normalize, target=target)


@cache
def clustered(task: Corpus, k: int) -> Any:
    """Return a design that draws one document from each of k clusters of the tf-idf."""
    return dmsgd.designs.clustered(task.tfidf, k)


@cache
def lengths(task: Corpus) -> np.ndarray:
    """Return the number of words of each training document."""
    return np.asarray(task.counts.sum(axis=1)).ravel()


def arms(size: Size) -> dict[str, Any]:
    """Return all designs. No k-DPP knows the classes; "stratified" does."""
    k = size.k
    return training(
        size.documents,
        k,
        {
            "stratified": lambda task, seed: dmsgd.Stratified(task.y, k),
            "k-DPP": lambda task, seed: kdpp(task, k),
            "k-DPP, frequency-matched": lambda task, seed: dmsgd.Weighted.like(kdpp(task, k)),
            "k-DPP, uniform frequency": lambda task, seed: kdpp(task, k, target="uniform"),
            "k-DPP, unit rows": lambda task, seed: kdpp(task, k, normalize=True),
            "by length": lambda task, seed: dmsgd.Weighted(weights=lengths(task), k=k),
            "pre-clustering": lambda task, seed: clustered(task, k),
        },
    )


def learn(task: Corpus, design: Any, seed: int, size: Size, inference: Inference) -> Any:
    """Return trained LDA."""
    return learn_topics(task.counts, design, size.steps, TOPICS, inference, seed)
