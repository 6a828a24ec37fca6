"""What is timed on MNIST, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.mnist import result as mnist

TITLE = "MNIST: what a batch costs beside a CNN step (Table 5)"

#: The paper's seconds by k: sampling ("fast k-DPP"), one update of the network.
PAPER = {10: (0.0012, 0.1669), 100: (0.7941, 1.2945), 200: (5.4216, 2.6481)}


@dataclass(frozen=True)
class Config:
    """What is timed.

    items, w, rank: as in the MNIST experiment.
    draws, steps:   batches and CNN steps timed for each k, after one of each that is not.
    seeds:          repetitions of the draws; the table shows the median.
    """

    seeds: int = 5
    ks: tuple[int, ...] = (10, 100, 200)
    items: int = mnist.Config.items
    w: float = mnist.Config.w
    rank: int = mnist.Config.rank
    draws: int = 50
    steps: int = 8


QUICK = Config(seeds=3, items=4000, rank=1000, draws=10, steps=3)


@dataclass(frozen=True, eq=False)
class Result:
    """CPU seconds: `setup` for the kernel's factor, `tables` for the sampler, `sample`, `step`.

    tables is (ks,), sample is (ks, seeds), step is (ks, steps).
    """

    config: Config
    trace_error: float
    setup: float
    tables: FloatArray
    sample: FloatArray
    step: FloatArray
