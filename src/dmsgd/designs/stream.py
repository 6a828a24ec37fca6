"""The batches of one seed in order, as training loops take them, and the rows of data they name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np
from scipy import sparse

from dmsgd.inputs.arrays import IntArray, on_host, to_numpy
from dmsgd.inputs.scalars import Seed, as_count, seed_key

#: Batches drawn per call in a training loop: enough to hide the cost of a call, 50 µs.
CHUNK = 64

#: The designs that training and schedules accept, for messages.
FIXED_K = "a design with a fixed k (diversify makes one; any design of dmsgd but DPP has one)"


class Source(Protocol):
    """What a `Stream` reads: a `Design`, or a `Schedule` drawn from one."""

    @property
    def n(self) -> int:
        """Number of items."""

    @property
    def k(self) -> int:
        """Number of items in a batch."""

    @property
    def chunk(self) -> int:
        """Number of batches that `sample` makes for the price of one; 1 if each has its own."""

    def sample(self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1) -> IntArray:
        """Return batches start..start+size, shape (size, k)."""

    def fingerprint(self) -> str:
        """Return a hash of everything that the batches are a function of, besides the seed."""

    def stream(self, seed: Seed) -> Stream:
        """Return the batches of one seed in order."""


@final
class Stream:
    """The batches of one seed in order; made by `Design.stream` and `Schedule.stream`.

    seed:  design.sample(size, seed) gives these batches, however often it is called.
    steps: how many batches there are: None for a design, which has no last one.

    >>> from dmsgd import Uniform
    >>> [(t, batch.shape) for t, batch in Uniform(9, 4).stream(0).batches(start=5, steps=2)]
    [(5, (4,)), (6, (4,))]
    """

    def __init__(
        self, design: Source, seed: int | np.random.SeedSequence, steps: int | None = None
    ) -> None:
        self.design, self.seed, self.steps = design, seed, steps
        self.n, self.k = design.n, design.k

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the design."""
        return self.design.fingerprint()

    def sample(self, size: int, start: int, workers: int = 1) -> IntArray:
        """Return batches start..start+size as a NumPy array, also those drawn on a GPU."""
        return on_host(self.design.sample(size, self.seed, start=start, workers=workers))

    def call_size(self, limit: int) -> int:
        """Return how many batches to draw per call: the design's chunk if it has one, or `limit`.

        A smaller call would read a large file again for fewer batches, or cut the epoch of a
        `Partition`, which is made as a whole.
        """
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
    """Return a seed that gives the same batches however often it is used.

    An int or a SeedSequence is returned as it is, so that batches are those of
    design.sample(steps, seed). A generator is advanced, and None takes fresh entropy.
    """
    key = seed_key(seed)  # raises for anything that is not a seed
    return seed if isinstance(seed, int | np.integer | np.random.SeedSequence) else key


def check_design(design: Any, n: int | None = None, data: str = "the data") -> None:
    """Raise unless `design` is a Design or a Schedule and, if n is given, of n items."""
    if isinstance(design, type) or not hasattr(design, "stream"):
        kind = f"the class {design.__name__}" if isinstance(design, type) else type(design).__name__
        raise TypeError(f"design must be {FIXED_K} or a Schedule, got {kind}")
    if n is not None and design.n != n:
        raise ValueError(
            f"{data} has {n} items, the design {design.n}; build the design from the features of "
            f"this very data"
        )


def as_indexable(data: Any, name: str) -> Any:
    """Return `data` in a form that `take` can pick rows from: frames and arrays unchanged."""
    if data is None:
        raise TypeError(f"{name} is None; pass one row per item")
    rows = data if hasattr(data, "shape") else to_numpy(data, name)
    if len(rows.shape) == 0:
        raise ValueError(f"{name} must have one row per item, got a single value")
    if rows.shape[0] == 0:
        raise ValueError(f"{name} is empty: shape {tuple(rows.shape)}")
    return data.tocsr() if sparse.issparse(data) else rows


def is_numbered(data: Any) -> bool:
    """Return whether items of `data` can be read by number, as those of a list can."""
    mapped = isinstance(data, str | bytes | dict | type)
    return not mapped and hasattr(data, "__getitem__") and hasattr(data, "__len__")


def take(data: Any, batch: IntArray) -> Any:
    """Return the rows of `data` at these positions, in the same kind of container."""
    return data.iloc[batch] if hasattr(data, "iloc") else data[batch]
