"""Table 5: seconds to sample a batch and to make one CNN step on it, for MNIST.

CPU seconds on one thread, so that a busy machine changes little. The clock starts after compiling;
the sampler's tables for a k are made at the first draw and counted apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import dmsgd
from experiments import mnist
from experiments.core import Case, Claim
from experiments.core.compare import values

TITLE = "MNIST: what a batch costs beside a CNN step (Table 5)"

#: The paper's seconds by k: sampling ("fast k-DPP"), one update of the network.
PAPER = {10: (0.0012, 0.1669), 100: (0.7941, 1.2945), 200: (5.4216, 2.6481)}
#: Below this share of the step it is for, in percent, we call a batch cheap.
CHEAP = 2.0


@cache
def set_up(size: str) -> tuple[dmsgd.spectra.Spectrum, float]:
    """Return the spectrum of the kernel's factor and the seconds that it took."""
    mnist.load(size)
    dmsgd.diversify(np.eye(8), 2, kernel="linear", normalize=False).sample(1, 0)  # compiles
    begun = process_time()
    return mnist.factor(size), process_time() - begun


def run(
    size: str, spectrum: Any, seed: int, rate: float, draws: int, steps: int, ks: Sequence[int]
) -> Iterator[tuple[int, str, float]]:
    """Yield seconds and shares by k; those of a spectrum have step 0."""
    if seed == 0:
        yield 0, "set-up", set_up(size)[1]
        yield 0, "trace left out", 100 * spectrum.trace_error
    for name, k in zip(PAPER, ks, strict=True):
        design = dmsgd.KDPP(spectrum, k)
        times = [process_time()]
        for count in (1, draws):
            design.sample(count, seed)
            times.append(process_time())
        tables, sample = np.diff(times) / (1, draws)
        step = float(np.median(step_seconds(size, design.sample(steps + 1, seed), rate)))
        yield name, "tables", tables
        yield name, "sample", sample
        yield name, "CNN step", step
        yield name, "share of a step", 100 * sample / step


def step_seconds(size: str, batches: np.ndarray, rate: float) -> list[float]:
    """Return the seconds of each step of the MNIST experiment's network but the first."""
    import torch

    from experiments.models import cnn

    data, threads = mnist.load(size), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = cnn.network(0, mnist.DROPOUT, mnist.SIZES[size][3])
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        images, labels = cnn.pixels(data.x_train, "cpu"), torch.from_numpy(data.y_train)
        share, rows, seconds = torch.ones(len(labels)), torch.from_numpy(batches), []
        for row in rows.split(1):
            begun = process_time()
            cnn.descend(model, optimizer, images, labels, row, share)
            seconds.append(process_time() - begun)
    finally:
        torch.set_num_threads(threads)
    return seconds[1:]


def make_cases(size: str, seeds: int, **how: Any) -> list[Case]:
    """Return the one case; a seed is a repetition."""
    arms = {"k-DPP": lambda task, seed: set_up(size)[0]}
    return [Case("mnist_cost", lambda seed: size, arms, partial(run, **how), seeds, (mnist.RATE,))]


def cases(quick: bool = False) -> list[Case]:
    """Return the k-DPP of the MNIST experiment."""
    if quick:
        return make_cases("quick", 5, draws=10, steps=3, ks=tuple(PAPER))
    return make_cases("full", 5, draws=50, steps=8, ks=tuple(PAPER))


def tiny() -> list[Case]:
    """Return the same on small digits."""
    return make_cases("tiny", 2, draws=2, steps=1, ks=(2, 4, 8))


CLAIMS = [
    *(
        Claim("Table 5", f"sampling costs less than {CHEAP:g} % of a CNN step, k = {k}, in percent",
              "mnist_cost", "k-DPP", "share of a step", limit=CHEAP, step=k, lower=True, digits=2,
              paper=f"{100 * sample / step:.0f}",
              note="both on one thread of a CPU; a GPU shortens the step and not the draw")
        for k, (sample, step) in PAPER.items()
    ),
    Claim("beyond", "set-up of the kernel's factor, once, in seconds", "mnist_cost", "k-DPP",
          "set-up", verdict=False, digits=0),
]  # fmt: skip


def seconds(table: Any) -> list[list[str]]:
    """Return Table 5, the paper's seconds beside ours, and what the tables of each k take."""
    rows = [["k", "batch: paper, s", "ours, s", "CNN step: paper, s", "ours, s", "tables, once, s"]]
    for k, (sample, step) in PAPER.items():
        own = [
            np.median(values(table, "mnist_cost", "k-DPP", measure, k))
            for measure in ("sample", "CNN step", "tables")
        ]
        rows.append(
            [str(k), f"{sample:g}", f"{own[0]:.5f}", f"{step:g}", f"{own[1]:.3f}", f"{own[2]:.2f}"]
        )
    return rows


TABLES = {"mnist-cost": seconds}


def figures(table: Any, folder: Path) -> list[Path]:
    """Write nothing: the table says it."""
    return []
