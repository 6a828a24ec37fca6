"""The batches of one seed in order, as training loops take them, and the rows of data they name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from time import monotonic
from typing import Any, Protocol, final

import numpy as np

from dmsgd.inputs.arrays import IntArray, on_host, to_numpy
from dmsgd.inputs.messages import kind_of
from dmsgd.inputs.scalars import Seed, as_count, seed_key
from dmsgd.runtime.threads import thread_count

#: Batches drawn per call in a training loop: enough to hide the cost of a call, 50 µs.
CHUNK = 64
#: Indices in a chunk of draws at most, and draws in a chunk for each thread at least.
MAX_INDICES, MIN_DRAWS_PER_THREAD = 2**16, 2
#: A draw costs about k³ operations. A chunk has about this many for each thread, some 100 ms, and
#: the first one this many in all.
CHUNK_OPERATIONS = 2**30
#: A thread is worth waking up for this many operations, some 4 ms: torch's waiting threads leave it
#: more than half of a core.
THREAD_OPERATIONS = 2**24
#: Chains and rejection cost more than k³ operations, and how many is not known: their chunks begin
#: with one draw per thread and grow only while they take less than this, in seconds.
LONG = 0.1

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

    seed:  an int or a SeedSequence; design.sample(size, seed) always gives these batches.
    steps: how many batches there are: None for a design, which has no last one.
    """

    def __init__(self, design: Any, seed: Any, steps: int | None = None) -> None:
        self.design, self.seed, self.steps = design, seed, steps
        self.n, self.k = int(design.n), int(design.k)

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
        size, stop = self.call_size(CHUNK), start + steps
        chunks = ((t, self.sample(min(size, stop - t), t)) for t in range(start, stop, size))
        return (each for t, rows in chunks for each in enumerate(rows, start=t))


@final
class Chunks:
    """The draws of a stream from number `first` on, in chunks that go on in the next epoch.

    Training waits for a chunk, a large one drawn on all cores: draws beside torch's threads, which
    wait for each other, would cost several times their own time. These also spin for some 10 ms
    before they leave their cores, so that a chunk should be long and not end with a short epoch. It
    goes beyond the epoch by as many draws as were used before, so that epochs that never come cost
    no more than those that did, but not beyond the end of a schedule.

    first: number of the next draw.
    """

    def __init__(self, stream: Stream, first: int, width: int) -> None:
        """Begin with draw `first`; of each draw, this process uses `width` columns."""
        self.first = self._origin = first
        self._stream, self._threads = stream, thread_count(-1)
        operations = stream.k**3
        draws = max(MIN_DRAWS_PER_THREAD, CHUNK_OPERATIONS // operations) * self._threads
        most = min(MAX_INDICES // width + 1, draws)
        self._known = hasattr(stream.design, "inclusion")  # what a draw costs
        soon = CHUNK_OPERATIONS // operations if self._known else 0
        self._most = stream.call_size(most)
        self._size = stream.call_size(min(most, soon or self._threads))
        self._rows = np.empty((0, stream.k), dtype=np.int64)

    def take(self, last: int) -> IntArray:
        """Return the next draws, none of them after number `last`, of which there are some."""
        if not len(self._rows):
            beyond = self.first - self._origin if self._stream.steps is None else 0
            count = min(self._size, last + beyond - self.first)
            workers = max(1, min(self._threads, count * self._stream.k**3 // THREAD_OPERATIONS))
            began = monotonic()
            self._rows = self._stream.sample(count, self.first, workers)
            if self._known or monotonic() - began < LONG:
                self._size = min(4 * self._size, self._most)
            else:
                self._size = self._stream.call_size(max(1, self._size // 4))
        rows, self._rows = np.split(self._rows, [last - self.first])
        self.first += len(rows)
        return rows


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
