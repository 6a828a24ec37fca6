"""The descriptions as word counts, and the designs that draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import dmsgd
from dmsgd.datasets import Descriptions
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.debian.result import (
    CLUSTERED,
    KDPP,
    LENGTH,
    LSA,
    LSA_B,
    STRATIFIED,
    UNIFORM,
    Config,
    Seen,
)
from dmsgd.paper.halves import SAME_B

#: Of LSA, how many directions an RBF kernel sees, its scale, and the rank of its factor: the best
#: of 10, 20 and 50 directions and scales 0.5, 1 and 2. What is left out is 0.4 % of the trace.
WIDE, SCALE, RANK = 50, 2.0, 600


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the documents: word counts, sections, and how many sections there are."""

    counts: Any
    y: IntArray
    sections: int

    def mean(self, values: Any) -> FloatArray:
        """Return the mean of one value a document by section, NaN where there is no document."""
        sizes = np.bincount(self.y, minlength=self.sections)
        sums = np.bincount(self.y, values, self.sections)
        return np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan)


@dataclass(frozen=True, eq=False)
class Corpus:
    """The parts, and what kernels see of the training part.

    tfidf:     rows of length 1.
    heavy:     tf-idf with rows as they are.
    embedding: tf-idf on its first `directions` right singular vectors (LSA), the largest first.
    """

    train: Part
    validation: Part
    test: Part
    tfidf: Any
    heavy: Any
    embedding: FloatArray


def make_corpus(config: Config, data: Descriptions) -> Corpus:
    """Return the parts, cut section by section; words are chosen on the training part."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    train, validation, test = cut(config, data.y)
    vectorizer = CountVectorizer(
        token_pattern=r"\S+", stop_words="english", max_features=config.words
    )
    vectorizer.fit(data.texts[i] for i in train)

    def part(items: IntArray) -> Part:
        """Return those of the documents that have a word of the vocabulary."""
        counts = vectorizer.transform(data.texts[i] for i in items).astype(np.float64)
        some = np.flatnonzero(counts.getnnz(axis=1))
        return Part(counts[some], data.y[items][some], len(data.names))

    learnt = part(train)
    tfidf = TfidfTransformer().fit_transform(learnt.counts)
    heavy = TfidfTransformer(norm=None).fit_transform(learnt.counts)
    embedding = TruncatedSVD(config.directions, random_state=0).fit_transform(tfidf)
    return Corpus(learnt, part(validation), part(test), tfidf, heavy, embedding)


def cut(config: Config, y: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the training, validation and test documents, the same shares of every section."""
    rng = np.random.default_rng(0)
    place = np.empty(y.size)
    for section in range(int(y.max()) + 1):
        items = np.flatnonzero(y == section)
        place[items] = (rng.permutation(items.size) + 0.5) / items.size
    tested, validated = place < config.test, place >= 1 - config.validation
    parts = (~tested & ~validated, validated, tested)
    train, validation, test = (np.flatnonzero(chosen) for chosen in parts)
    return train, validation, test


#: How a design draws its batches: (config, corpus) -> design. The k-DPPs come with their b alone.
DESIGNS: dict[str, Callable[[Config, Corpus], dmsgd.ClosedForm]] = {
    UNIFORM: lambda config, corpus: dmsgd.Uniform(corpus.train.y.size, config.k),
    LENGTH: lambda config, corpus: dmsgd.Weighted(weights=lengths(corpus), k=config.k),
    KDPP: lambda config, corpus: dmsgd.diversify(dmsgd.anneal(corpus.tfidf, config.rho), config.k),
    SAME_B: lambda config, corpus: dmsgd.Weighted(
        dmsgd.inclusion(dmsgd.anneal(corpus.tfidf, config.rho), config.k), config.k
    ),
    LSA: lambda config, corpus: dmsgd.diversify(corpus.embedding, config.k, normalize=True),
    LSA_B: lambda config, corpus: dmsgd.Weighted(
        dmsgd.inclusion(corpus.embedding, config.k, normalize=True), config.k
    ),
    CLUSTERED: lambda config, corpus: dmsgd.clustered(dmsgd.normalize(corpus.embedding), config.k),
    STRATIFIED: lambda config, corpus: dmsgd.Stratified(corpus.train.y, config.k),
}

#: Features of linear kernels that are only looked at: (config, corpus) -> features.
FEATURES: dict[str, Callable[[Config, Corpus], Any]] = {
    "counts": lambda config, corpus: corpus.train.counts,
    "counts, unit rows": lambda config, corpus: dmsgd.normalize(corpus.train.counts),
    "tf-idf": lambda config, corpus: corpus.heavy,
    "tf-idf, unit rows": lambda config, corpus: corpus.tfidf,
    "tf-idf to the power of 0.5": lambda config, corpus: dmsgd.anneal(corpus.tfidf, 0.5),
    "tf-idf to the power of 0.1, unit rows": lambda config, corpus: dmsgd.normalize(
        dmsgd.anneal(corpus.tfidf, config.rho)
    ),
    "LSA": lambda config, corpus: corpus.embedding,
    "LSA, whitened": lambda config, corpus: white(corpus.embedding),
    "LSA, whitened, unit rows": lambda config, corpus: dmsgd.normalize(white(corpus.embedding)),
}

#: Kernels of which a look is more than `dmsgd.inclusion`: (config, corpus) -> b.
OTHERS: dict[str, Callable[[Config, Corpus], FloatArray]] = {
    "RBF of LSA, unit rows": lambda config, corpus: dmsgd.diversify(
        dmsgd.normalize(corpus.embedding[:, :WIDE]), config.k, kernel="rbf", scale=SCALE,
        spectrum=partial(dmsgd.pivoted_cholesky, rank=min(RANK, corpus.train.y.size)),
    ).inclusion(),
}  # fmt: skip

#: All that is only looked at.
KERNELS = (*FEATURES, *OTHERS)


def inclusion(config: Config, corpus: Corpus, kernel: str) -> FloatArray:
    """Return how often each document is drawn by the k-DPP of one of KERNELS."""
    if kernel in OTHERS:
        return OTHERS[kernel](config, corpus)
    return dmsgd.inclusion(FEATURES[kernel](config, corpus), config.k)


def white(embedding: FloatArray) -> FloatArray:
    """Return columns of length 1."""
    return np.asarray(embedding / np.linalg.norm(embedding, axis=0))


def lengths(corpus: Corpus) -> FloatArray:
    """Return the number of words of each training document."""
    return np.asarray(corpus.train.counts.sum(axis=1)).ravel()


def seen(corpus: Corpus, b: FloatArray, k: int) -> Seen:
    """Return who is seen if documents are drawn with the probabilities b."""
    words = lengths(corpus)
    sections = corpus.train.mean(b) * b.size / k
    spread = b.std() > 1e-9 * b.mean()  # uniform batches follow nothing
    along = float(np.corrcoef(b, words)[0, 1]) if spread else 0.0
    return Seen(sections, along, float(b @ words) / k / float(words.mean()))
