"""Batches are drawn, and it is counted who is in them."""

from __future__ import annotations

from importlib import import_module

import numpy as np

import dmsgd
from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.protocol import Progress
from dmsgd.paper.rare.documents import directions, generated, help_pages
from dmsgd.paper.rare.result import DESIGNS, Config, Outcome, Result


def run(config: Config, progress: Progress | None = None) -> Result:
    """Return what batches of all designs hold; `progress` is told the fraction done.

    On one thread: matrices this small gain nothing from more.
    """
    from threadpoolctl import threadpool_limits

    import_module("sklearn.cluster")  # the limit binds only libraries that are loaded
    rows: dict[str, list[list[FloatArray]]] = {name: [] for name in DESIGNS}
    with threadpool_limits(1):
        pages, package = help_pages()
        X = directions(pages, config.directions)
        names, counts = np.unique(package, return_counts=True)
        small = [str(name) for name in names[counts < config.small * len(pages)]]
        wanted = np.array(package)[:, None] == np.array(small)
        for seed in range(config.seeds):
            documents, topic = generated(config, seed)
            rare = (topic == config.topics)[:, None]
            for (name, one), other in zip(
                designs(documents, config.k, seed).items(),
                designs(X, config.k, seed).values(),
                strict=True,
            ):
                (found, expected), (pages_found, drawn) = (
                    count(one, rare, config.draws, seed), count(other, wanted, config.draws, seed)
                )  # fmt: skip
                uniform = config.k * wanted.mean(axis=0)
                rows[name].append([found[0], expected[0], pages_found, drawn / uniform])
            if progress is not None:
                progress((seed + 1) / config.seeds)
    outcomes = (
        Outcome(name, *(np.array(column) for column in zip(*rows[name], strict=True)))
        for name in DESIGNS
    )
    sizes = {name: int(size) for name, size in zip(small, wanted.sum(axis=0), strict=True)}
    return Result(config, len(pages), sizes, tuple(outcomes))


def designs(X: FloatArray, k: int, seed: int) -> dict[str, dmsgd.ClosedForm]:
    """Return the ways to draw batches; none of them knows a topic."""
    kdpp = dmsgd.diversify(X, k, normalize=True)
    return {
        "uniform": dmsgd.Uniform(len(X), k),
        "clustered": dmsgd.clustered(X, k, seed=seed),
        "weighted": kdpp.without_repulsion(),
        "k-DPP": kdpp,
    }


def count(
    design: dmsgd.ClosedForm, wanted: FloatArray, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return for each column of `wanted`, (items, groups), the share of batches that hold any item
    of the group, and how many a batch holds on average (a closed form)."""
    batches = design.sample(draws, seed)
    found = np.array([group[batches].any(axis=1).mean() for group in wanted.T])
    return found, design.inclusion() @ wanted
