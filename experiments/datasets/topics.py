"""Generated documents of topics with very unequal use: the paper's five, and any number.

The five are those of the paper's Figure 3 and supplement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy import sparse

#: The paper's groups: how many documents, and the Dirichlet prior of their topic proportions.
GROUPS = (
    (300, (0.5, 0.5, 0.01, 0.01, 0.01)),
    (50, (0.01, 0.5, 0.5, 0.5, 0.01)),
    (10, (0.01, 0.01, 0.01, 0.5, 0.5)),
)

#: Of `UnequalTopics`: a word of rank r has the frequency 1 / (r + FLAT), and a topic the weight of
#: DRAWS draws of it. Words of a document: median, spread of the logarithm, the least; the share of
#: them that come from any topic.
FLAT, DRAWS = 10.0, 20.0
LENGTH, SPREAD, SHORTEST, FOREIGN = 40, 0.6, 10, 0.2


@final
@dataclass(frozen=True, eq=False)
class Topics:
    """The documents and what they were made from.

    counts: (360, words) how often each word is in each document.
    topics: (5, words) the word distribution of each topic.
    group:  (360,) the group of each document, from the commonest (0) to the rarest (2).
    """

    counts: np.ndarray
    topics: np.ndarray
    group: np.ndarray


def synthetic_topics(seed: int = 0, words_per_topic: int = 10, length: int = 100) -> Topics:
    """Return 360 documents of `length` words each, from five topics.

    The paper shows its topics in a picture only ("distinct patterns"); here topic t is uniform over
    its own `words_per_topic` words.
    """
    width = words_per_topic
    # The key that dmsgd makes of a seed, which stored results were made with.
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    rng = np.random.default_rng(int(key))
    topics = np.kron(np.eye(5), np.full(width, 1 / width))
    group = np.repeat(np.arange(len(GROUPS)), [size for size, _ in GROUPS])
    priors = np.array([prior for _, prior in GROUPS])
    shares = np.stack([rng.dirichlet(priors[g]) for g in group])
    counts = np.stack([rng.multinomial(length, share @ topics) for share in shares])
    return Topics(counts.astype(np.int64), topics, group.astype(np.int64))


@final
class UnequalTopics:
    """Documents of one main topic each; every seed has topics of its own.

    Words are of Zipf-like frequency, and topics share the frequent ones. A fifth of the words of a
    document come from all topics, and its length does not depend on its topic.

    shares:  (topics,) of the documents that have each main topic.
    counts:  (n, words) how often each word is in each document, CSR.
    topics:  (topics, words) the word distribution of each topic.
    main:    (n,) the main topic of each document.
    lengths: (n,) words of each document.
    """

    def __init__(self, n: int, words: int, shares: np.ndarray, seed: int) -> None:
        rng = np.random.default_rng(seed)
        zipf = 1 / (np.arange(words) + FLAT)
        self.topics = rng.dirichlet(DRAWS * zipf / zipf.sum(), shares.size)
        self.main = rng.choice(shares.size, n, p=shares)
        lengths = np.rint(LENGTH * np.exp(SPREAD * rng.standard_normal(n))).astype(np.int64)
        self.lengths = np.maximum(lengths, SHORTEST)
        source = np.repeat(self.main.astype(np.int8), self.lengths)  # the topic of each word
        foreign = np.flatnonzero(rng.random(source.size) < FOREIGN)
        source[foreign] = rng.choice(shares.size, foreign.size, p=shares)
        word = np.empty(source.size, dtype=np.int32)
        for topic, likely in enumerate(self.topics):
            places = np.flatnonzero(source == topic)
            word[places] = rng.choice(words, places.size, p=likely)
        starts = np.append(0, np.cumsum(self.lengths))
        self.counts = sparse.csr_array((np.ones(word.size), word, starts), shape=(n, words))
        self.counts.sum_duplicates()

    @cached_property
    def tfidf(self) -> Any:
        """The counts as tf-idf with rows of length 1."""
        from sklearn.feature_extraction.text import TfidfTransformer

        return TfidfTransformer().fit_transform(self.counts)
