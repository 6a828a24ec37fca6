"""A network that solves a differential equation: where shall its residual be measured?

Poisson's equation on a square, with a known solution, and Burgers' equation with a shock (nu =
0.01 / pi; reference: Cole-Hopf). The network, tanh with three hidden layers, fulfils the boundary
and start conditions by construction, so that a loss is the mean squared residual at k points of a
batch. Points come from a pool of random ones, or are made anew for every step: Sobol's
sequence, scrambled, and Latin hypercubes. Error: that of the solution on a grid, relative, in L2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from experiments.core import Case, Claim, bars, compare, lines

TITLE = "Collocation points of physics-informed networks: Poisson and Burgers"
EQUATIONS = ("Poisson", "Burgers")
KS = (64, 256)
ERROR = "relative L2 error"


@dataclass(frozen=True)
class Size:
    """What is run: points of the pool, steps, units of a layer, side of the grid of the error."""

    pool: int = 1 << 16
    steps: tuple[int, ...] = (100, 200, 500, 1000, 2000, 5000)
    units: int = 50
    grid: int = 64


#: (steps, seed) -> points in the unit square, (steps, k, 2).
Points = Callable[[int, int], np.ndarray]


def arms(k: int) -> dict[str, Callable[[np.ndarray, int], Points]]:
    """Return where points come from; a task is the pool."""

    def pooled(make: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray, int], Points]:
        def arm(pool: np.ndarray, seed: int) -> Points:
            design = make(pool)
            return lambda steps, key: pool[design.sample(steps, key)]

        return arm

    def sobol(steps: int, seed: int) -> np.ndarray:
        from scipy.stats import qmc

        enough = (steps * k - 1).bit_length()
        drawn = qmc.Sobol(2, seed=seed).random_base2(enough)[: steps * k]
        return np.asarray(drawn.reshape(steps, k, 2))

    def hypercube(steps: int, seed: int) -> np.ndarray:
        from scipy.stats import qmc

        drawn = qmc.LatinHypercube(2 * steps, seed=seed).random(k)
        return np.asarray(drawn.reshape(k, steps, 2).swapaxes(0, 1))

    return {
        "uniform": pooled(lambda pool: dmsgd.Uniform(len(pool), k)),
        "shuffled": pooled(lambda pool: dmsgd.Partition(dmsgd.Uniform(len(pool), k))),
        "cells": pooled(lambda pool: dmsgd.cells(pool, k)),
        "Partition(cells)": pooled(lambda pool: dmsgd.Partition(dmsgd.cells(pool, k))),
        "Sobol": lambda pool, seed: sobol,
        "Latin hypercube": lambda pool, seed: hypercube,
    }


def run(
    equation: str,
    size: Size,
    pools: Sequence[np.ndarray],
    points: Sequence[Points],
    seeds: Sequence[int],
    rates: Sequence[float],
) -> Iterator[tuple[int, str, list[float]]]:
    """Yield the relative error of the solution of each job."""
    import torch

    from experiments.models import equations, many

    here = many.device()
    networks = many.initial((2, *[size.units] * 3, 1), seeds, 1.0, here)
    adam = many.Adam(networks, rates)
    grid, truth = (
        torch.from_numpy(each).to(here, torch.float32)
        for each in equations.exact(equation, size.grid)
    )
    drawn = [
        make(size.steps[-1], seed).astype(np.float32)
        for make, seed in zip(points, seeds, strict=True)
    ]
    every = many.stacked(drawn, here)
    for step in range(size.steps[-1]):
        adam.step(equations.residual(equation, networks, every[:, step]).square().mean(dim=(1, 2)))
        if step + 1 in size.steps:
            with torch.no_grad():
                found = equations.solution(equation, networks, grid.expand(len(seeds), -1, -1))[0][
                    ..., 0
                ]
                yield step + 1, ERROR, ((found - truth).norm(dim=1) / truth.norm()).tolist()


def pool(size: Size, seed: int) -> np.ndarray:
    """Return the random points of a seed."""
    return np.random.default_rng([seed, 65]).random((size.pool, 2))


def cases(quick: bool = False) -> list[Case]:
    """Return both equations with every k; `quick` is Poisson with few steps."""
    if quick:
        return make_cases(Size(4096, (100, 200), 20), EQUATIONS[:1], {64: 64}, 2, (3e-3, 1e-2))
    from experiments.models.many import device

    device()  # here, too: with --workers the record is made in another process than the trainings
    return make_cases(Size(), EQUATIONS, {k: k for k in KS}, 20, (1e-4, 3e-4, 1e-3, 3e-3, 1e-2))


def tiny() -> list[Case]:
    """Return every case with two steps."""
    return make_cases(Size(64, (1, 2), 4, 4), EQUATIONS, {64: 4, 256: 8}, 2, (3e-3, 1e-2))


def make_cases(
    size: Size, equations: Sequence[str], ks: dict[int, int], seeds: int, rates: tuple[float, ...]
) -> list[Case]:
    """Return the cases; ks: the k of the name -> the k that is run."""
    return [
        Case(f"pinn/{equation}, k={shown}", partial(pool, size), arms(k),
             partial(run, equation, size), seeds, rates, ERROR, lower=True, together=True)
        for equation in equations for shown, k in ks.items()
    ]  # fmt: skip


CLAIMS = [
    Claim("beyond", f"{equation}, k = {k}, {step or 5000} updates: {arm} errs less than {against}",
          f"pinn/{equation}, k={k}", arm, ERROR, against, step=step, lower=True, ratio=True)
    for equation in EQUATIONS for k in KS
    for arm, against, step in (("Partition(cells)", "shuffled", 500),
                               ("Partition(cells)", "shuffled", None), ("cells", "Sobol", None))
]  # fmt: skip


def table_rows(table: Any) -> list[list[str]]:
    """Return the errors of each arm over those of shuffled batches, with intervals."""
    where = [f"pinn/{equation}, k={k}" for equation in EQUATIONS for k in KS]
    rows = [["points", *(each.removeprefix("pinn/") for each in where)]]
    for arm in table["arm"].unique(maintain_order=True):
        cells = [compare(table, each, arm, "shuffled", ERROR, ratio=True) for each in where]
        rows.append([arm, *("1" if arm == "shuffled" else cell.factor() for cell in cells)])
    return rows


TABLES = {"pinn": table_rows}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write errors over steps, and the last ones over those of shuffled batches."""
    panels = {
        f"{equation}, k = {k}": f"pinn/{equation}, k={k}" for equation in EQUATIONS for k in KS
    }
    names = table["arm"].unique(maintain_order=True).to_list()
    ratios = {
        title: {
            arm: compare(table, where, arm, "shuffled", ERROR, ratio=True)
            for arm in names
            if arm != "shuffled"
        }
        for title, where in panels.items()
    }
    return [
        lines(table, folder / "pinn.png", panels, names, ERROR, ERROR, log="xy"),
        bars(
            folder / "pinn-ratios.png", ratios, "times the error of shuffled batches", factor=True
        ),
    ]
