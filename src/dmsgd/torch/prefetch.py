"""Draws made before training asks for them, a chunk at a time.

Where torch leaves cores free, they draw the next chunk in the background, in pieces. Training that
needs a piece before it is drawn does not wait: it draws the next piece that nobody has begun.

Where torch leaves none, a chunk is drawn while training waits, a large one on all cores: a draw
beside torch's threads, which wait for each other, would cost several times its own time. They also
spin for some 10 ms before they leave their cores, so that a chunk should be long and not end with
a short epoch.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from threading import main_thread
from time import monotonic

import numpy as np
import torch

from dmsgd.designs.stream import Stream
from dmsgd.inputs.arrays import IntArray
from dmsgd.runtime.threads import in_background, thread_count

#: Indices in a chunk at most, and draws in a chunk for each thread at least.
MAX_INDICES, MIN_DRAWS_PER_THREAD = 2**16, 2
#: A draw costs about k³ operations. A chunk has about this many for each thread, some 100 ms, and
#: the first one this many in all.
CHUNK_OPERATIONS = 2**30
#: A thread is worth waking up for this many operations, some 4 ms: torch's waiting threads leave it
#: more than half of a core. A piece of a chunk has as many.
THREAD_OPERATIONS = 2**24
#: Chains and rejection cost more than k³ operations, and how many is not known: their chunks begin
#: with one draw per thread and grow only while they take less than this, in seconds.
LONG = 0.1


class Prefetcher:
    """The draws of a stream from number `first` on, in chunks; kept from one epoch to the next.

    A chunk goes beyond an epoch by as many draws as were used before, so that epochs that never
    come cost no more than those that did, but not beyond the end of a schedule.

    first: number of the next draw.
    """

    def __init__(self, stream: Stream, first: int, width: int) -> None:
        """Begin with draw `first`; of each draw, this process uses `width` columns."""
        self.first = self._origin = first
        self.stream = stream
        self._free = _free_cores()
        self._threads = self._free or thread_count(-1)
        operations = stream.k**3
        draws = max(MIN_DRAWS_PER_THREAD, CHUNK_OPERATIONS // operations) * self._threads
        most = min(MAX_INDICES // width + 1, draws)
        self._known = hasattr(stream.design, "inclusion")  # what a draw costs
        soon = CHUNK_OPERATIONS // operations if self._known else 0
        self._most = stream.call_size(most)
        self._size = stream.call_size(min(most, soon or self._threads))
        # Draws that a call makes for the price of one are not cut, nor are those on all cores.
        cut = self._free and self._known and stream.design.chunk == 1
        self._piece = max(1, THREAD_OPERATIONS // operations) if cut else self._most
        self._rows = np.empty((0, stream.k), dtype=np.int64)
        self._begin()

    def _begin(self) -> None:
        """Begin after the rows at hand, with threads of this process."""
        self._process, self._end = os.getpid(), self.first + len(self._rows)
        self._coming = deque[Future[IntArray]]()  # the pieces up to draw number _end, in order
        self._open = deque[tuple[Future[IntArray], int, int]]()  # those that nobody has begun
        self._workers: list[Future[None]] = []

    def until(self, last: int) -> Iterator[IntArray]:
        """Yield the draws up to number `last`."""
        steps, chunk = last - self.first, self.stream.design.chunk
        while self.first < last:
            if self._process != os.getpid():  # threads do not survive a fork
                self._begin()
            if not len(self._rows):
                self._rows = self._next_piece(last)
            rows, self._rows = np.split(self._rows, [last - self.first])
            self.first += len(rows)
            # Data are not read beyond the epoch, except for epochs that are made as a whole.
            if self._free and not len(self._rows) and (self.first < last or chunk in (1, steps)):
                self._plan(last)
            yield rows

    def _next_piece(self, last: int) -> IntArray:
        if not self._coming:
            self._plan(last)
        while not self._coming[0].done() and self._draw():
            pass
        return self._coming.popleft().result()

    def _plan(self, last: int) -> None:
        """Begin the next chunk in the background, once two pieces for each thread are left."""
        if len(self._coming) > 2 * self._free:
            return
        beyond = self.first - self._origin if self.stream.steps is None else 0
        begin, self._end = self._end, max(self._end, min(self._end + self._size, last + beyond))
        for first in range(begin, self._end, self._piece):
            self._coming.append(Future())
            self._open.append((self._coming[-1], first, min(self._piece, self._end - first)))
        self._workers = [worker for worker in self._workers if not worker.done()]
        for _ in range(min(self._free - len(self._workers), len(self._open))):
            self._workers.append(in_background(self._work))

    def _work(self) -> None:
        while main_thread().is_alive() and self._draw():  # the process does not wait for a chunk
            pass

    def _draw(self) -> bool:
        """Draw the next piece that nobody has begun; return whether there was one."""
        try:
            piece, first, count = self._open.popleft()
        except IndexError:
            return False
        try:
            piece.set_result(self._sample(first, count))
        except BaseException as error:
            self._size = 0  # no more is planned
            self._open.clear()
            piece.set_exception(error)  # raised when training comes to it
            if not isinstance(error, Exception):  # Ctrl-C
                raise
        return True

    def _sample(self, first: int, count: int) -> IntArray:
        workers = max(1, min(self._threads, count * self.stream.k**3 // THREAD_OPERATIONS))
        began = monotonic()
        rows = self.stream.sample(count, first, workers)
        if self._known or monotonic() - began < LONG:
            self._size = min(4 * self._size, self._most)
        else:
            self._size = self.stream.call_size(max(1, self._size // 4))
        return rows


def _free_cores() -> int:
    """Return how many cores torch leaves free: by default none."""
    return max(thread_count(-1) - torch.get_num_threads(), 0)
