"""Draws made before training asks for them, a chunk at a time.

Where torch leaves cores free, they draw the next chunk in the background. Where it does not, a
chunk is drawn while training waits, a large one on all cores: a draw beside torch's threads, which
wait for each other, would cost several times its own time. They also spin for some 10 ms before
they leave their cores, so that a chunk should be long and not end with a short epoch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from time import monotonic

import numpy as np
import torch

from dmsgd.designs.stream import Stream
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.threads import in_background, thread_count

#: Indices in a chunk at most, and draws in a chunk for each thread at least.
MAX_INDICES, MIN_DRAWS_PER_THREAD = 2**16, 2
#: A draw costs about k³ operations. A chunk has about this many for each thread, some 100 ms,
CHUNK_OPERATIONS = 2**30
#: the first one this many in all, so that training starts soon, and a part of it where the rest is
#: drawn in the background.
FIRST_CHUNK_DIVISOR = 128
#: A thread is worth waking up for this many operations, some 4 ms: torch's waiting threads leave it
#: more than half of a core.
THREAD_OPERATIONS = 2**24
#: Chains and rejection cost more than k³ operations, and how many is not known: their chunks begin
#: with one draw per thread and grow only while they take less than this, in seconds.
LONG = 0.1


class Prefetcher:
    """The draws of a stream from number `first` on, in chunks; kept from one epoch to the next.

    A chunk goes beyond an epoch by as many draws as were made before, so that epochs that never
    come cost no more than those that did, but not beyond the end of a schedule.

    first: number of the next draw.
    """

    def __init__(self, stream: Stream, first: int, width: int) -> None:
        """Begin with draw `first`; of each draw, this process uses `width` columns."""
        self.first = first
        self._stream = stream
        self._free = _free_cores()
        self._threads = self._free or thread_count(-1)
        operations = stream.k**3
        draws = max(MIN_DRAWS_PER_THREAD, CHUNK_OPERATIONS // operations) * self._threads
        most = min(MAX_INDICES // width + 1, draws)
        divisor = FIRST_CHUNK_DIVISOR if self._free else 1
        soon = min(most, CHUNK_OPERATIONS // operations // divisor) or self._threads
        self._most, self._size = stream.call_size(most), stream.call_size(soon)
        self._known = hasattr(stream.design, "inclusion")  # what a draw costs
        if not self._known:
            self._size = stream.call_size(min(most, self._threads))
        self._made = 0
        self._rows = np.empty((0, stream.k), dtype=np.int64)
        self._coming: Future[IntArray] | None = None  # the rows after those
        self._process = 0  # the one that makes them

    def goes_on(self, stream: Stream, first: int) -> bool:
        """Return whether these are the draws of `stream` from number `first` on."""
        return self._stream is stream and self.first == first

    def until(self, last: int) -> Iterator[IntArray]:
        """Yield the draws up to number `last`."""
        steps, chunk = last - self.first, self._stream.design.chunk
        while self.first < last:
            if not len(self._rows):
                self._rows = self._next_chunk(last)
            rows, self._rows = np.split(self._rows, [last - self.first])
            self.first += len(rows)
            # Data are not read beyond the epoch, except for epochs that are made as a whole.
            if self.first < last or chunk in (1, steps):
                self._prepare(last)
            yield rows

    def _next_chunk(self, last: int) -> IntArray:
        coming, self._coming = self._coming, None
        if coming is not None and self._process == os.getpid():  # threads do not survive a fork
            return coming.result()
        return self._plan(last)()

    def _prepare(self, last: int) -> None:
        """Draw the next chunk in the background, if cores are free and no rows are left."""
        at_end = self.first == last and self._stream.steps is not None
        if self._free and self._coming is None and not len(self._rows) and not at_end:
            self._process, self._coming = os.getpid(), in_background(self._plan(last))

    def _plan(self, last: int) -> Callable[[], IntArray]:
        """Return the call that draws the next chunk."""
        beyond = self._made if self._stream.steps is None else 0
        count = min(self._size, last - self.first + beyond)
        self._made += count
        workers = max(1, min(self._threads, count * self._stream.k**3 // THREAD_OPERATIONS))
        return partial(self._draw, count, self.first, workers)

    def _draw(self, count: int, first: int, workers: int) -> IntArray:
        began = monotonic()
        rows = self._stream.sample(count, first, workers)
        if self._known or monotonic() - began < LONG:
            self._size = min(4 * self._size, self._most)
        else:
            self._size = self._stream.call_size(max(1, self._size // 4))
        return rows


def _free_cores() -> int:
    """Return how many cores torch leaves free: by default none."""
    return max(thread_count(-1) - torch.get_num_threads(), 0)
