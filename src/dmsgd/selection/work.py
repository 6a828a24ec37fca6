"""How long a covering set takes, from a timed piece of the work, and how far it is."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

import numpy as np

from dmsgd.inputs.messages import counted
from dmsgd.runtime.progress import LONG, Progress, format_seconds
from dmsgd.selection.coverage import DECIDED, WHOLE
from dmsgd.selection.similarity import SHARE, Similarity

log = logging.getLogger("dmsgd")

#: Items of the pieces that are timed, and candidates of one of them for each thread.
WIDE, TALL = 512, 2 * SHARE
#: Similarities that never take a minute; seconds from which on it is said what would be faster.
PAIRS, VERY_LONG = 1e9, 600.0
ADVICE = "ask for fewer items, use workers=-1, or pass X as a CUDA tensor"


def expected_columns(k: int, N: int) -> float:
    """Return about how many items are compared with all candidates for a set of k.

    If N is large, it is 4 N^0.6 √k, as it was within a third on five sets of 16,000 to 10⁶ items.
    """
    whole = N * (1.0 + math.log(k + 1))
    return whole if N <= WHOLE else min(whole, 4 * N**0.6 * math.sqrt(k))


def announce_cover(similarity: Similarity, k: int, is_part: bool) -> Callable[[int], None]:
    """Announce a long choice of k candidates; return what logs how far it is, by items chosen.

    The rest takes as much longer than expected as what is done.

    is_part: of a larger one: it is not announced, and in other threads and processes it is silent.
    """
    columns = expected_columns(k, similarity.N)
    silent = is_part and threading.current_thread() is not threading.main_thread()
    if silent or columns * similarity.n < PAIRS:
        return lambda chosen: None
    what = f"a covering set of {counted(k, 'item')} of {similarity.n:,}"
    progress = Progress(what)
    if not is_part:
        each, step = _seconds(similarity)
        seconds = columns * each + k * step
        if seconds > LONG:
            more = f"; {ADVICE}" if seconds > VERY_LONG else ""
            log.warning("%s takes about %s%s", what, format_seconds(seconds), more)
    return lambda chosen: progress(expected_columns(chosen, similarity.N) / columns)


def _seconds(similarity: Similarity) -> tuple[float, float]:
    """Return how long one item takes with all candidates, and a candidate's choice without that."""
    vector, wide = similarity.vector, min(WIDE, similarity.N)
    tall = min(TALL * similarity.workers, similarity.n)
    half, one = (vector(np.full(similarity.N, value), np.float32) for value in (0.5, 1.0))
    some, items = (vector(np.arange(size), np.int64) for size in (tall, wide))

    def columns() -> None:
        similarity.host(similarity.gained(some, items, half[:wide], 1.0, one[:wide]))

    def step() -> None:
        similarity.row(0)
        similarity.host(similarity.gained(some[: DECIDED[0]], None, half, 1.0, one))

    return _seconds_of(columns) * similarity.n / tall / wide, _seconds_of(step)


def _seconds_of(work: Callable[[], None]) -> float:
    """Return how long work takes at least, of three times after a first one."""
    passed = []
    for _ in range(4):
        began = time.perf_counter()
        work()
        passed.append(time.perf_counter() - began)
    return min(passed[1:])
