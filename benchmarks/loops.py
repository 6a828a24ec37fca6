"""What the sampler costs in a training loop: the same loop with RandomSampler and DiverseSampler.

    python benchmarks/loops.py                      # torch's default number of threads
    OMP_NUM_THREADS=1 python benchmarks/loops.py    # one (torch.set_num_threads spares BLAS)
    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/loops.py     # one core for all

Machines are noisy, so the two take turns of a second, and those pairs of turns alone count during
which other processes used less than 0.15 cores, if there are five. Times are means over all epochs,
as draws are made for several at once, while training waits; the interval is of 95 %, by drawing
pairs again (bootstrap).

The softmax reads whole batches (`__getitems__`), as fast loops do. A plain TensorDataset with
torch's default collate, item by item, is slower for both samplers.
"""

from __future__ import annotations

import argparse
import os
import time
import timeit
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import dmsgd
import problems
from dmsgd.runtime.threads import thread_count
from dmsgd.torch import DiverseSampler


#: Seconds of training before the other sampler has its turn.
TURN = 1.0


class Rows(Dataset):
    """Tensors read a batch at a time; use with collate_fn=whole."""

    def __init__(self, *tensors):
        self.tensors = tensors

    def __len__(self):
        return len(self.tensors[0])

    def __getitems__(self, items):
        return [tensor[items] for tensor in self.tensors]


def whole(batch):
    return batch


@dataclass
class Loop:
    """One model and its data, trained on batches of either sampler."""

    name: str
    model: torch.nn.Module
    dataset: Dataset
    design: dmsgd.Design
    steps: int
    target: float | None = None

    def loader(self, sampler):
        collate = whole if isinstance(self.dataset, Rows) else None
        return DataLoader(
            self.dataset, self.design.k, sampler=sampler, drop_last=True, collate_fn=collate
        )

    def train(self, loader, epochs):
        """Train; return seconds per step: wall clock, CPU of this thread, of all."""
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        clocks = time.perf_counter, time.thread_time, time.process_time
        start = [clock() for clock in clocks]
        for inputs, targets in chain.from_iterable(repeat(loader, epochs)):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(inputs), targets).backward()
            optimizer.step()
        spent = (clock() - begun for clock, begun in zip(clocks, start, strict=True))
        return [seconds / (epochs * self.steps) for seconds in spent]

    def compare(self, seconds):
        """Return (pairs, 2, 3) seconds per step: random or diverse; the three clocks.

        Also (pairs,) cores in use by other processes meanwhile.
        """
        random = RandomSampler(self.dataset, num_samples=self.steps * self.design.k)
        arms = [self.loader(random), self.loader(DiverseSampler(self.design, self.steps))]
        step = max(self.train(arm, 3)[0] for arm in arms)  # this also warms up
        epochs = 1 + int(TURN / (step * self.steps))
        times, others, end = [], [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 6:
            used, start = used_by_others(), time.perf_counter()
            order = (0, 1) if len(times) % 2 else (1, 0)
            pair = {arm: self.train(arms[arm], epochs) for arm in order}
            times.append([pair[0], pair[1]])
            others.append((used_by_others() - used) / (time.perf_counter() - start))
        return np.array(times), np.array(others)


def used_by_others():
    """Return seconds of CPU time that other processes have used since the start (Linux; else 0)."""
    if not os.path.exists("/proc/stat"):
        return 0.0
    with open("/proc/stat") as file:
        ticks = sum(map(int, file.readline().split()[1:4]))  # user, nice, system
    return ticks / os.sysconf("SC_CLK_TCK") - time.process_time()


def convolutional(n=6000, k=64):
    images = torch.rand(n, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(400, 10),
    )  # fmt: skip
    design = dmsgd.diversify(images.flatten(1), k, normalize=True, kernel="linear")
    data = TensorDataset(images, torch.arange(n) % 10)
    yield Loop(f"(a) small CNN, k={k}, TensorDataset", model, data, design, 20, target=1.05)


def softmax(k=102):
    X, y = flowers()
    design = dmsgd.diversify(X, k, labels=y, w=0.9, normalize=True, kernel="linear")
    tensors, model = (torch.from_numpy(X), torch.from_numpy(y)), torch.nn.Linear(X.shape[1], 102)
    yield Loop(f"(b) softmax, k={k}, __getitems__", model, Rows(*tensors), design, 60, target=1.25)
    yield Loop(f"(b) softmax, k={k}, TensorDataset", model, TensorDataset(*tensors), design, 60)


def large(n=50_000, d=1024, k=512):
    """A batch of 512 and a step of about 4 ms on two cores."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)).astype(np.float32), rng.integers(10, size=n)
    design = dmsgd.diversify(X, k, kernel="linear", normalize=False)
    model = torch.nn.Sequential(torch.nn.Linear(d, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    data = Rows(torch.from_numpy(X), torch.from_numpy(y))
    yield Loop(f"(c) two layers, k={k}, {n:,} x {d:,}", model, data, design, 20, target=3.0)


def flowers():
    """Return features (6149, 1280) and labels: Oxford-102, or generated without DMSGD_DATA."""
    folder = problems.data_folder()
    if folder is None or not (folder / "flowers102/features.npz").exists():
        rng = np.random.default_rng(0)
        print("generated features: DMSGD_DATA has no flowers102")
        return rng.random((6149, 1280), dtype=np.float32), rng.integers(102, size=6149)
    with np.load(folder / "flowers102/features.npz") as arrays:
        chosen = arrays["split"] == "test"
        X, y = arrays["X"][chosen], arrays["y"][chosen]
    return X.astype(np.float32), y.astype(np.int64)


def ms(seconds):
    return f"{1e3 * seconds:,.{0 if seconds > 0.1 else 2}f} ms"


def steps(loops, seconds):
    table = Table(title="A training step with RandomSampler -> with DiverseSampler")
    names = ("loop", "wall clock", "ratio (95 %)", "target", "main thread's CPU", "all CPU",
             "one draw", "pairs", "cores used by others")  # fmt: skip
    for name in names:
        table.add_column(name, justify="left" if name == "loop" else "right")
    rng = np.random.default_rng(0)
    for loop in loops:
        draw = min(timeit.repeat(lambda d=loop.design: d.sample(100, seed=0), number=1)) / 100
        times, others = loop.compare(seconds)
        if (quiet := others < 0.15).sum() >= 5:
            times, others = times[quiet], others[quiet]
        wall, main, everything = (" -> ".join(map(ms, clock)) for clock in times.mean(axis=0).T)
        wall_clock = times[..., 0]
        again = wall_clock[rng.integers(len(times), size=(2000, len(times)))].mean(axis=1)
        low, high = np.percentile(again[:, 1] / again[:, 0], (2.5, 97.5))
        ratio = wall_clock[:, 1].mean() / wall_clock[:, 0].mean()
        table.add_row(
            loop.name, wall, f"{ratio:.3f} ({low:.2f}-{high:.2f})", str(loop.target or ""), main,
            everything, ms(draw), str(len(times)),
            f"{np.median(others):.2f}",
        )  # fmt: skip
    return table


def indices(designs, n=2**24 + 10, k=64, steps=2000):
    """Indices per second of `for i in sampler`, and the time to the first one."""
    table = Table(title=f"Going through a sampler: {steps:,} batches")
    for name in ("sampler", "N", "k", "first index", "all", "indices per second"):
        table.add_column(name, justify="left" if name == "sampler" else "right")
    weights = torch.ones(n, dtype=torch.float64)
    rows = [("DiverseSampler, k-DPP", d.n, d.k, DiverseSampler(d, steps)) for d in designs]
    rows += [
        ("DiverseSampler, Uniform", n, k, DiverseSampler(dmsgd.Uniform(n, k), steps)),
        ("RandomSampler", n, k, RandomSampler(range(n), num_samples=steps * k)),
        ("WeightedRandomSampler", n, k, WeightedRandomSampler(weights, steps * k)),
        ("WeightedRandomSampler", 2**24, k, WeightedRandomSampler(weights[: 2**24], steps * k)),
    ]
    for design in (*designs, dmsgd.Uniform(n, k)):
        design.sample(2, seed=0)  # compiled, tables made
    for name, size, batch, sampler in rows:
        start = time.perf_counter()
        try:
            stream = iter(sampler)
            next(stream)
            first = time.perf_counter() - start
            count = 1 + sum(1 for _ in stream)
            spent = time.perf_counter() - start
            measured = ms(first), ms(spent), f"{count / spent:,.0f}"
        except RuntimeError as error:
            measured = "refused", "", str(error)
        table.add_row(name, f"{size:,}", str(batch), *measured)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30, help="for each row of the first table")
    seconds = parser.parse_args().seconds
    console = Console(width=170)
    loops = [*convolutional(), *softmax(), *large()]
    console.print(indices([loop.design for loop in loops[:2]]))
    console.print(steps(loops, seconds))
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    print(f"{threads} torch threads, {thread_count(-1)} cores, load of the last minute {load:.1f}")


if __name__ == "__main__":
    main()
