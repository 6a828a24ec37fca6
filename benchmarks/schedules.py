"""What a schedule costs: drawing it with 1 and 2 workers, loading it, fingerprinting its data.

    python benchmarks/schedules.py [--rounds 5]

Runs with 1 and 2 workers take turns and the best of each counts. Wall time is what workers save,
but cores that others use give nobody a factor of two, so two more lines tell whose fault it is: the
same turns taken by 1 and 2 processes that only count (what the machine had to give), and the CPU
time of the longest chain of work (the wall time if every worker has a core to itself).
"""

from __future__ import annotations

import timing  # isort: skip

import argparse
import multiprocessing
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

import dmsgd
import problems
from dmsgd.inputs.fingerprint import fingerprint
from dmsgd.samplers import parallel


def wall_seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def presample_seconds(design, steps, workers):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule"
        return wall_seconds(lambda: dmsgd.presample(design, steps, path=path, workers=workers))


@contextmanager
def chain_seconds():
    """Yield a list that gets the CPU seconds of the longest chain of work inside the block."""
    spread, saved, chain = parallel.parallel_map, [], []

    def clocked_spread(work, items, workers):
        spent = []

        def clocked(item):
            start = time.thread_time()
            result = work(item)
            spent.append(time.thread_time() - start)
            return result

        results = spread(clocked, items, workers)
        saved.append(sum(spent) - max(spent))
        return results

    parallel.parallel_map = clocked_spread
    start = time.process_time()
    yield chain
    chain.append(time.process_time() - start - sum(saved))
    parallel.parallel_map = spread


def count():
    sum(range(20_000_000))


def count_seconds(processes):
    started = [multiprocessing.Process(target=count) for _ in range(processes)]

    def work():
        for process in started:
            process.start()
        for process in started:
            process.join()

    return wall_seconds(work)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3000)
    options = parser.parse_args()
    F = problems.gaussian(5485, 1000)
    design = dmsgd.diversify(F, k=80, kernel="linear", normalize=False)
    design.sample(1, seed=0)  # tables and compiling
    presampled, counted, chains = ({1: [], 2: []} for _ in range(3))
    for _ in range(options.rounds):
        for workers in (1, 2):
            with chain_seconds() as chain:
                presampled[workers].append(presample_seconds(design, options.steps, workers))
            chains[workers] += chain
            counted[workers].append(count_seconds(workers))
    table = Table(title=f"{options.steps} draws of 80 out of 5,485, rank 1000: best of the rounds")
    for name in ("", "1 worker", "2 workers", "speed-up"):
        table.add_column(name, justify="right")
    rows = [
        ("presample, on disk", presampled, 1),
        ("processes that only count", counted, 2),
        ("presample, a core per worker", chains, 1),
    ]
    for name, seconds, factor in rows:
        one, two = min(seconds[1]), min(seconds[2])
        table.add_row(name, timing.human(one), timing.human(two), f"{factor * one / two:.2f}")
    console = Console(width=100)
    console.print(table)
    extras(console, F, design, options.steps)


def extras(console, F, design, steps):
    bare = timing.cpu_seconds(lambda: design.sample(steps, seed=0), rounds=2)
    whole = timing.cpu_seconds(lambda: presample_seconds(design, steps, 1), rounds=2)
    console.print(f"CPU time: draws {timing.human(bare)}, presample {timing.human(whole)}")
    with tempfile.TemporaryDirectory() as folder:
        dmsgd.presample(design, steps, path=f"{folder}/schedule")
        load = timing.cpu_seconds(lambda: dmsgd.Schedule.load(f"{folder}/schedule"))
    console.print(f"load, all bytes checked: {timing.human(load)} for {8e-6 * steps * 80:.3g} MB")
    hashing = timing.cpu_seconds(lambda: fingerprint(F))
    setup = timing.cpu_seconds(lambda: dmsgd.kernels.exact(dmsgd.kernels.Linear(F)), rounds=1)
    console.print(
        f"fingerprint: {timing.human(hashing)} for {F.nbytes / 1e6:.3g} MB "
        f"({F.nbytes / 1e9 / hashing:.2g} GB/s), {hashing / setup:.1%} of set-up"
    )


if __name__ == "__main__":
    main()
