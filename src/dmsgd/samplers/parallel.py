"""Draws in threads: each draw has its own random numbers, so results do not depend on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from math import ceil
from typing import Any, TypeVar

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import IntArray
from dmsgd.runtime.threads import in_background

#: Pieces of work per thread, and the most items and multiplications in one, so that Ctrl-C works.
SHARES, PIECE, PRODUCTS = 4, 2**20, 5e9

Item = TypeVar("Item")
Result = TypeVar("Result")


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
