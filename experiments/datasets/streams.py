"""Sensor streams: rows in the order of time, of which neighbours are nearly the same.

"eeg":        EEG eye state (Roesler, UCI): 14,980 rows of 14 channels at 128 Hz, eyes open or
              closed.
"occupancy":  a room (Candanedo and Feldheim, 2016, UCI): 17,895 minutes in two recordings of
              temperature, humidity, light, CO2 and humidity ratio, occupied or not.
"sonar":      a robot that follows walls (Freire et al., UCI): 5,456 rows of 24 sonars at 9 Hz, and
              its four moves.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from experiments.datasets.files import VARIABLE, locate, reading

#: Files of each stream, one per recording: name, SHA-256 of the text, and where UCI shows it.
FILES = {
    "eeg": (
        ("eeg-eye-state.arff", "693c689be416df0b487b45b5b58a44896fbcd0be72b4ef161d5cc34e2c66c928"),
    ),
    "occupancy": (
        ("occupancy-train.csv", "b2c4d0ce2b9e4e453c476f7125ef31aeec2d1f5c7f5572d0e80de3df6521ab56"),
        ("occupancy-test2.csv", "d026d1bd5aeccd4aff4f3b3710d48e40613bd5fc370db7e61bbdcaa50d985095"),
    ),
    "sonar": (
        ("robot-sonar24.csv", "d16340156958f2317c63a93418ab9aa7d60ad0d07869c2e5854d6f14a0755317"),
    ),
}
PAGES = {"eeg": "264/eeg+eye+state", "occupancy": "357/occupancy+detection",
         "sonar": "194/wall+following+robot+navigation+data"}  # fmt: skip
#: The robot's moves; their positions are the labels.
MOVES = ("Move-Forward", "Sharp-Right-Turn", "Slight-Left-Turn", "Slight-Right-Turn")


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """Measurements X (n, channels), classes y and the number of the recording of each row."""

    X: np.ndarray
    y: np.ndarray
    recording: np.ndarray

    def blocks(self, count: int) -> np.ndarray:
        """Return the block of time of each row, of so many; none has rows of two recordings."""
        sizes = np.bincount(self.recording)
        counts = np.maximum(np.rint(count * sizes / sizes.sum()).astype(int), 1)
        counts[0] += count - counts.sum()
        parts = [np.arange(size) * own // size for size, own in zip(sizes, counts, strict=True)]
        return np.concatenate([part + counts[:at].sum() for at, part in enumerate(parts)])


def stream(name: str, data_dir: str | os.PathLike[str] | None = None) -> Stream:
    """Return "eeg", "occupancy" or "sonar"."""
    if name not in FILES:
        raise ValueError(f"unknown stream {name!r}; use {', '.join(FILES)}")
    parts = []
    for file, checksum in FILES[name]:
        path = locate(f"streams/{file}.gz", data_dir, lambda path: _say_how(path, name))
        with reading(path):
            text = gzip.decompress(path.read_bytes())
            if hashlib.sha256(text).hexdigest() != checksum:
                raise ValueError("its checksum is another one")
            parts.append(_rows(name, text.decode()))
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Stream(X, y, np.repeat(np.arange(len(parts)), [len(each) for _, each in parts]))


def _rows(name: str, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Return measurements and classes; occupancy has a row's number and the date before them."""
    below = text.partition("@DATA")[2] if name == "eeg" else text.partition("\n")[2]
    rows = [line.split(",") for line in below.split("\n") if line.strip()]
    first = 2 if name == "occupancy" else 0
    X = np.array([row[first:-1] for row in rows], dtype=np.float64)
    y = [MOVES.index(row[-1].strip()) if name == "sonar" else int(row[-1]) for row in rows]
    return X, np.array(y, dtype=np.int64)


def _say_how(path: Path, name: str) -> None:
    """Raise: the files are not fetched, their public copies have other names and formats."""
    raise FileNotFoundError(
        f"there is no {path.name}: take it from https://archive.ics.uci.edu/dataset/{PAGES[name]}, "
        f"compress it with gzip and save it as {path}; or name a folder that holds "
        f"streams/{path.name} with data_dir or {VARIABLE}"
    )
