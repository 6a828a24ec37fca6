"""Spreads draws over threads; each draw has its own random numbers, so it does not matter how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.threads import Background

#: Pieces of work for each thread, and the most items in one: a draw's own arrays stay small, and
#: Ctrl-C is heard.
SHARES, PIECE = 4, 2**20

Item = TypeVar("Item")
Result = TypeVar("Result")


def draw_in_parallel(
    draw: Callable[[int, IntArray], int],
    start: int,
    size: int,
    k: int,
    workers: int,
    failure: str = "its sampler gave up",
) -> IntArray:
    """Return draws start..start+size, shape (size, k), made by `draw(start, out)` on threads.

    `draw` fills rows of `out` and returns how many it completed; `failure` is what it means if
    that is less than all.
    """
    out = np.empty((size, k), dtype=np.int64)
    shares = 1 if workers == 1 else SHARES * workers  # one that is held up leaves some to others
    count = min(max(shares, -(-size * k // PIECE)), max(size, 1))
    bounds = np.linspace(0, size, count + 1).astype(int)
    parts = list(pairwise(bounds.tolist()))

    def work(part: tuple[int, int]) -> None:
        first, last = part
        done = draw(start + first, out[first:last])
        if done != last - first:
            raise SamplingError(f"draw {start + first + done} was not completed: {failure}")

    parallel_map(work, parts, workers)
    return out


def parallel_map(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> list[Result]:
    """Return [work(item) for item in items], on `workers` threads; after an error none goes on."""
    if workers == 1 or len(items) <= 1:
        return [work(item) for item in items]
    results: list[Any] = [None] * len(items)
    places, lock, over = iter(range(len(items))), Lock(), Event()

    def take() -> None:
        try:
            while not over.is_set():
                with lock:
                    place = next(places, None)
                if place is None:
                    return
                results[place] = work(items[place])
        except BaseException:
            over.set()
            raise

    others = min(workers, len(items)) - 1  # this thread works, too
    helpers: list[Background[None]] = []
    try:
        for _ in range(others):
            helpers.append(Background(take))
        take()
        for helper in helpers:
            helper.result()
    finally:
        over.set()
        for helper in helpers:
            helper.join()
    return results
