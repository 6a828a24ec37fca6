"""The batches of one seed in order, as training loops take them, and the rows of data they name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np

from dmsgd.inputs.arrays import IntArray, on_host, to_numpy
from dmsgd.inputs.messages import kind_of
from dmsgd.inputs.scalars import Seed, as_count, seed_key

#: Batches drawn per call in a training loop: enough to hide the cost of a call, 50 µs.
CHUNK = 64

#: The designs that training and schedules accept, for messages.
FIXED_K = "a design with a fixed k (diversify makes one; any design of dmsgd but DPP has one)"


class Source(Protocol):
    """What training reads batches from: a `Design`, or a `Schedule`."""

    n: int
    k: int

    def fingerprint(self) -> str: ...

    def stream(self, seed: Seed) -> Stream: ...


@final
class Stream:
    """The batches of one seed in order; made by `Design.stream` and `Schedule.stream`.

    seed:  design.sample(size, seed) gives these batches, however often it is called.
    steps: how many batches there are: None for a design, which has no last one.
    """

    def __init__(
        self, design: Any, seed: int | np.random.SeedSequence, steps: int | None = None
    ) -> None:
        self.design, self.seed, self.steps = design, seed, steps
        self.n: int = design.n
        self.k: int = design.k

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the design."""
        return str(self.design.fingerprint())

    def sample(self, size: int, start: int, workers: int = 1) -> IntArray:
        """Return batches start..start+size as a NumPy array, also those drawn on a GPU."""
        return on_host(self.design.sample(size, self.seed, start=start, workers=workers))

    def call_size(self, limit: int) -> int:
        """Return how many batches to draw per call: the design's chunk, or `limit` if it is 1."""
        # A smaller call would read a large file again, or cut the epoch of a `Partition`.
        return self.design.chunk if self.design.chunk > 1 else limit

    def batches(self, start: int, steps: int) -> Iterator[tuple[int, IntArray]]:
        """Return an iterator over (t, batch) for t = start..start+steps, drawn a chunk at a time.

        A schedule that is too short raises ValueError now, before training begins.
        """
        start, steps = as_count(start, "start", least=0), as_count(steps, "steps", least=0)
        self.sample(0, start + steps)
        return self._batches(start, start + steps)

    def _batches(self, start: int, stop: int) -> Iterator[tuple[int, IntArray]]:
        size = self.call_size(CHUNK)
        for t in range(start, stop, size):
            yield from enumerate(self.sample(min(size, stop - t), t), start=t)


def fixed_seed(seed: Seed) -> int | np.random.SeedSequence:
    """Return a seed that gives the same batches however often it is used: a generator advances."""
    key = seed_key(seed)  # raises for anything that is not a seed
    return seed if isinstance(seed, int | np.integer | np.random.SeedSequence) else key


def check_design(design: Any, n: int | None = None, data: str = "the data") -> None:
    """Raise unless `design` is a Design or a Schedule and, if n is given, of n items."""
    if isinstance(design, type) or not hasattr(design, "stream"):
        raise TypeError(f"design must be {FIXED_K} or a Schedule, got {kind_of(design)}")
    if n is not None and design.n != n:
        raise ValueError(f"{data} has {n} items, the design {design.n}; they must be the same")


def as_indexable(data: Any, name: str) -> Any:
    """Return `data` in a form that `take` can pick rows from: frames and arrays unchanged."""
    if data is None:
        raise TypeError(f"{name} is None; pass one row per item")
    rows = data if hasattr(data, "shape") else to_numpy(data, name)
    if not rows.shape or rows.shape[0] == 0:
        raise ValueError(f"{name} must have one row per item, got shape {tuple(rows.shape)}")
    return data.tocsr() if hasattr(data, "tocsr") else rows


def take(data: Any, batch: IntArray) -> Any:
    """Return the rows of `data` at these positions, in the same kind of container."""
    return data.iloc[batch] if hasattr(data, "iloc") else data[batch]
