"""Documents of five topics with very unequal use, as in the paper's Figure 3 and supplement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

#: The paper's groups: how many documents, and the Dirichlet prior of their topic proportions.
GROUPS = (
    (300, (0.5, 0.5, 0.01, 0.01, 0.01)),
    (50, (0.01, 0.5, 0.5, 0.5, 0.01)),
    (10, (0.01, 0.01, 0.01, 0.5, 0.5)),
)


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
