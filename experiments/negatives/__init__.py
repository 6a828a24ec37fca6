"""In-batch negatives: contrastive training, where the others of a batch are what to differ from.

Records of the same things in two catalogues (Abt-Buy, Amazon-Google, DBLP-ACM). A linear encoder of
character n-grams learns with InfoNCE in two ways:

alone:  items are all records; two versions of a record that lack some words belong together. The
        record of the same thing in the other catalogue is a false negative where both are in a
        batch. No match is used in training; half of them choose the rate, half are the test.
pairs:  items are matches of half of the things; the others are a tenth for the rate, the rest for
        the test.

Test: is a match of a record the nearest (recall@1), or among the nearest five, of all the records
of the other catalogue?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from dmsgd.designs import OnePerGroup
from experiments.core import Case, Claim, lines
from experiments.core.compare import Column
from experiments.core.figures import differences
from experiments.core.markdown import arm_rows
from experiments.datasets import Catalogues
from experiments.datasets.products import FILES
from experiments.negatives.records import Items, Size, Task, make_task

TITLE = "In-batch negatives: contrastive training on records of two catalogues"
WAYS = ("alone", "pairs")
FALSE = "batches with a false negative"
RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
PARTITION, GROUPS, NEIGHBOURS = "Partition(k-DPP)", "groups apart", "neighbours together"
ARMS = ("uniform", "shuffled", "k-DPP", PARTITION, "cells", "Partition(cells)", GROUPS, NEIGHBOURS)


@dataclass(frozen=True, eq=False)
class Together:
    """Every item once per epoch; a batch is some whole cells of about eight similar items."""

    cell: np.ndarray
    k: int

    def sample(self, size: int, seed: int, start: int = 0) -> np.ndarray:
        """Return batches start..start+size."""
        n, rng = self.cell.size, np.random.default_rng([seed, 63])
        epochs = []
        for _ in range(-(-(start + size) // (n // self.k))):
            order = np.argsort(rng.permutation(self.cell.max() + 1)[self.cell], kind="stable")
            epochs.append(order[: n // self.k * self.k].reshape(-1, self.k))
        return np.concatenate(epochs)[start : start + size]


@cache
def design(items: Items, arm: str, k: int) -> Any:
    """Return batches of an arm; all have uniform frequency."""
    n = len(items.pairs)
    if arm in ("uniform", GROUPS):
        return dmsgd.Uniform(n, k) if arm == "uniform" else OnePerGroup(items.group, k)
    if arm == "shuffled" or arm.startswith("Partition("):
        inner = "uniform" if arm == "shuffled" else arm[len("Partition(") : -1]
        return dmsgd.Partition(design(items, inner, k))
    X = dmsgd.features.normalize(items.records.features[items.pairs].mean(axis=1))
    if arm == NEIGHBOURS:
        return Together(dmsgd.cells(X, n // 8).stratum, k)
    if arm == "cells":
        return dmsgd.cells(X, k)
    return dmsgd.diversify(X, k, target="uniform", kernel="linear")


def arms(k: int) -> dict[str, Any]:
    """Return what makes each kind of batches."""
    return {arm: lambda task, seed, arm=arm: design(task.items, arm, k) for arm in ARMS}


def run(
    size: Size,
    tasks: Sequence[Task],
    designs: Sequence[Any],
    seeds: Sequence[int],
    rates: Sequence[float],
) -> Iterator[tuple[int, str, list[float]]]:
    """Yield the share of batches with a false negative, then recall over steps, in percent."""
    import torch

    from experiments.models import contrastive, many

    here, last = many.device(), size.steps[-1]
    batches = many.draw(designs, seeds, last, 0, "cpu").numpy()
    drawn = list(zip((task.items for task in tasks), batches, strict=True))
    twice = (np.diff(np.sort(items.group[batch]), axis=1) == 0 for items, batch in drawn)
    yield 0, FALSE, [100 * each.any(axis=1).mean() for each in twice]
    versions = torch.from_numpy(tasks[0].items.records.versions).to(here)
    encoders = many.initial((size.inputs, size.outputs), seeds, 1.0, here)
    adam = many.Adam(encoders, rates)
    rows = many.stacked([items.pairs[batch] for items, batch in drawn], here)
    chosen = many.stacked([two_versions(seed, last, size) for seed in seeds], here)
    for step in range(last):
        pairs = versions[chosen[:, step], rows[:, step]]
        adam.step(contrastive.losses(encoders, pairs[:, :, 0], pairs[:, :, 1]))
        if step + 1 in size.steps:
            found = [
                recall(task, partial(contrastive.nearest, encoders, job, versions[0]))
                for job, task in enumerate(tasks)
            ]
            for measure in found[0]:
                yield step + 1, measure, [each[measure] for each in found]


def two_versions(seed: int, steps: int, size: Size) -> np.ndarray:
    """Return two versions, different ones, of each item of each step; (steps, k, 2)."""
    rng = np.random.default_rng([seed, 64])
    first = rng.integers(size.versions, size=(steps, size.k))
    second = (first + rng.integers(1, size.versions, size=first.shape)) % size.versions
    return np.stack([first, second], axis=2) + 1


def recall(task: Task, near: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> dict[str, float]:
    """Return how many queries have a match among the nearest records, in percent."""
    records = task.items.records
    group, others = records.group, np.flatnonzero(records.catalogue == 1)
    right = {
        name: group[others[near(queries, others)]] == group[queries][:, None]
        for name, queries in (("validation recall@1", task.valid), ("recall@1", task.test))
    }
    found = {name: 100 * each[:, 0].mean() for name, each in right.items()}
    return {**found, "recall@5": 100 * right["recall@1"].any(axis=1).mean()}


def cases(quick: bool = False) -> list[Case]:
    """Return all catalogues, both ways; `quick` is one of them with few steps."""
    if quick:
        return make_cases(Size(steps=(10, 30), versions=2), list(FILES)[:1], WAYS[:1], 2)
    from experiments.models.many import device

    device()  # here, too: with --workers the record is made in another process than the trainings
    return make_cases(Size(), list(FILES), WAYS, 20)


def tiny() -> list[Case]:
    """Return every case on generated names, which lack a word in the second catalogue."""

    def data(name: str) -> Catalogues:
        words = np.random.default_rng(0).integers(40, size=(60, 4)).astype(str)
        texts = [" ".join(row) for row in (*words, *words[:, 1:])]
        matches = np.arange(120).reshape(2, 60).T
        return Catalogues(tuple(texts), np.repeat([0, 1], 60), matches)

    return make_cases(Size(6, 32, 4, 12, 2, 0.3, (1, 2), data), list(FILES), WAYS, 2)


def make_cases(size: Size, names: Sequence[str], ways: Sequence[str], seeds: int) -> list[Case]:
    """Return a case for each of the catalogues and ways."""
    return [
        Case(f"negatives/{name}, {way}", partial(make_task, name, way, size), arms(size.k),
             partial(run, size), seeds, RATES, "validation recall@1", together=True)
        for name in names for way in ways
    ]  # fmt: skip


WHERE = {f"{name}, {way}": f"negatives/{name}, {way}" for name in FILES for way in WAYS}
COLUMNS: dict[str, Column] = {
    f"{title}: {measure}": (where, measure, step)
    for title, where in WHERE.items()
    for measure, step in ((FALSE, 0), ("recall@1", None))
}
CLAIMS = [
    Claim("beyond", f"{title}, {measure}: {arm} ahead of shuffled", where, arm, measure,
          "shuffled", step=step, lower=measure == FALSE)
    for title, where in WHERE.items()
    for arm, measure, step in ((PARTITION, FALSE, 0), (PARTITION, "recall@1", None),
                               (GROUPS, "recall@1", None), (NEIGHBOURS, "recall@1", None))
    if measure != FALSE or title.endswith("alone")
]  # fmt: skip
TABLES = {
    f"negatives-{way}": partial(
        lambda table, way: arm_rows(
            table, {t: each for t, each in COLUMNS.items() if f", {way}" in t}, "shuffled"
        ),
        way=way,
    )
    for way in WAYS
}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write recall over steps, and differences from shuffled epochs."""
    names, written = table["arm"].unique(maintain_order=True).to_list(), []
    for way in WAYS:
        panels = {title: where for title, where in WHERE.items() if title.endswith(way)}
        curves, ahead = (folder / f"negatives-{way}{end}.png" for end in ("", "-differences"))
        shown: dict[str, Column] = {t: (where, "recall@1", None) for t, where in panels.items()}
        written += [
            lines(table, curves, panels, names, "recall@1", "recall@1, %", log="x"),
            differences(table, ahead, shown, "shuffled", "recall@1, points ahead of shuffled"),
        ]
    return written
