"""The data of the examples: long-tailed digits, and documents some of whose topics are rare."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Array = NDArray[Any]


def long_tailed_digits(seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Return X, y, test_X, test_y of scikit-learn's 8 x 8 digits.

    The commonest digit has 120 training items, each next one 0.7 times as many, the rarest 5. The
    test set has 50 of every digit, so that accuracy on it is balanced accuracy. The seed decides
    which digits are rare, and the split.
    """
    pixels, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    parts: list[tuple[Array, Array]] = []
    for rank, digit in enumerate(rng.permutation(10)):
        items = rng.permutation(np.flatnonzero(digits == digit))
        parts.append((items[50:][: round(120 * 0.7**rank)], items[:50]))
    X = (pixels / 16).astype(np.float32)
    train, test = (np.concatenate(items) for items in zip(*parts, strict=True))
    return X[train], digits[train], X[test], digits[test]


def documents(seed: int = 0, words: int = 200, length: int = 150) -> tuple[Array, Array]:
    """Return counts (420, words) of generated documents, and their ten true topics (10, words).

    80 documents are mainly about each of the first five topics, 4 about each of the last five.
    """
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(words, 0.05), size=10)
    sizes = np.repeat([80, 4], 5)
    mixture = 0.8 * np.repeat(np.eye(10), sizes, axis=0)
    mixture += 0.2 * rng.dirichlet(sizes / 10, size=sizes.sum())
    return rng.multinomial(length, mixture @ topics), topics


def recovery(learned: Array, topics: Array) -> Array:
    """Return the cosine of each true topic with the learned topic that is most like it."""
    learned, topics = (t / np.linalg.norm(t, axis=1, keepdims=True) for t in (learned, topics))
    cosines: Array = topics @ learned.T
    return np.asarray(cosines.max(axis=1))
