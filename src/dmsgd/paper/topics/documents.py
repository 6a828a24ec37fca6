"""Documents of many topics with very unequal shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.topics.result import Config

#: A word of rank r has the frequency 1 / (r + FLAT), a topic the weight of so many draws of it.
FLAT, DRAWS = 10.0, 20.0

#: Words of a document: median, spread of the logarithm, and the least.
LENGTH, SPREAD, SHORTEST = 40, 0.6, 10


@final
@dataclass(frozen=True, eq=False)
class Documents:
    """Generated documents.

    counts: (n, words) how often each word is in each document, CSR.
    topics: (true topics, words) the word distribution of each topic.
    main:   (n,) the topic that each document speaks of.
    """

    counts: Any
    topics: FloatArray
    main: IntArray

    @cached_property
    def tfidf(self) -> Any:
        """The counts as tf-idf with rows of length 1."""
        from sklearn.feature_extraction.text import TfidfTransformer

        return TfidfTransformer().fit_transform(self.counts)

    @property
    def lengths(self) -> FloatArray:
        """The number of words of each document."""
        return np.asarray(self.counts.sum(axis=1)).ravel()


def documents(config: Config, size: int, seed: int) -> Documents:
    """Return `size` documents; every seed has topics of its own."""
    rng = np.random.default_rng(seed)
    shares, true = config.shares, config.true_topics
    zipf = 1 / (np.arange(config.words) + FLAT)
    topics = rng.dirichlet(DRAWS * zipf / zipf.sum(), true)
    main = rng.choice(true, size, p=shares)
    lengths = np.rint(LENGTH * np.exp(SPREAD * rng.standard_normal(size))).astype(np.int64)
    lengths = np.maximum(lengths, SHORTEST)
    source = np.repeat(main.astype(np.int8), lengths)  # the topic that each word comes from
    foreign = np.flatnonzero(rng.random(source.size) < config.foreign)
    source[foreign] = rng.choice(true, foreign.size, p=shares)
    words = np.empty(source.size, dtype=np.int32)
    for topic in range(true):
        places = np.flatnonzero(source == topic)
        words[places] = rng.choice(config.words, places.size, p=topics[topic])
    starts = np.append(0, np.cumsum(lengths))
    shape = (size, config.words)
    counts = sparse.csr_array((np.ones(words.size), words, starts), shape=shape)
    counts.sum_duplicates()
    return Documents(counts, topics, main.astype(np.int64))
