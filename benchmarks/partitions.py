"""What a partition costs, and how many rounds of exchange it takes.

    python benchmarks/partitions.py       # generated data, and MNIST's where DMSGD_DATA has it

Diverse is measured as the mean of log det(L_B + ridge) over batches, with rows of length 1: 0 is
where shuffled batches are, 1 where independent draws of the k-DPP with uniform b are.
"""

from __future__ import annotations

import timing  # isort: skip  (sets the number of threads before NumPy is loaded)

import time

import numpy as np
import problems
from rich.console import Console
from rich.table import Table

import dmsgd
from dmsgd.samplers.partition import RandomStream, deal, exchange_items

RIDGE, K = 1e-3, 64


def directions(X, count):
    """Return rows of length 1 on the leading principal directions."""
    X = X - X.mean(axis=0)
    _, vectors = np.linalg.eigh(X.T @ X)
    X = X @ vectors[:, -count:]
    return np.ascontiguousarray(X / np.linalg.norm(X, axis=1)[:, None])


def diversity(X, batches):
    rows = X[batches]
    return np.linalg.slogdet(rows @ rows.transpose(0, 2, 1) + RIDGE * np.eye(K))[1].mean()


def mixing(name, X, y, rounds=(1, 2, 3, 4, 6, 8, 12), epochs=20):
    """Print how far batches come with each number of rounds, from three starts."""
    n = X.shape[0]
    shuffled = np.mean([
        diversity(X, deal(None, n, K, RandomStream(1, number))) for number in range(20)
    ])  # fmt: skip
    draws = dmsgd.diversify(X, K, target="uniform", kernel="linear", normalize=False).sample(
        20 * (n // K), seed=0
    )
    independent = np.mean([diversity(X, part) for part in np.array_split(draws, 20)])
    orders = {
        "shuffled": None,
        "sorted by class": np.argsort(y, kind="stable"),
        "sorted along a direction": np.argsort(X[:, -1]),
    }
    table = Table(title=f"{name}: share of the way to independent draws ({independent:.2f}) from "
                        f"shuffled batches ({shuffled:.2f}), by rounds")  # fmt: skip
    table.add_column("start")
    for each in (0, *rounds):
        table.add_column(str(each), justify="right")
    for start, order in orders.items():
        ways = []
        for number in range(epochs):
            numbers = RandomStream(0, number)
            batches = deal(None, n, K, numbers)
            if order is not None:
                batches = order[: batches.size].reshape(batches.shape).astype(np.int64).copy()
            ways.append([diversity(X, batches)])
            for before, after in zip((0, *rounds), rounds, strict=False):
                exchange_items(batches, X, None, after - before, RIDGE, numbers, 1)
                ways[-1].append(diversity(X, batches))
        way = (np.mean(ways, axis=0) - shuffled) / (independent - shuffled)
        table.add_row(start, *(f"{each:.2f}" for each in way))
    Console(width=140).print(table)


def costs():
    """Print CPU time a batch, for n to 200,000."""
    table = Table(title=f"Partition: CPU time a batch of {K}, one thread, d = 256, six rounds")
    for name in ("N", "set-up", "a batch", "against the first", "k-DPP draw"):
        table.add_column(name, justify="right")
    first = None
    for n in (10_000, 50_000, 200_000):
        X = problems.gaussian(n, 256)
        base = dmsgd.diversify(X, K, kernel="linear", normalize=False)
        begun = time.process_time()
        design = dmsgd.Partition(base, rounds=0)
        design.sample(1, seed=0)
        setup = time.process_time() - begun
        design = dmsgd.Partition(base)
        seeds = iter(range(10**6))  # a new one every time: the last epoch is kept

        def epoch(design=design, seeds=seeds):
            design.sample(design.batches, seed=next(seeds))

        seconds, draw = timing.medians(epoch, lambda base=base: base.sample(200, seed=0), rounds=3)
        seconds /= design.batches
        first = first or seconds
        table.add_row(
            f"{n:,}", timing.human(setup), timing.human(seconds), f"{seconds / first:.2f}",
            timing.human(draw / 200),
        )  # fmt: skip
    Console(width=120).print(table)


def main():
    print(timing.processor())
    costs()
    rng = np.random.default_rng(0)
    group = rng.integers(0, 50, 6400)
    X = rng.normal(size=(50, 128))[group] * 1.5 + rng.normal(size=(6400, 128))
    mixing("Generated, 50 clusters, 128 columns", X / np.linalg.norm(X, axis=1)[:, None], group)
    if problems.data_folder():
        from experiments import datasets

        data = datasets.mnist(problems.data_folder())
        X = data.x_train[:6400].reshape(6400, -1) / 255
        mixing("MNIST, 128 directions", directions(X, 128), data.y_train[:6400])


if __name__ == "__main__":
    main()
