"""Who makes the draws of a schedule, and in what pieces: threads here, or a cluster."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import uuid4

from dmsgd.designs.design import Design
from dmsgd.features.connection import named_losses, refuse_lost, result
from dmsgd.inputs.arrays import IntArray, on_host
from dmsgd.inputs.memory import memory_limit
from dmsgd.schedules.record import Record

#: Draws are made in pieces of about this many seconds: progress shows, and Ctrl-C is heard.
PIECE_SECONDS = 0.25

#: And of at most so many numbers, or an 8th of the memory.
PIECE_NUMBERS = 2**20

#: Draws that a worker of a cluster makes at a time.
CLUSTER_DRAWS = 256

#: Such pieces that are under way: enough for many workers, and no more results than fit.
CLUSTER_AHEAD = 512


@dataclass(frozen=True)
class Hands:
    """Who draws, and whether it is shown: threads here, or the workers of a cluster."""

    workers: int
    progress: bool
    client: Any


def pieces(
    design: Design, record: Record, start: int, hands: Hands
) -> Iterator[tuple[int, IntArray]]:
    """Yield (t, draws t, t+1, ...) from `start` to the end."""
    with _bar(record.steps, start, hands.progress) as advance:
        for first, batches in _drawn_by(design, record, start, hands):
            yield first, batches
            advance(len(batches))


def _drawn_by(
    design: Design, record: Record, start: int, hands: Hands
) -> Iterator[tuple[int, IntArray]]:
    if hands.client is None:
        return _by_threads(design, record, start, hands.workers)
    if design.chunk == 1:
        return _by_cluster(design, record, start, hands.client)
    return _with_cluster(design, record, start, hands)


def _by_threads(
    design: Design, record: Record, start: int, workers: int
) -> Iterator[tuple[int, IntArray]]:
    """Draw here, in pieces that take about PIECE_SECONDS, or as large as the design asks for."""
    most = max(1, min(PIECE_NUMBERS, memory_limit() // 64) // record.k)
    size = design.chunk if design.chunk > 1 else min(16 * workers, most)
    while start < record.steps:
        began = time.monotonic()
        size = min(size, record.steps - start)
        batches = design.sample(size, record.seed, start=start, workers=workers)
        yield start, on_host(batches)
        start += size
        if design.chunk == 1 and time.monotonic() - began < PIECE_SECONDS / 2:
            size = min(2 * size, most)


def _with_cluster(
    design: Design, record: Record, start: int, hands: Hands
) -> Iterator[tuple[int, IntArray]]:
    """Draw here from data on the cluster, which finds the items of every draw."""
    with hands.client.as_current():
        for piece in _by_threads(design, record, start, hands.workers):
            yield piece
            refuse_lost(hands.client)  # Dask would go on here, in one process


def _by_cluster(
    design: Design, record: Record, start: int, client: Any
) -> Iterator[tuple[int, IntArray]]:
    """Let the workers of a cluster draw; the design is sent to each of them once.

    It is sent as a task, which Dask does again where a worker is lost with it.
    """
    name = f"{record.fingerprint[:8]}-{record.seed}"
    with warnings.catch_warnings(), named_losses(client):
        warnings.filterwarnings("ignore", message="Sending large graph")
        there = client.submit(_same, design, key=f"dmsgd-design-{name}-{uuid4().hex}")
    starts, waiting = iter(range(start, record.steps, CLUSTER_DRAWS)), deque[tuple[int, Any]]()
    while True:
        if len(waiting) <= CLUSTER_AHEAD // 2:
            firsts = list(islice(starts, CLUSTER_AHEAD - len(waiting)))
            with named_losses(client):
                futures = client.map(
                    _draws_from, firsts, design=there, steps=record.steps, seed=record.seed,
                    key=f"dmsgd-draws-{name}", pure=False,
                ) if firsts else []  # fmt: skip
            waiting.extend(zip(firsts, futures, strict=True))
        if not waiting:
            return
        first, future = waiting.popleft()
        yield first, result(future, client)
        future.release()


def _same(design: Design) -> Design:
    return design


def _draws_from(first: int, design: Design, steps: int, seed: int) -> IntArray:
    return design.sample(min(CLUSTER_DRAWS, steps - first), seed, start=first)


@contextmanager
def _bar(total: int, done: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield the function that moves the progress bar on."""
    if not shown:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("draws", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda count: bar.advance(task, count)
