"""Records of the same things in two catalogues, and which belong together (entity resolution).

Köpcke, Thor and Rahm (2010): products of two shops, twice, and papers in two bibliographies.
"""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import numpy.typing as npt

from experiments.datasets.files import VARIABLE, locate, reading

#: The files of both catalogues and of the matches.
FILES = {
    "Abt-Buy": ("Abt", "Buy", "abt_buy_perfectMapping"),
    "Amazon-Google": ("Amazon", "GoogleProducts", "Amzon_GoogleProducts_perfectMapping"),
    "DBLP-ACM": ("DBLP2", "ACM", "DBLP-ACM_perfectMapping"),
}
#: What a record's text is made of: its name, and who made it.
COLUMNS = ("name", "title", "authors", "manufacturer")


@final
@dataclass(frozen=True, eq=False)
class Catalogues:
    """Texts of the records of both catalogues, the catalogue of each (0 or 1), and matches (m, 2).

    A match is a record of the first and one of the second catalogue, by position in `texts`.
    """

    texts: tuple[str, ...]
    catalogue: npt.NDArray[np.int64]
    matches: npt.NDArray[np.int64]


def products(name: str, data_dir: str | os.PathLike[str] | None = None) -> Catalogues:
    """Return "Abt-Buy", "Amazon-Google" or "DBLP-ACM"."""
    if name not in FILES:
        raise ValueError(f"unknown catalogues {name!r}; use one of {', '.join(FILES)}")
    paths = [locate(f"products/{file}.csv.gz", data_dir, _say_how) for file in FILES[name]]
    first, second, matches = (_read(path) for path in paths)
    with reading(paths[2]):
        place = [{row[0]: at for at, row in enumerate(each[1:])} for each in (first, second)]
        pairs = [(place[0][a], len(place[0]) + place[1][b]) for a, b in matches[1:]]
    texts = [_text(each[0], row) for each in (first, second) for row in each[1:]]
    catalogue = np.repeat([0, 1], [len(first) - 1, len(second) - 1])
    return Catalogues(tuple(texts), catalogue, np.array(pairs, dtype=np.int64))


def venues(
    data_dir: str | os.PathLike[str] | None = None,
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Return titles and authors of the papers in DBLP, and the venue of each: five, unequal."""
    path = locate("products/DBLP2.csv.gz", data_dir, _say_how)
    head, *rows = _read(path)
    with reading(path):
        at = head.index("venue")
    number = np.unique([row[at] for row in rows], return_inverse=True)[1]
    return tuple(_text(head, row) for row in rows), number.astype(np.int64)


def _read(path: Path) -> list[list[str]]:
    """Return the rows of a table; the first has the names of the columns."""
    with reading(path):
        with gzip.open(path, "rt", encoding="latin-1", newline="") as file:
            rows = list(csv.reader(file))
        if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
            raise ValueError("rows are missing or of different length")
        return rows


def _text(head: list[str], row: list[str]) -> str:
    return " ".join(cell for name, cell in zip(head, row, strict=True) if name in COLUMNS).lower()


def _say_how(path: Path) -> None:
    """Raise: the publishers ask readers to come to their page."""
    raise FileNotFoundError(
        f"there is no {path}: get the benchmark data sets for entity resolution from "
        f"https://dbs.uni-leipzig.de, compress the CSV files with gzip into a folder products, and "
        f"name the folder that holds it with data_dir or {VARIABLE}"
    )
