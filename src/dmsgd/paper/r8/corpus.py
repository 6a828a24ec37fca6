"""R8 as word counts and tf-idf, and the designs that draw its documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dmsgd
from dmsgd import datasets
from dmsgd.inputs.arrays import IntArray
from dmsgd.paper.r8.result import Config


@dataclass(frozen=True, eq=False)
class Corpus:
    """R8 as numbers: word counts, tf-idf and classes; `words` names the columns."""

    counts: Any
    tfidf: Any
    y: IntArray
    test_counts: Any
    test_y: IntArray
    words: tuple[str, ...]


#: How a method draws its batches: (config, corpus) -> design.
METHODS: dict[str, Callable[[Config, Corpus], dmsgd.ClosedForm]] = {
    "SVI": lambda config, corpus: dmsgd.Uniform(corpus.y.size, config.k),
    "DM-SVI": lambda config, corpus: dmsgd.diversify(
        dmsgd.anneal(corpus.tfidf, config.rho), config.k
    ),
    "pre-clustered": lambda config, corpus: dmsgd.clustered(corpus.tfidf, config.k),
    "stratified by class": lambda config, corpus: dmsgd.Stratified(corpus.y, config.k),
}


def make_corpus(config: Config, data: datasets.R8) -> Corpus:
    """Return counts and tf-idf (rows of length 1); the vocabulary is that of the training part."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    vectorizer = CountVectorizer(
        token_pattern=r"\S+",
        min_df=config.min_df,
        stop_words="english" if config.stop_words else None,
    )
    counts = vectorizer.fit_transform(data.train).astype(np.float64)
    return Corpus(
        counts,
        TfidfTransformer().fit_transform(counts),
        data.y_train,
        vectorizer.transform(data.test).astype(np.float64),
        data.y_test,
        tuple(vectorizer.get_feature_names_out().tolist()),
    )
