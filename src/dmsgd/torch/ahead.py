"""Draws made ahead of a training loop, a lot at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from dmsgd.designs.source import Source
from dmsgd.inputs.arrays import IntArray, on_host
from dmsgd.inputs.seeding import Seed
from dmsgd.inputs.threads import thread_count

#: Indices drawn ahead of the training loop at a time; at least this many draws for each thread.
AHEAD, EACH = 8192, 2

#: A draw costs about k³ operations. The first lot has about so many, some 100 ms, so that training
#: starts soon, and far less (a part) where the rest is drawn beside it. A thread is worth waking up
#: for so many, some 4 ms: torch's threads that wait leave it more than half of a core.
FIRST, PART, WORTH = 2**30, 128, 2**24


def lots(design: Source, seed: Seed, first: int, last: int, width: int) -> Iterator[IntArray]:
    """Return the draws first..last in lots of rows, of which this process uses `width` columns.

    Where torch leaves cores free, they draw the next lot in the background. Where it does not, the
    lot is drawn while training waits, a large one on all cores: torch's threads wait for each
    other, so that a draw beside them would cost several times its own time.
    """
    free = _free_cores()
    threads = free or thread_count(-1)
    at_once = getattr(design, "at_once", None)  # set if every call reads the data
    most = at_once or max(AHEAD // width + 1, EACH * threads)  # draws in a lot
    soon = FIRST // design.k**3 // (PART if free else 1)
    lot = at_once or max(threads if soon == 0 else 1, min(most, soon))
    pool = ThreadPoolExecutor(1, thread_name_prefix="dmsgd") if free else None

    def draw(start: int, count: int) -> IntArray:
        workers = max(1, min(threads, count * design.k**3 // WORTH))
        return on_host(design.sample(count, seed, start=start, workers=workers))

    begun = first
    try:
        ready: Callable[[], IntArray] = partial(draw, first, min(lot, last - first))
        while first < last:
            rows = ready()
            first += len(rows)
            lot = min(4 * lot, most)
            ready = partial(draw, first, min(lot, last - first))
            if pool is not None and first < last:
                ready = pool.submit(ready).result
            elif pool is not None and at_once == last - begun:  # the next epoch is made as a whole
                pool.submit(draw, last, 1)
            yield rows
    finally:
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


def _free_cores() -> int:
    """Return how many cores torch leaves free: by default none."""
    return max(thread_count(-1) - torch.get_num_threads(), 0)
