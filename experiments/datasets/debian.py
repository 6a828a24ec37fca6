"""Descriptions of Debian's packages: 60,086 short texts in 58 sections of 6,271 down to 15.

The English descriptions of Debian 12 (main, amd64): lower case, letters only, words of one or two
letters left out; texts of fewer than ten words and exact repetitions too. Many packages of one
source say nearly the same. The descriptions have the free licences of their packages.

The texts are in the indexes that apt keeps on every Debian machine, which `made_from` reads: the
sections in Packages, the descriptions in Translation-en.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from experiments.datasets.files import VARIABLE, locate, write_whole

NAME = "debian/descriptions.txt.gz"

#: Where apt keeps its indexes, and the command that reads them however they are compressed.
LISTS = Path("/var/lib/apt/lists")
READER = "/usr/lib/apt/apt-helper"

#: The names of the indexes of the main archive, which its updates and their security have not.
PACKAGES = re.compile(r".*_debian_dists_[a-z]+_main_binary-\w+_Packages(\.\w+)?")
DESCRIPTIONS = re.compile(r".*_debian_dists_[a-z]+_main_i18n_Translation-en(\.\w+)?")

#: A text has at least so many words, a word so many letters; how words are found in a text.
WORDS, LETTERS, WORD = 10, 3, r"\S+"

#: Of the 21 words that are equally frequent at the end of the vocabulary of 2,500, those that the
#: stored results were made with. A sort that is not stable chose them, and others elsewhere.
KEPT = (
    "alpha",
    "break",
    "classical",
    "devanagari",
    "fault",
    "interpolation",
    "plays",
    "significant",
)

#: Shares of every section that are not learnt from: the test, and the part that chose settings.
TEST, VALIDATION = 0.2, 0.1


@final
@dataclass(frozen=True, eq=False)
class Descriptions:
    """The texts, one string each, and their sections as positions in `names`, largest first."""

    texts: tuple[str, ...]
    y: np.ndarray
    names: tuple[str, ...]

    def thinned(self, documents: int | None) -> Descriptions:
        """Return so many of the texts, drawn at random once; None for all."""
        if documents is None:
            return self
        kept = np.sort(np.random.default_rng(0).permutation(len(self.texts))[:documents])
        return _sorted([(self.names[self.y[i]], self.texts[i]) for i in kept])


def debian(data_dir: str | os.PathLike[str] | None = None) -> Descriptions:
    """Return the descriptions of Debian's packages, in the order of the packages' names."""
    path = locate(NAME, data_dir, _fill)
    try:
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError):
        lines = []
    pairs = [line.partition("\t") for line in lines]
    if not pairs or not all(text for _, _, text in pairs):
        raise ValueError(
            f"{path} is damaged or another file: it must have lines of a section, a tab and words, "
            f"gzip; remove it and try again"
        )
    return _sorted([(section, text) for section, _, text in pairs])


@final
class Corpus:
    """Word counts of the training and test texts, and what kernels see of the training texts.

    counts, y:    (n, words) CSR and (n,) sections of the training texts; lengths: (n,) their words.
    test, test_y: the same of the test texts. Those without a word of the vocabulary are left out.
    small:        the smaller half of the sections, by training texts.
    tfidf, heavy: tf-idf with rows of length 1, and as it is.
    lsa, white:   tfidf on its first right singular vectors, as it is and with columns of length 1.
    """

    def __init__(self, data: Descriptions, words: int, directions: int) -> None:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

        train, test = parts(data.y)
        most_frequent = vocabulary([data.texts[i] for i in train], words)
        vectorizer = CountVectorizer(token_pattern=WORD, vocabulary=most_frequent)

        def counted(items: np.ndarray) -> tuple[Any, np.ndarray]:
            counts = vectorizer.transform(data.texts[i] for i in items).astype(np.float64)
            some = np.flatnonzero(counts.getnnz(axis=1))
            return counts[some], data.y[items][some]

        (self.counts, self.y), (self.test, self.test_y) = counted(train), counted(test)
        self.lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        sizes = np.bincount(self.y, minlength=len(data.names))
        self.small = np.argsort(sizes, kind="stable")[: sizes.size // 2]
        self.tfidf = TfidfTransformer().fit_transform(self.counts)
        self.heavy = TfidfTransformer(norm=None).fit_transform(self.counts)
        self.lsa = TruncatedSVD(directions, random_state=0).fit_transform(self.tfidf)
        self.white = self.lsa / np.linalg.norm(self.lsa, axis=0)


def vocabulary(texts: list[str], words: int) -> list[str]:
    """Return the most frequent words that are no stop words, in the order of the alphabet."""
    from sklearn.feature_extraction.text import CountVectorizer

    every = CountVectorizer(token_pattern=WORD, stop_words="english")
    often = every.fit_transform(texts).sum(axis=0).A1
    count = {word: often[column] for word, column in every.vocabulary_.items()}
    order = sorted(count, key=lambda word: (-count[word], word not in KEPT, word))
    return sorted(order[:words])


def parts(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and test texts, the same shares of every section."""
    rng, place = np.random.default_rng(0), np.empty(y.size)
    for section in range(int(y.max()) + 1):
        items = np.flatnonzero(y == section)
        place[items] = (rng.permutation(items.size) + 0.5) / items.size
    train = (place >= TEST) & (place < 1 - VALIDATION)
    return np.flatnonzero(train), np.flatnonzero(place < TEST)


def _sorted(pairs: list[tuple[str, str]]) -> Descriptions:
    """Return pairs of section and text, the sections numbered from the largest on."""
    found, place, counts = np.unique(
        [section for section, _ in pairs], return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.arange(order.size)
    texts, names = tuple(text for _, text in pairs), tuple(found[order].tolist())
    return Descriptions(texts, number[place], names)


def _fill(path: Path) -> None:
    """Write the file from this machine's indexes, or say how to get them."""
    kept = sorted(LISTS.iterdir()) if LISTS.is_dir() else []
    packages, texts = (
        [each for each in kept if kind.fullmatch(each.name)] for kind in (PACKAGES, DESCRIPTIONS)
    )
    if not (packages and texts and Path(READER).is_file()):
        raise FileNotFoundError(
            f"the descriptions of Debian's packages are made from apt's indexes, and {LISTS} has "
            f"none with descriptions: on a Debian machine run `apt-get update -o "
            f"Acquire::Languages=en` as root and try again; or name a folder that holds {NAME} "
            f"with data_dir or {VARIABLE}"
        )
    lines = made_from(_read(packages[0]), _read(texts[0]))
    write_whole(path, gzip.compress(lines.encode(), mtime=0))


def _read(index: Path) -> str:
    """Return the text of an index of apt."""
    done = subprocess.run([READER, "cat-file", str(index)], capture_output=True)
    if done.returncode != 0:
        raise OSError(f"{READER} could not read {index}: {done.stderr.decode().strip()}")
    return done.stdout.decode()


def made_from(packages: str, descriptions: str) -> str:
    """Return lines "section<TAB>words" from an index of packages and one of their descriptions."""
    said = {each["Description-md5"]: each["Description-en"] for each in _stanzas(descriptions)}
    found: dict[str, tuple[str, str]] = {}
    for each in _stanzas(packages):
        found.setdefault(each["Package"], (each["Section"], each.get("Description-md5", "")))
    lines: dict[str, str] = {}
    for _, (section, key) in sorted(found.items()):
        words = [w for w in re.findall("[a-z]+", said.get(key, "").lower()) if len(w) >= LETTERS]
        if len(words) >= WORDS:
            lines.setdefault(" ".join(words), section.rpartition("/")[2])
    return "".join(f"{section}\t{text}\n" for text, section in lines.items())


def _stanzas(index: str) -> Iterator[dict[str, str]]:
    """Yield the fields of every stanza; indented lines belong to the field above."""
    for stanza in index.split("\n\n"):
        fields = re.split(r"\n(?=\S)", stanza.strip("\n"))
        pairs = (field.partition(":") for field in fields if field)
        if found := {name: value.strip() for name, _, value in pairs}:
            yield found
