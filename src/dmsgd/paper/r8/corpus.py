"""R8 as word counts and tf-idf, and the designs that draw its documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dmsgd
from dmsgd import datasets
from dmsgd.inputs.arrays import IntArray
from dmsgd.paper.halves import SAME_B, UNIFORM_B
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


def annealed(config: Config, corpus: Corpus, **options: Any) -> dmsgd.KDPP:
    """Return the paper's k-DPP, linear in tf-idf to the power of rho, with options of diversify."""
    return dmsgd.diversify(dmsgd.anneal(corpus.tfidf, config.rho), config.k, **options)


#: How a method draws its batches: (config, corpus) -> design. `designs` adds the same b.
METHODS: dict[str, Callable[[Config, Corpus], dmsgd.ClosedForm]] = {
    "SVI": lambda config, corpus: dmsgd.Uniform(corpus.y.size, config.k),
    "DM-SVI": annealed,
    UNIFORM_B: lambda config, corpus: annealed(config, corpus, target="uniform"),
    "by length": lambda config, corpus: dmsgd.Weighted(
        weights=np.asarray(corpus.counts.sum(axis=1)).ravel(), k=config.k
    ),
    "unit rows": lambda config, corpus: annealed(config, corpus, normalize=True),
    "pre-clustered": lambda config, corpus: dmsgd.clustered(corpus.tfidf, config.k),
    "stratified by class": lambda config, corpus: dmsgd.Stratified(corpus.y, config.k),
}


def designs(config: Config, corpus: Corpus) -> dict[str, dmsgd.ClosedForm]:
    """Return the design of every method, each made once."""
    kdpp = annealed(config, corpus)
    others = {
        method: build(config, corpus) for method, build in METHODS.items() if method != "DM-SVI"
    }
    uniform = others.pop("SVI")
    return {"SVI": uniform, "DM-SVI": kdpp, SAME_B: kdpp.without_repulsion(), **others}


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
