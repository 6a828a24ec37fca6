"""Coordinate regression: a network learns a picture from batches of its pixels.

An elevation map and a photograph. A pixel's coordinates become random Fourier features, and a
network of two hidden layers learns the values with Adam. Coordinates are what repulsion suits best:
two dimensions, and neighbours are alike. Of the pixels 5 % choose the rate and 5 % are the test;
these are the same for all seeds, which have their own features, start and batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from experiments.core import Case, Claim, lines
from experiments.core.compare import Column
from experiments.core.figures import differences
from experiments.core.markdown import arm_rows
from experiments.datasets.pictures import NAMES, picture

TITLE = "Coordinate regression: an elevation map and a photograph, Fourier features, Adam"
KS = (256, 1024, 4096)
RATES = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2)
#: Early, later, and the end; what claims are about.
SHOWN = (50, 200, 1500)
PARTITION = "Partition(cells)"


@dataclass(frozen=True)
class Size:
    """What is run; `stride`: every so many pixels of a picture, both ways."""

    stride: int = 1
    steps: tuple[int, ...] = (10, 25, 50, 100, 200, 400, 800, 1500)
    frequencies: int = 128
    units: int = 256
    spread: float = 10.0  # of the frequencies, in periods over the longer side


@dataclass(frozen=True, eq=False)
class Pixels:
    """Coordinates in 0..1 and values of the pixels of each part."""

    train: tuple[np.ndarray, np.ndarray]
    valid: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


@cache
def load(name: str, stride: int) -> Pixels:
    """Return the pixels of a picture, split at random once."""
    values = picture(name)[::stride, ::stride]
    height, width, channels = values.shape
    at = np.stack(np.mgrid[:height, :width], axis=-1).reshape(-1, 2) / max(height, width)
    flat, order = values.reshape(-1, channels), np.random.default_rng(0).permutation(len(at))
    part = len(at) // 20
    every = order[2 * part :], order[:part], order[part : 2 * part]
    return Pixels(*((at[chosen], flat[chosen]) for chosen in map(np.sort, every)))


ARMS: dict[str, Any] = {
    "uniform": lambda X, k: dmsgd.Uniform(len(X), k),
    "shuffled": lambda X, k: dmsgd.Partition(dmsgd.Uniform(len(X), k)),
    "cells": dmsgd.cells,
    PARTITION: lambda X, k: dmsgd.Partition(dmsgd.cells(X, k)),
}


@cache
def design(task: Pixels, arm: str, k: int) -> Any:
    """Return batches of an arm, the same for all seeds; all have uniform frequency."""
    return ARMS[arm](task.train[0], k)


def arms(k: int) -> dict[str, Any]:
    """Return what makes each kind of batches."""
    return {arm: lambda task, seed, arm=arm: design(task, arm, k) for arm in ARMS}


def run(
    size: Size,
    tasks: Sequence[Pixels],
    designs: Sequence[Any],
    seeds: Sequence[int],
    rates: Sequence[float],
) -> Iterator[tuple[int, str, list[float]]]:
    """Yield the peak signal-to-noise ratio, dB, of validation and test pixels of each job."""
    import torch

    from experiments.models import many

    here, task = many.device(), tasks[0]  # the pixels are the same for all jobs
    drawn = [np.random.default_rng([seed, 60]).normal(size=(2, size.frequencies)) for seed in seeds]
    waves = many.stacked(drawn, here) * (2 * np.pi * size.spread)
    widths = 2 * size.frequencies, size.units, size.units, task.train[1].shape[1]
    networks = many.initial(widths, seeds, 2.0, here)
    adam = many.Adam(networks, rates)

    def errors(x: Any, y: Any) -> Any:
        phase = x.expand(len(seeds), -1, -1) @ waves
        features = torch.cat([phase.sin(), phase.cos()], dim=2)
        return (many.outputs(networks, features) - y).square().mean(dim=(1, 2))

    X, Y = (torch.from_numpy(each).to(here, torch.float32) for each in task.train)
    judges = {
        measure: [torch.from_numpy(each).to(here, torch.float32) for each in part]
        for measure, part in (("validation PSNR", task.valid), ("PSNR", task.test))
    }
    for first, last in zip((0, *size.steps), size.steps, strict=False):
        batches = many.draw(designs, seeds, last - first, first, here)
        for batch in batches.transpose(0, 1):
            adam.step(errors(X[batch], Y[batch]))
        with torch.no_grad():
            for measure, part in judges.items():
                yield last, measure, (-10 * errors(*part).log10()).tolist()


def cases(quick: bool = False, size: Size | None = None) -> list[Case]:
    """Return both pictures with every k; `quick` is one of them, with few pixels and steps."""
    if quick:
        size = size or Size(4, (10, 25, 50), units=64)
        return make_cases(size, {"elevation": {256: 64}}, 2, (3e-3, 1e-2))
    from experiments.models.many import device

    device()  # here, too: with --workers the record is made in another process than the trainings
    return make_cases(Size(), {name: {k: k for k in KS} for name in NAMES}, 20, RATES)


def tiny() -> list[Case]:
    """Return every case on a coarse grid, with two steps."""
    small = {256: 16, 1024: 24, 4096: 32}
    return make_cases(Size(16, (1, 2), 8, 8), dict.fromkeys(NAMES, small), 2, (3e-3, 1e-2))


def make_cases(
    size: Size, ks: dict[str, dict[int, int]], seeds: int, rates: tuple[float, ...]
) -> list[Case]:
    """Return the cases; ks: picture -> the k of the name -> the k that is run."""
    return [
        Case(f"coordinates/{name}, k={shown}", lambda seed, name=name: load(name, size.stride),
             arms(k), partial(run, size), seeds, rates, "validation PSNR",
             together=True)
        for name, every in ks.items() for shown, k in every.items()
    ]  # fmt: skip


COLUMNS: dict[str, dict[str, Column]] = {
    name: {
        f"k = {k:,}, {step:,} updates": (f"coordinates/{name}, k={k}", "PSNR", step)
        for k in KS
        for step in SHOWN
    }
    for name in NAMES
}
CLAIMS = [
    Claim("beyond", f"{name}, {title}: {PARTITION} ahead of shuffled, dB", where, PARTITION,
          measure, "shuffled", step=step, digits=2)
    for name in NAMES
    for title, (where, measure, step) in COLUMNS[name].items()
]  # fmt: skip
TABLES = {
    f"coordinates-{name}": partial(
        lambda table, name: arm_rows(
            table.filter(table["experiment"].str.contains(name)), COLUMNS[name], "shuffled", 2
        ),
        name=name,
    )
    for name in NAMES
}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write PSNR over steps, and differences from shuffled epochs."""
    written = []
    for name in NAMES:
        panels = {f"{name}, k = {k:,}": f"coordinates/{name}, k={k}" for k in KS}
        shown = {title: each for title, each in COLUMNS[name].items() if "k = 1,024" in title}
        names = table["arm"].unique(maintain_order=True).to_list()
        curves, ahead = (folder / f"coordinates-{name}{end}.png" for end in ("", "-differences"))
        written += [
            lines(table, curves, panels, names, "PSNR", "PSNR of test pixels, dB", log="x"),
            differences(table, ahead, shown, "shuffled", "dB ahead of shuffled epochs"),
        ]
    return written
