"""How many threads `workers` means, work and draws in them, and BLAS beside them.

Each draw has its own random numbers, so results do not depend on threads.
"""

from __future__ import annotations

import numbers
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import lru_cache
from math import ceil
from threading import Lock, Thread
from typing import Any, TypeVar

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.scalars import as_count

#: Pieces of work per thread, and the most items and multiplications in one, so that Ctrl-C works.
SHARES, PIECE, PRODUCTS = 4, 2**20, 5e9

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count(workers: Any) -> int:
    """Return the number of threads for `workers`: all available cores for -1, and never more."""
    if isinstance(workers, numbers.Integral) and workers == -1:
        return available_cores()
    count = as_count(workers, "workers")
    return count if count == 1 else min(count, available_cores())


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(1)
def _libraries(modules: int) -> Any:
    """Return the loaded libraries that have threads.

    To find them takes 4 to 20 ms, so that is done again only once more modules are loaded.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _OneBlasThread:
    """Keeps BLAS at one thread while any pass runs; the last to end restores the number before.

    Passes may end in another order than they began, so they are counted.
    """

    def __init__(self) -> None:
        self._lock, self._passes, self._limits = Lock(), 0, None

    def __enter__(self) -> None:
        with self._lock:
            if self._passes == 0:
                self._limits = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
            self._passes += 1  # after the limit is set, which Ctrl-C may prevent

    def __exit__(self, *problem: object) -> None:
        with self._lock:
            self._passes -= 1
            if self._passes == 0:
                self._limits.restore_original_limits()  # type: ignore[attr-defined]


one_blas_thread = _OneBlasThread()


def in_background(work: Callable[[], Result], daemon: bool | None = None) -> Future[Result]:
    """Return the future of work(), run in a new thread; `daemon`: the process may end before it.

    Executors take no work once the main thread has ended, though training in another may go on.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="dmsgd", daemon=daemon).start()
    return future


def draw_in_parallel(
    draw: Callable[[int, IntArray], int],
    start: int,
    size: int,
    k: int,
    workers: int,
    failure: str = "its sampler gave up",
    products: float = 0.0,
) -> IntArray:
    """Return draws start to start + size, shape (size, k), made by `draw(start, out)` in threads.

    `draw` returns how many rows of `out` it filled; `failure` says why if these are not all.

    products: multiplications of one draw, if there are many more than items.
    """
    out = np.empty((size, k), dtype=np.int64)
    shares = 1 if workers == 1 else SHARES * workers  # a slow thread leaves some to others
    count = min(max(shares, ceil(size * max(k / PIECE, products / PRODUCTS))), max(size, 1))

    def work(part: tuple[int, int]) -> None:
        first, last = part
        done = draw(start + first, out[first:last])
        if done != last - first:
            raise SamplingError(f"draw {start + first + done} was not completed: {failure}")

    parts = [(size * i // count, size * (i + 1) // count) for i in range(count)]
    parallel_map(work, parts, workers)
    return out


def parallel_map(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> list[Result]:
    """Return [work(item) for item in items], in `workers` threads; an error stops all of them."""
    if workers == 1 or len(items) <= 1:
        return [work(item) for item in items]
    results: list[Any] = [None] * len(items)
    places = iter(range(len(items)))  # all threads share them

    def take() -> None:
        try:
            for place in places:
                results[place] = work(items[place])
        finally:
            deque(places, maxlen=0)  # after an error no thread goes on

    helpers: list[Future[None]] = []
    try:
        for _ in range(min(workers, len(items)) - 1):  # this thread works, too
            helpers.append(in_background(take))
        take()
    finally:
        deque(places, maxlen=0)
        wait(helpers)
    for helper in helpers:
        helper.result()
    return results
