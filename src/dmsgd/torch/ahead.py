"""Draws made ahead of a training loop, a lot at a time.

Where torch leaves cores free, they draw the next lot in the background. Where it does not, the lot
is drawn while training waits, a large one on all cores: torch's threads wait for each other, so
that a draw beside them would cost several times its own time. They also spin for some 10 ms before
they leave their cores, so that a lot should be long and not end with a short epoch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from dmsgd.designs.stream import Source
from dmsgd.inputs.arrays import IntArray, on_host
from dmsgd.inputs.scalars import Seed
from dmsgd.inputs.threads import Background, thread_count

#: Indices in a lot at most; draws in a lot for each thread, at least.
MOST, EACH = 2**16, 2

#: A draw costs about k³ operations. A lot has about so many for each thread, some 100 ms, and the
#: first so many in all, so that training starts soon, and far less (a part) where the rest is drawn
#: beside it. A thread is worth waking up for so many, some 4 ms: torch's threads that wait leave it
#: more than half of a core.
LOT, PART, WORTH = 2**30, 128, 2**24


class Ahead:
    """The draws of a sampler; what was made beyond an epoch is kept for the next one."""

    def __init__(self) -> None:
        self._stream: Stream | None = None

    def lots(
        self, design: Source, seed: Seed, first: int, last: int, width: int
    ) -> Iterator[IntArray]:
        """Return draws first..last of a design; of each, this process uses `width` columns."""
        stream, self._stream = self._stream, None  # no other pass takes the same draws
        if stream is None or not stream.goes_on(design, first):
            stream = Stream(design, seed, first, width)
        for rows in stream.until(last):
            if stream.first == last:
                self._stream = stream
            yield rows


class Stream:
    """The draws of a design from one on, in lots.

    A lot goes beyond an epoch by as many draws as were made before, so that epochs that never come
    cost no more than those that did; but not beyond a schedule.

    first: number of the next draw.
    """

    def __init__(self, design: Source, seed: Seed, first: int, width: int) -> None:
        self.first = first
        self._design, self._seed = design, seed
        self._endless = design.stream(0).steps is None
        self._free = _free_cores()
        self._threads = self._free or thread_count(-1)
        self._at_once = design.chunk if design.chunk > 1 else None
        most = min(MOST // width + 1, max(EACH, LOT // design.k**3) * self._threads)
        soon = min(most, LOT // design.k**3 // (PART if self._free else 1)) or self._threads
        self._most, self._lot = self._at_once or most, self._at_once or soon
        self._made = 0
        self._rows = np.empty((0, design.k), dtype=np.int64)
        self._coming: Background[IntArray] | None = None  # the rows after those
        self._process = 0  # that makes them

    def goes_on(self, design: Source, first: int) -> bool:
        """Return whether these are the draws of `design` from number `first` on."""
        return self._design is design and self.first == first

    def until(self, last: int) -> Iterator[IntArray]:
        """Return the draws up to number `last`."""
        steps = last - self.first
        while self.first < last:
            if not len(self._rows):
                self._rows = self._next_lot(last)
            rows, self._rows = np.split(self._rows, [last - self.first])
            self.first += len(rows)
            # beyond the epoch nothing is read in vain, but for epochs that are made as a whole
            if self.first < last or self._at_once in (None, steps):
                self._prepare(last)
            yield rows

    def _next_lot(self, last: int) -> IntArray:
        coming, self._coming = self._coming, None
        if coming is not None and self._process == os.getpid():  # threads do not survive a fork
            return coming.result()
        return self._draw(*self._lot_until(last))

    def _prepare(self, last: int) -> None:
        """Have the next lot made in the background, if cores are free and nothing is at hand."""
        if not self._free or self._coming is not None or len(self._rows):
            return
        start, count = self._lot_until(last)
        if count > 0:
            self._process, self._coming = os.getpid(), Background(partial(self._draw, start, count))

    def _lot_until(self, last: int) -> tuple[int, int]:
        """Return the first draw of the next lot and how many it has."""
        count = min(self._lot, last - self.first + (self._made if self._endless else 0))
        self._lot, self._made = min(4 * self._lot, self._most), self._made + count
        return self.first, count

    def _draw(self, start: int, count: int) -> IntArray:
        workers = max(1, min(self._threads, count * self._design.k**3 // WORTH))
        drawn = self._design.sample(count, self._seed, start=start, workers=workers)
        return on_host(drawn)


def _free_cores() -> int:
    """Return how many cores torch leaves free: by default none."""
    return max(thread_count(-1) - torch.get_num_threads(), 0)
