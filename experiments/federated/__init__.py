"""Which clients train in a round of federated averaging? Items are clients, a batch is a round.

100 clients hold images of few classes each: two shards of images sorted by label (McMahan et al.
2017), or shares of the classes from Dirichlet(0.3). All have equally many images, so the plain mean
of the models of k clients is unbiased if all are as likely. A round trains k clients for one epoch.

What is known of a client: its update from the start, its labels' histogram, its mean image, or its
last update, which is its first until it is chosen (designs are made anew every five rounds, those
of partitions with every epoch). "clustered" is Algorithm 2 of Fraboni et al. (2021): one client of
each of k groups of equal size, from Ward's clusters. "main label" is the commonest of a client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dmsgd
from experiments.core import Case, Claim, lines, training
from experiments.core.compare import Column
from experiments.core.figures import differences
from experiments.core.markdown import arm_rows
from experiments.federated.clients import (
    CLIENTS,
    Size,
    Task,
    batches,
    clustered,
    images,
    make_task,
    one_hot,
)
from experiments.models import dense

TITLE = "Federated averaging: which clients train in a round"
KNOWN = ("first update", "label histogram", "client means", "last update")
#: Rounds after which a design of last updates is made anew.
REMADE = 5
#: Accuracy that "rounds to" counts to, in percent; one more than all if it is not reached.
LEVELS = {"mnist": 80.0, "digits": 85.0}
SPLITS = ("shards", "Dirichlet")
RATES = {
    "mnist": (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2),
    "digits": (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8),
    "MLP": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
}
#: Rounds after which accuracy is stored; all of them count in means.
SHOWN = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60)


def kdpp(X: np.ndarray, k: int) -> dmsgd.KDPP:
    """Return the k-DPP of uniform frequency; twins, which it would rule out, are made to differ."""
    try:
        return dmsgd.diversify(X, k, target="uniform")
    except (dmsgd.TargetError, dmsgd.RankError):
        apart = np.hstack([X, 0.1 * np.eye(len(X))])
        return dmsgd.diversify(apart, k, kernel="rbf", target="uniform")


DESIGNS: dict[str, Callable[[np.ndarray, int], Any]] = {
    "cells": dmsgd.cells,
    "partition of cells": lambda X, k: dmsgd.Partition(dmsgd.cells(X, k)),
    "clustered": clustered,
    "partition of clustered": lambda X, k: dmsgd.Partition(clustered(X, k)),
    "k-DPP": kdpp,
}


def make(kind: str, k: int, X: np.ndarray) -> Any:
    """Return a design from what is known of the clients, rows of mean 0 and then of length 1."""
    X = X.astype(np.float64) - X.mean(axis=0)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    if X.shape[1] > len(X):  # the same inner products in fewer columns
        values, vectors = np.linalg.eigh(X @ X.T)
        X = vectors * np.sqrt(np.maximum(values, 0))
    return DESIGNS[kind](X, k)


def arms(k: int) -> dict[str, Any]:
    """Return the arms; "last update" is a function of what is known when the design is made."""

    def of(kind: str, known: str, task: Task, seed: int) -> Any:
        if known == "last update":
            return partial(make, kind, k)
        return make(kind, k, task.known[known])

    def own_frequency(task: Task, seed: int) -> dmsgd.KDPP:
        return dmsgd.diversify(task.known["first update"], k)

    def by_label(task: Task, seed: int) -> dmsgd.Stratified:
        return dmsgd.Stratified(task.label, k)

    return training(CLIENTS, k, {
        "stratified by main label": by_label,
        "partition of stratified by main label":
            lambda task, seed: dmsgd.Partition(by_label(task, seed)),
        "k-DPP, own frequency": own_frequency,
        "k-DPP, own frequency, frequency-matched":
            lambda task, seed: dmsgd.Weighted.like(own_frequency(task, seed)),
        **{f"{kind} by {known}": partial(of, kind, known) for known in KNOWN for kind in DESIGNS},
    })  # fmt: skip


def run(
    size: Size, task: Task, arm: Any, seed: int, rate: float
) -> Iterator[tuple[int, str, float]]:
    """Yield the accuracy after some rounds, its means, and the rounds to a level."""
    (X, y), layers = images(size.data), task.start
    known, scores, judged = task.known["first update"].copy(), [], []
    design = arm(known) if callable(arm) else arm
    remade = design.batches if isinstance(design, dmsgd.Partition) else REMADE
    for number in range(size.rounds):
        if number % remade == 0:
            design = arm(known) if callable(arm) else arm
            rounds = design.sample(remade, seed, start=number)
        chosen = rounds[number % remade]
        local = batches(task.clients, seed, number + 1)[chosen]
        own = dense.train(layers, X[local], one_hot(y[local]), rate)
        known[chosen] = dense.updates(layers, own)
        layers = [layer.mean(axis=0) for layer in own]
        scores.append(dense.accuracy(layers, X[task.test], y[task.test]))
        judged.append(dense.accuracy(layers, X[task.valid], y[task.valid]))
        if number + 1 in SHOWN:
            yield number + 1, "accuracy", scores[-1]
    reached = np.flatnonzero(np.array(scores) >= LEVELS[size.data])
    yield size.rounds, "mean accuracy", float(np.mean(scores))
    yield size.rounds, "last ten rounds", float(np.mean(scores[-10:]))
    yield size.rounds, "rounds to level", float(reached[0] if reached.size else size.rounds) + 1
    yield size.rounds, "validation accuracy", float(np.mean(judged))


def make_case(k: int, size: Size, seeds: int, rates: tuple[float, ...]) -> Case:
    """Return all arms with k clients per round."""
    what = f"{size.data}, {size.split}{', MLP' if size.hidden else ''}, k={k}"
    task, loop = partial(make_task, size), partial(run, size)
    return Case(f"federated/{what}", task, arms(k), loop, seeds, rates, tuning_seeds=2)


def cases(quick: bool = False) -> list[Case]:
    """Return both data sets, both splits and three k with a softmax, and MNIST with an MLP."""
    if quick:
        return [make_case(10, Size("digits"), 2, (0.3,))]
    plain = [
        make_case(k, Size(data, split), 20, RATES[data])
        for data in LEVELS for split in SPLITS for k in (5, 10, 20)
    ]  # fmt: skip
    return [*plain, make_case(10, Size(hidden=(64,)), 20, RATES["MLP"])]


def tiny() -> list[Case]:
    """Return both splits of the digits with three rounds, once with an MLP."""
    sizes = Size("digits", rounds=3), Size("digits", "Dirichlet", (4,), rounds=3)
    return [make_case(20, size, 2, (0.3,)) for size in sizes]


TRAINED = tuple(f"{kind} by first update" for kind in DESIGNS)
TITLES = {
    f"{data}, {split}, k = {k}": f"federated/{data}, {split}, k={k}"
    for data in LEVELS for split in SPLITS for k in (5, 10, 20)
}  # fmt: skip
NOTE = "mean test accuracy over all rounds, points; each arm at its own best local rate"
CLAIMS = [
    *(
        Claim("beyond", f"{title}: {arm} against {against}", where, arm, "mean accuracy", against,
              note=NOTE)
        for title, where in TITLES.items() if "k = 10" in title
        for against in ("shuffled", "uniform")
        for arm in (*TRAINED, "shuffled") if arm != against
    ),
    *(
        Claim("beyond", f"{title}: fewer rounds to {LEVELS['mnist']:g} %, {arm}", where, arm,
              "rounds to level", "shuffled", lower=True)
        for title, where in TITLES.items() if "mnist, shards" in title for arm in TRAINED[:2]
    ),
    *(
        Claim("beyond", f"{title}: last ten rounds, {TRAINED[1]} against shuffled", where,
              TRAINED[1], "last ten rounds", "shuffled")
        for title, where in TITLES.items() if "k = 10" in title
    ),
]  # fmt: skip
COLUMNS: dict[str, Column] = {
    title: (where, "mean accuracy", None) for title, where in TITLES.items()
}
TABLES = {"federated": lambda table: arm_rows(table, COLUMNS, "shuffled")}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write accuracy over rounds and differences from shuffled epochs of clients."""
    there = set(table["experiment"].unique())
    panels = {title: where for title, where in TITLES.items() if where in there}
    shown = {title: where for title, where in panels.items() if "k = 10" in title}
    gains: dict[str, Column] = {
        title: (where, "mean accuracy", None) for title, where in shown.items()
    }
    arms = ("uniform", "shuffled", *TRAINED[:2], *TRAINED[4:])
    return [
        lines(table, folder / "federated.png", shown, arms, "accuracy", "test accuracy, %",
              "rounds"),
        differences(table, folder / "federated-differences.png", gains, "shuffled",
                    "points ahead of shuffled"),
    ]  # fmt: skip
