"""A covering set of items on a Dask cluster of small workers, of which one is killed.

    python benchmarks/selection_cluster.py                       # 10,000,000 x 32, three workers
    python benchmarks/selection_cluster.py --items 1000000 -k 50

The items are clusters of uneven sizes, in order, so that no part is like another. Each worker has a
gigabyte and a thread. Printed are the times, the memory, whether the set with a killed worker is
the same, and what it covers beside a random one.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import threading
import time

import numpy as np

import dmsgd
from dmsgd.inputs.messages import format_bytes

COLUMNS, CLUSTERS, CHUNK, WORKERS = 32, 500, 100_000, 3


def rows(start, stop, items):
    """Return rows of the data, the same ones whenever and wherever they are made."""
    centres = np.random.default_rng(0).normal(size=(CLUSTERS, COLUMNS))
    sizes = np.random.default_rng(1).pareto(1.5, CLUSTERS) + 0.1
    ends = np.cumsum(sizes) / sizes.sum() * items
    which = np.minimum(np.searchsorted(ends, np.arange(start, stop)), CLUSTERS - 1)
    noise = np.random.default_rng([2, start]).normal(size=(stop - start, COLUMNS))
    return (centres[which] + 0.5 * noise).astype(np.float32)


def dask_array(items):
    import dask
    import dask.array as da

    parts = []
    for start in range(0, items, CHUNK):
        stop = min(start + CHUNK, items)
        made = dask.delayed(rows, pure=False)(start, stop, items)
        parts.append(da.from_delayed(made, (stop - start, COLUMNS), np.float32))
    return da.concatenate(parts)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def chosen(client, array, k, kill_after=None):
    """Return the set, the seconds that it took, and how many of the workers were lost."""
    before = set(client.run(os.getpid).values())
    if kill_after is not None:
        timer = threading.Timer(kill_after, os.kill, (min(before), signal.SIGKILL))
        timer.start()
    began = time.perf_counter()
    items = dmsgd.select(array, k)
    seconds = time.perf_counter() - began
    if kill_after is not None:
        timer.join()
    client.wait_for_workers(WORKERS, timeout=60)
    return items, seconds, len(before - set(client.run(os.getpid).values()))


def main():
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument("-k", type=int, default=100)
    arguments = parser.parse_args()
    n, k, array = arguments.items, arguments.k, dask_array(arguments.items)
    local = LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, memory_limit="1GB", dashboard_address=None
    )
    with local, Client(local) as client:
        items, seconds, lost = chosen(client, array, k)
        most = max(client.run(peak).values())
        print(
            f"{k} of {n:,} x {COLUMNS} in {array.numblocks[0]} parts: {seconds:.0f} s, "
            f"{lost} workers lost; peak of a worker {format_bytes(most)}, here "
            f"{format_bytes(peak())}",
            flush=True,
        )
        again, seconds, lost = chosen(client, array, k, kill_after=0.5 * seconds)
        same = "the same" if np.array_equal(items, again) else "ANOTHER"
        print(f"with a killed worker: {seconds:.0f} s, {lost} lost, {same} set", flush=True)
    compare(items, n)


def compare(items, n):
    """Print how well the items cover a sample, beside random ones."""
    rng, starts = np.random.default_rng(3), range(0, n, CHUNK)
    random = rng.choice(n, items.size, replace=False)
    numbers = np.unique(np.concatenate([items, random, rng.choice(n, 5000, replace=False)]))
    wanted = {start: numbers[numbers // CHUNK == start // CHUNK] - start for start in starts}
    made = [rows(start, min(start + CHUNK, n), n)[places] for start, places in wanted.items()]
    X = np.concatenate(made).astype(float)
    square = np.median(((X - rng.permutation(X)) ** 2).sum(1))
    for name, some in (("chosen", items), ("random", random)):
        own = X[np.searchsorted(numbers, some)]
        near = (X**2).sum(1)[:, None] + (own**2).sum(1) - 2 * X @ own.T
        covered = np.exp(-near.min(1) / square).mean()
        print(f"{name}: the mean similarity to the nearest is {covered:.3f}")


if __name__ == "__main__":
    main()
