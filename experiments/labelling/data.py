"""Embeddings and classes of the study, small enough to be taken to another machine.

    python -m experiments.labelling.data FOLDER     writes all sets to FOLDER/labelling/*.npz

A set that is in the folder labelling of DMSGD_DATA is read, every other one is made from its
source. Both have the precision of 16 bits, so that they are the same.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments import datasets
from experiments.datasets.files import VARIABLE

#: Items of a set at most: a pool and a test set.
MOST = 12000
#: Candidates for each record of the first catalogue.
NEAREST = 5


@cache
def embeddings(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings in float32, of mean square 1, and classes."""
    found = _stored(name)
    if found is None:
        X, y = MAKERS[name]()
        some = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST])
        X, y = X[some], y[some]
        found = (X / np.sqrt((X**2).mean())).astype(np.float16), y
    return found[0].astype(np.float32), found[1].astype(np.int64)


@cache
def images(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images as bytes, (n, 28, 28), and classes."""
    found = _stored(f"{name} images")
    if found is None and name == "MNIST":
        data = datasets.mnist()
        some = np.random.default_rng(0).permutation(len(data.y_train))[:MOST]
        found = data.x_train[some], data.y_train[some]
    elif found is None:
        found = _fashion()
    return found[0].reshape(-1, 28, 28), found[1].astype(np.int64)


def _stored(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    path = Path(os.environ.get(VARIABLE, "")) / "labelling" / f"{name.replace(' ', '-')}.npz"
    if not path.is_file():
        return None
    with np.load(path) as file:
        return file["X"], file["y"]


def _fashion() -> tuple[np.ndarray, np.ndarray]:
    with np.load(datasets.files.locate("fashion/fashion.npz", None, _missing)) as file:
        return file["X"], file["y"]


def _missing(path: Path) -> None:
    raise FileNotFoundError(f"there is no {path}; name the folder of the data with {VARIABLE}")


def _spam() -> tuple[np.ndarray, np.ndarray]:
    with np.load(datasets.files.locate("spam/spam.npz", None, _missing)) as file:
        return file["X"].astype(float), file["y"]


def _components(X: np.ndarray, count: int) -> np.ndarray:
    """Return the principal components, largest first."""
    centred = X - X.mean(0)
    vectors = np.linalg.eigh(centred.T @ centred)[1][:, : -count - 1 : -1]
    return np.asarray(centred @ vectors)


def _mnist() -> tuple[np.ndarray, np.ndarray]:
    data = datasets.mnist()
    some = np.random.default_rng(0).permutation(len(data.y_train))[:MOST]
    return _components(data.x_train[some].reshape(MOST, -1) / 255.0, 50), data.y_train[some]


def _flowers() -> tuple[np.ndarray, np.ndarray]:
    data = datasets.flowers()
    return _components(data.X.astype(float), 100), data.y


def _text_components(texts: Any, count: int) -> np.ndarray:
    """Return singular vectors of tf-idf, rows of length 1."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(sublinear_tf=True, min_df=3).fit_transform(texts)
    X = TruncatedSVD(count, random_state=0).fit_transform(weights)
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9))


def _r8() -> tuple[np.ndarray, np.ndarray]:
    corpus = datasets.r8()
    texts = _text_components((*corpus.train, *corpus.test), 100)
    return texts, np.r_[corpus.y_train, corpus.y_test]


def _debian() -> tuple[np.ndarray, np.ndarray]:
    corpus = datasets.debian()
    return _text_components(corpus.texts, 100), corpus.y


def _stream(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return channels, cut off at their outermost 0.5 %: a few rows hold spikes."""
    data = datasets.stream(name)
    return _standard(np.clip(data.X, *np.quantile(data.X, [0.005, 0.995], axis=0))), data.y


def _sonar() -> tuple[np.ndarray, np.ndarray]:
    data = datasets.stream("sonar")
    return _standard(data.X), data.y


def _table(load: str) -> tuple[np.ndarray, np.ndarray]:
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, load)(return_X_y=True)
    return (X if load == "load_digits" else _standard(X)), y


def _standard(X: np.ndarray) -> np.ndarray:
    return np.asarray((X - X.mean(0)) / np.maximum(X.std(0), 1e-9))


def _pairs(name: str = "Abt-Buy") -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of records that are alike: how much so, and whether they are the same thing.

    For each record of the first catalogue, the nearest of the second by tf-idf of words.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    data = datasets.products(name)
    first, second = (np.flatnonzero(data.catalogue == each) for each in (0, 1))
    words = TfidfVectorizer(sublinear_tf=True).fit_transform(data.texts)
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3)).fit_transform(data.texts)
    close = (words[first] @ words[second].T).toarray()
    near = np.argsort(-close, axis=1, kind="stable")[:, :NEAREST]
    a, b = np.repeat(first, NEAREST), second[near.ravel()]
    tokens = [set(re.findall(r"\w+", text)) for text in data.texts]
    numbers = [{each for each in own if re.search(r"\d", each)} for own in tokens]
    rank = np.tile(np.arange(NEAREST), first.size)
    X = np.column_stack(
        [
            np.take_along_axis(close, near, 1).ravel(),
            np.asarray(letters[a].multiply(letters[b]).sum(1)).ravel(),
            [_overlap(tokens[i], tokens[j]) for i, j in zip(a, b, strict=True)],
            [_overlap(numbers[i], numbers[j]) for i, j in zip(a, b, strict=True)],
            [len(numbers[i] & numbers[j]) for i, j in zip(a, b, strict=True)],
            [abs(len(tokens[i]) - len(tokens[j])) for i, j in zip(a, b, strict=True)],
            rank,
            np.take_along_axis(close, near, 1).ravel() / np.repeat(close.max(1), NEAREST),
        ]
    )
    known = {tuple(pair) for pair in data.matches.tolist()}
    y = np.array([(i, j) in known for i, j in zip(a.tolist(), b.tolist(), strict=True)])
    return _standard(X), y.astype(np.int64)


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def _clothes() -> tuple[np.ndarray, np.ndarray]:
    X, y = _fashion()
    return _components(X / 255.0, 50), y


MAKERS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "MNIST": _mnist,
    "R8": _r8,
    "Oxford-102": _flowers,
    "Debian": _debian,
    "robot sonar": _sonar,
    "Fashion-MNIST": _clothes,
    "Spambase": _spam,
    "digits": lambda: _table("load_digits"),
    "breast cancer": lambda: _table("load_breast_cancer"),
    "wine": lambda: _table("load_wine"),
    "EEG": lambda: _stream("eeg"),
    "occupancy": lambda: _stream("occupancy"),
    "products": _pairs,
}
#: Sets of which images are used.
PICTURES = ("Fashion-MNIST",)


def write(folder: Path) -> None:
    """Write all sets to the folder labelling of a folder."""
    there = folder / "labelling"
    there.mkdir(parents=True, exist_ok=True)
    for name in MAKERS:
        X, y = embeddings(name)
        small = {"X": X.astype(np.float16), "y": y.astype(np.int16)}
        np.savez_compressed(there / f"{name.replace(' ', '-')}.npz", **small)
        print(name, *X.shape, y.max() + 1)
    for name in PICTURES:
        X, y = images(name)
        file = there / f"{name.replace(' ', '-')}-images.npz"
        np.savez_compressed(file, X=X, y=y.astype(np.int16))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
