"""The clients of federated averaging: their images, what is known of them, groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

import dmsgd
from experiments import datasets
from experiments.models import dense

#: Clients, their batches in a round, classes of images, rounds.
CLIENTS, BATCHES, CLASSES, ROUNDS = 100, 10, 10, 60
#: Rate of the updates that are known before the first round.
FIRST = 0.1


@dataclass(frozen=True)
class Size:
    """What is run: the data, how it is split, units of hidden layers, rounds."""

    data: str = "mnist"
    split: str = "shards"
    hidden: tuple[int, ...] = ()
    rounds: int = ROUNDS

    @property
    def counts(self) -> tuple[int, int, int]:
        """Images of a client, to choose rates by, to test on."""
        return (300, 1000, 2000) if self.data == "mnist" else (14, 150, 247)


@dataclass(frozen=True, eq=False)
class Task:
    """Items of each client, (clients, images); those to choose by and to test on; the start."""

    clients: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    start: dense.Layers
    known: dict[str, np.ndarray]
    label: np.ndarray


@cache
def images(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels in 0..1 and digits: MNIST, halved to 14 x 14, or scikit-learn's of 8 x 8."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return (X / 16).astype(np.float32), y.astype(np.int64)
    data = datasets.mnist()
    pooled = data.x_train.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4), dtype=np.float32)
    return pooled.reshape(len(pooled), -1) / np.float32(255), data.y_train


@lru_cache(maxsize=128)
def make_task(size: Size, seed: int) -> Task:
    """Return the clients of a seed and what is known of them."""
    (X, y), rng, (own, judged, tested) = (
        images(size.data),
        np.random.default_rng([seed, 70]),
        size.counts,
    )
    order = rng.permutation(y.size)
    deal = shards if size.split == "shards" else unequal
    train = order[: CLIENTS * own] if size.split == "shards" else order[: -judged - tested]
    clients = deal(train, y, own, rng)
    start = dense.initial((X.shape[1], *size.hidden, CLASSES), rng)
    local = batches(clients, seed, 0)
    first = dense.updates(start, dense.train(start, X[local], one_hot(y[local]), FIRST))
    histogram = one_hot(y[clients]).mean(axis=1)
    known = {
        "first update": first,
        "label histogram": histogram,
        "client means": X[clients].mean(axis=1),
    }
    judges = np.split(order[-judged - tested :], [judged])
    return Task(clients, *judges, start, known, histogram.argmax(axis=1))


def one_hot(y: np.ndarray) -> np.ndarray:
    """Return rows with a 1 for the class."""
    return np.eye(CLASSES, dtype=np.float32)[y]


def shards(items: np.ndarray, y: np.ndarray, own: int, rng: np.random.Generator) -> np.ndarray:
    """Return two shards of the items, sorted by label, for each client."""
    cut = items[np.argsort(y[items], kind="stable")].reshape(2 * CLIENTS, -1)
    return cut[rng.permutation(2 * CLIENTS)].reshape(CLIENTS, own)


def unequal(items: np.ndarray, y: np.ndarray, own: int, rng: np.random.Generator) -> np.ndarray:
    """Return items of classes in shares from Dirichlet(0.3) for each client.

    Where a class has no items left, the client gets some of the class that has most.
    """
    left = [list(items[y[items] == label]) for label in range(CLASSES)]
    clients = np.empty((CLIENTS, own), dtype=np.int64)
    for client in clients:
        wanted = rng.multinomial(own, rng.dirichlet(np.full(CLASSES, 0.3)))
        for place, label in enumerate(np.repeat(np.arange(CLASSES), wanted)):
            client[place] = (left[label] or max(left, key=len)).pop()
    return clients


def batches(clients: np.ndarray, seed: int, number: int) -> np.ndarray:
    """Return the local batches of all clients in a round, (clients, batches, images)."""
    mixed = np.random.default_rng([seed, 71, number]).permuted(clients, axis=1)
    count = min(BATCHES, clients.shape[1] // 2)
    return mixed.reshape(CLIENTS, count, -1)


def clustered(X: np.ndarray, k: int) -> dmsgd.Stratified:
    """Return one client of each of k groups: Ward's clusters of at most n/k, filled up to n/k."""
    from scipy.cluster.hierarchy import fcluster, linkage

    n, tree = len(X), linkage(X, "ward")
    for count in range(k, n + 1):
        found = fcluster(tree, count, "maxclust")
        if np.bincount(found).max() <= n // k:
            break
    by_size = np.argsort(-np.bincount(found, minlength=count + 1), kind="stable")
    members = [np.flatnonzero(found == each) for each in by_size[:count]]
    groups, rest = [list(each) for each in members[:k]], np.concatenate([*members[k:], []])
    for client in rest.astype(np.int64):
        next(group for group in groups if len(group) < n // k).append(client)
    group = np.empty(n, dtype=np.int64)
    for number, each in enumerate(groups):
        group[each] = number
    return dmsgd.Stratified(group, k)
