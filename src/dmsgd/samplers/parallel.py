"""Spreads draws over threads; each draw has its own random numbers, so it does not matter how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

from dmsgd.errors import SamplingError
from dmsgd.inputs.arrays import IntArray

#: Pieces of work for each thread.
SHARES = 4

Item = TypeVar("Item")
Result = TypeVar("Result")


def fill(
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
    count = (
        1 if workers == 1 else SHARES * workers
    )  # a thread that is held up leaves some to others
    bounds = np.linspace(0, size, min(count, max(size, 1)) + 1).astype(int)
    parts = list(pairwise(bounds.tolist()))

    def work(part: tuple[int, int]) -> None:
        first, last = part
        done = draw(start + first, out[first:last])
        if done != last - first:
            raise SamplingError(f"draw {start + first + done} was not completed: {failure}")

    spread(work, parts, workers)
    return out


def spread(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> list[Result]:
    """Return [work(item) for item in items], on `workers` threads."""
    if workers == 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(workers, len(items))) as pool:
        return list(pool.map(work, items))
