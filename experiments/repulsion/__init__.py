"""Where does repulsion pay? Batches in which every item is as likely, with and without it.

Steps to a given loss over those of uniform batches, beside the exact variance of gradients. Every
arm has its own best rate for every seed: half of its streams of batches choose it, the others are
reported. All rates and streams train at once, so `run` chooses, not the shared `tune`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dmsgd
from dmsgd.diagnostics import gradient_variance
from experiments.core import Case, Claim, Difference, bars, compare, lines, training
from experiments.core.compare import mean, values
from experiments.models.uniform_rbf import uniform_rbf
from experiments.repulsion.descent import best, checkpoints, descend, smooth, steps_to
from experiments.repulsion.problems import MANY, PROBLEMS, legendre

TITLE = "Where repulsion pays: steps to a loss when every item is as likely"
DENSITIES = ("density, 1-d", "density, 2-d", "density, 3-d")
KS, FALL_KS, RATES = (4, 16, 64), (4, 8, 16, 32, 64), 2.0 ** (np.arange(-16, 4) / 2)
#: Added to a seed for the uniform batches that set the loss to reach.
OTHERS = 10**6
#: RBF kernels are used up to so many items, and polynomials up to about so many along an axis:
#: beyond, no weights make all items as likely.
FEW, HIGHEST = 2048, 16


class Task:
    """The items of one seed, what is trained on them, and the loss to reach.

    when: after so many steps uniform batches set that loss.
    """

    def __init__(self, name: str, k: int, n: int, streams: int, steps: int, when: int,
                 seed: int) -> None:  # fmt: skip
        self.features, self.model = PROBLEMS[name].make(n, seed)
        self.uniform, self.seed, self.streams = dmsgd.Uniform(n, k), seed, 2 * streams
        self.steps, self.when, self.at = steps, when, checkpoints(steps)

    def losses(self, design: Any, seed: int) -> np.ndarray:
        """Return losses on independent streams of batches, shape (checkpoints, streams, rates)."""
        rngs = (np.random.default_rng([seed, stream]) for stream in range(self.streams))
        batches = np.stack([design.sample(self.steps, rng) for rng in rngs], axis=1)
        return descend(self.model, batches, RATES)

    @cached_property
    def level(self) -> float:
        """The least loss of uniform batches, at the rate best for it, and a tenth of it more."""
        found = smooth(self.losses(self.uniform, self.seed + OTHERS).mean(axis=1))
        least = float(found[np.searchsorted(self.at, self.when)].min())
        return least + 0.1 * abs(least)  # a local optimum of k-means may be passed


@lru_cache(32)
def make_task(*sizes: Any) -> Task:
    """Return the task of a seed; jobs go arm by arm through all of them."""
    return Task(*sizes)


def repulsive(name: str, n: int, k: int) -> dict[str, Any]:
    """Return the arms with repulsion: k-DPPs and cells of what is seen, and of polynomials."""
    arms: dict[str, Any] = {}
    for seen in PROBLEMS[name].seen:
        if n <= FEW:
            arms[f"k-DPP on {seen}"] = lambda task, seed, of=seen: uniform_rbf(task.features[of], k)
        arms[f"cells of {seen}"] = lambda task, seed, of=seen: dmsgd.cells(task.features[of], k)
    if (d := PROBLEMS[name].dimension) and k ** (1 / d) <= HIGHEST:
        arms["k-DPP on polynomials"] = partial(polynomials, k)
    return arms


def polynomials(k: int, task: Task, seed: int) -> Any:
    """Return the k-DPP of the first k polynomials of x."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dmsgd.KernelWarning)  # rounding moves b by 1e-8
        F = legendre(task.features["x"], k)
        return dmsgd.diversify(F, k, kernel="linear", normalize=False, target="uniform")


def run(task: Task, design: Any, seed: int, rate: float) -> Iterator[tuple[int, str, float]]:
    """Yield the steps to the loss at the best rate, and the variance of gradients."""
    tried, told = (
        steps_to(task.level, smooth(half.mean(axis=1)), task.at)
        for half in np.split(task.losses(design, seed), 2, axis=1)
    )
    chosen = best(tried)
    yield task.when, "steps", told[chosen]
    yield task.when, "best rate", RATES[chosen]
    if isinstance(design, dmsgd.designs.ClosedForm):  # shuffled epochs are not
        yield 0, "variance", noise(design, task.model, task.model.optimum)


def noise(design: Any, model: Any, at: np.ndarray) -> float:
    """Return the variance of a batch's gradient over that of uniform batches, exactly."""
    found = gradient_variance(design, model.item_gradients(at))
    return found.variance / found.uniform


def run_fall(task: Task, designs: Any, seed: int, rate: float) -> Iterator[tuple[int, str, float]]:
    """Yield the variance at the start by k, and p if it falls as k^-p beside uniform batches."""
    found = {k: noise(design, task.model, task.model.start) for k, design in designs.items()}
    yield from ((k, "variance", value) for k, value in found.items())
    yield 0, "power of k", -np.polyfit(np.log([*found]), np.log([*found.values()]), 1)[0]


def make_cases(seeds: int, n: int, many: int, ks: tuple[int, ...], streams: int, steps: int,
               when: int, fall_ks: tuple[int, ...], names: Sequence[str] = (*PROBLEMS,)
               ) -> list[Case]:  # fmt: skip
    """Return a case for each problem and k, and for the fall of the variance by dimension."""
    found = []
    for name in names:
        slow, items = PROBLEMS[name].slow, many if MANY in name else n
        for k in (16,) if slow else ks:
            task = partial(
                make_task, name, k, items, min(streams, 2) if slow else streams, steps, when
            )
            arms = training(items, k, repulsive(name, items, k))
            found.append(Case(f"repulsion/{name}/k={k}", task, arms, run, seeds))
    for name in (name for name in names if name in DENSITIES):
        by_k = {k: repulsive(name, n, k) for k in fall_ks}

        def designs(task: Task, seed: int, arm: str, by_k: Any = by_k) -> dict[int, Any]:
            return {k: arms[arm](task, seed) for k, arms in by_k.items() if arm in arms}

        task = partial(make_task, name, fall_ks[0], n, streams, steps, when)
        arms = {arm: partial(designs, arm=arm) for arm in by_k[fall_ks[0]]}
        found.append(Case(f"repulsion/{name}", task, arms, run_fall, min(seeds, 5)))
    return found


def cases(quick: bool = False) -> list[Case]:
    """Return all problems at all batch sizes; quick: fewer items and steps, and k = 16."""
    if quick:
        return make_cases(2, 256, 4096, (16,), 2, 600, 200, (4, 16))
    return make_cases(20, 512, 32768, KS, 4, 1200, 300, FALL_KS)


def tiny() -> list[Case]:
    """Return some problems on few items, for tests."""
    names = ("density, 1-d", f"density, 2-d{MANY}", "near-copies, skewed",
             "linear regression, 2 columns", "k-means, 2-d")  # fmt: skip
    return make_cases(2, 128, 4096, (16,), 1, 40, 16, (4, 8), names)


def saves(problem: str, arm: str) -> Claim:
    """Return the claim that an arm needs fewer steps than uniform batches."""
    note = ("steps over those of uniform batches, k = 16, each at its own best rate, to the loss "
            "that other uniform batches have after 300 steps, and a tenth above it")  # fmt: skip
    return Claim("beyond", f"{problem}: {arm} needs fewer steps", f"repulsion/{problem}/k=16", arm,
                 "steps", "uniform", lower=True, ratio=True, note=note)  # fmt: skip


CLAIMS = [
    *(saves(name, "k-DPP on x") for name in DENSITIES),
    saves("density, 1-d", "cells of x"),
    saves("regression without noise, 1-d", "k-DPP on x"),
    saves("noisy regression, 1-d", "k-DPP on x"),
    saves("density, 2-d (many items)", "k-DPP on polynomials"),
    saves("density, 2-d (many items)", "shuffled"),
    saves("near-copies, equally many", "k-DPP on x"),
    saves("near-copies, skewed", "k-DPP on x"),
    saves("linear regression, 2 columns", "k-DPP on gradients"),
    saves("linear regression, 10 columns", "k-DPP on gradients"),
    saves("softmax, digits", "k-DPP on x and class"),
    saves("k-means, 2-d", "k-DPP on x"),
    saves("k-means, digits", "k-DPP on x"),
    *(
        Claim("beyond", f"{name}: the variance falls faster with k, {arm}", f"repulsion/{name}",
              arm, "power of k", step=0, digits=2,
              note="p if the variance over that of uniform batches falls as k^-p, from k = 4 on")
        for arm in ("k-DPP on polynomials", "cells of x") for name in DENSITIES
    ),
]  # fmt: skip


def rows() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield a problem, what is seen of it, and the arms by kind."""
    for name, problem in PROBLEMS.items():
        for seen in (*problem.seen, *(("polynomials",) if problem.dimension else ())):
            arms = {"k-DPP": f"k-DPP on {seen}", "cells": f"cells of {seen}"}
            yield name, seen, arms | ({"shuffled": "shuffled"} if seen == problem.seen[0] else {})


def figures(table: pl.DataFrame, folder: Path) -> list[Path]:
    """Write steps over those of uniform batches at k = 16, and how variances fall with k."""
    panels: dict[str, dict[str, Difference]] = {"k-DPP": {}, "cells": {}, "shuffled": {}}
    there = set(table["experiment"].unique())
    for name, seen, arms in rows():
        here = f"repulsion/{name}/k=16"
        label = name if seen == "x" or MANY in name else f"{name}: {seen}"
        for kind, arm in arms.items():
            if table.filter(experiment=here, arm=arm).height:
                panels[kind][label] = compare(table, here, arm, "uniform", "steps", ratio=True)
    falls = {name: f"repulsion/{name}" for name in DENSITIES if f"repulsion/{name}" in there}
    return [
        bars(folder / "repulsion.png", panels, "steps over uniform batches'", factor=True),
        lines(table, folder / "repulsion-variance.png", falls,
              ("k-DPP on x", "k-DPP on polynomials", "cells of x"), "variance",
              "variance over uniform batches'", "items in a batch, k", log="xy"),
    ]  # fmt: skip


def steps_table(table: pl.DataFrame) -> list[list[str]]:
    """Return steps over those of uniform batches, all batch sizes together and by k."""
    found = [["problem", "kernel and cells see", "k", "k-DPP: steps", "by k", "variance",
              "cells: steps", "by k", "variance", "shuffled: steps"]]  # fmt: skip
    for name, seen, arms in rows():
        cells = {kind: over_uniform(table, name, arm) for kind, arm in arms.items()}
        ks = cells["k-DPP"][0] or cells["cells"][0]
        first, last = (name, cells["shuffled"][1]) if "shuffled" in cells else ("", "")
        found.append([first, seen, ks, *cells["k-DPP"][1:], *cells["cells"][1:], last])
    return found


def over_uniform(table: pl.DataFrame, name: str, arm: str) -> list[str]:
    """Return batch sizes, steps over uniform batches, the same by k, variances by k."""
    logs, noises = {}, []
    for k in KS:
        here = f"repulsion/{name}/k={k}"
        of = table.filter(experiment=here, arm=arm)
        if of.height:
            ours, theirs = (values(table, here, each, "steps") for each in (arm, "uniform"))
            logs[k] = np.log(ours / theirs)
            noises += [
                f"{each:.2f}" for each in [of.filter(measure="variance")["value"].mean()] if each
            ]
    if not logs:
        return [""] * 4
    by_k = [f"{np.exp(each.mean()):.2f}" for each in logs.values()] if len(logs) > 1 else []
    pooled = mean(np.mean([*logs.values()], axis=0)).factor()
    return [" / ".join(map(str, logs)), pooled, " / ".join(by_k), " / ".join(noises)]


def rates_table(table: pl.DataFrame) -> list[list[str]]:
    """Return how often the best rate is at an end of the grid, so that a better one may be out."""
    found = table.filter(pl.col("measure") == "best rate")["value"]
    ends = [str(np.isclose(found, end).sum()) for end in (RATES[0], RATES[-1])]
    tried = f"{len(RATES)} from {RATES[0]:.3g} to {RATES[-1]:.3g}"
    return [["rates tried, x 1/L", "best at the lower end", "best at the upper end", "of"],
            [tried, *ends, f"{len(found):,}"]]  # fmt: skip


TABLES = {"repulsion": steps_table, "repulsion-rates": rates_table}
