"""Records of two catalogues as what is trained on, and the matches that are to be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from experiments.datasets import Catalogues, products


@dataclass(frozen=True)
class Size:
    """What is run; `missing`: the share of words that a version of a record lacks."""

    k: int = 64
    inputs: int = 2048
    outputs: int = 32
    directions: int = 256
    versions: int = 8
    missing: float = 0.3
    steps: tuple[int, ...] = (10, 30, 100, 200, 400, 800)
    data: Callable[[str], Catalogues] = products


@dataclass(frozen=True, eq=False)
class Records:
    """versions[0] are the records as they are; `features` are what designs see of them."""

    versions: np.ndarray
    features: np.ndarray
    catalogue: np.ndarray
    group: np.ndarray
    matches: np.ndarray


@dataclass(frozen=True, eq=False)
class Items:
    """What batches are made of: pairs of records by position, (n, 2), which belong together."""

    records: Records
    pairs: np.ndarray

    @property
    def group(self) -> np.ndarray:
        """The thing that an item is a record of."""
        return self.records.group[self.pairs[:, 0]]


@dataclass(frozen=True, eq=False)
class Task:
    """Items to train on; records of the first catalogue whose matches are to be found."""

    items: Items
    valid: np.ndarray
    test: np.ndarray


@cache
def load(name: str, size: Size) -> Records:
    """Return the records of two catalogues as hashed n-grams."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer

    data, rng = size.data(name), np.random.default_rng(0)
    grams = HashingVectorizer(
        analyzer="char_wb", ngram_range=(3, 4), n_features=size.inputs, alternate_sign=False
    )

    def thinned(text: str) -> str:
        words = np.array(text.split())
        kept = rng.random(words.size) >= size.missing
        return " ".join(words[kept]) if kept.any() else text

    versions = [grams.transform(data.texts)]
    for _ in range(size.versions):
        versions.append(grams.transform([thinned(text) for text in data.texts]))
    features = TruncatedSVD(size.directions, random_state=0).fit_transform(versions[0])
    dense = np.stack([each.toarray().astype(np.float16) for each in versions])
    return Records(dense, features, data.catalogue, data.groups(), data.matches)


@cache
def alone(name: str, size: Size) -> Items:
    """Return every record as an item."""
    records = load(name, size)
    return Items(records, np.arange(len(records.group)).repeat(2).reshape(-1, 2))


@cache
def make_task(name: str, way: str, size: Size, seed: int) -> Task:
    """Return what a seed trains on and is tested with: whole groups, so that nothing leaks."""
    records, rng = load(name, size), np.random.default_rng([seed, 62])
    thing = records.group[records.matches[:, 0]]
    train, valid = (0.0, 0.5) if way == "alone" else (0.5, 0.6)
    things = rng.permutation(np.unique(thing))
    parts = np.split(things, [int(train * things.size), int(valid * things.size)])
    of_train, *queries = (records.matches[np.isin(thing, part)] for part in parts)
    items = alone(name, size) if way == "alone" else Items(records, of_train)
    return Task(items, *(np.unique(part[:, 0]) for part in queries))
