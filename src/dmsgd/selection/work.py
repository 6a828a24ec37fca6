"""How long a covering set takes, from a timed piece of the work, and how far it is."""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import final

import numpy as np

from dmsgd.inputs.progress import LONG, Progress, format_seconds
from dmsgd.selection.coverage import START
from dmsgd.selection.similarity import Similarity

log = logging.getLogger("dmsgd")

#: Candidates and items of the piece that is timed.
TALL, WIDE = 4096, 512
#: Similarities that never take a minute; seconds from which on it is said what would be faster.
PAIRS, VERY_LONG = 1e9, 600.0
ADVICE = "ask for fewer items, use workers=-1, or pass X as a CUDA tensor"
#: Columns per chosen item, as they were on three data sets of 60,000 and 200,000 items.
EACH = 150


def expected_columns(k: int, N: int) -> float:
    """Return about how many items are compared with all candidates for a set of k."""
    return min(START * (1 + math.log(k + 1)) + EACH * k, N * (1.0 + math.log(k + 1)) + 16 * k)


@final
class Work:
    """Announces a long choice of k candidates and logs its progress.

    is_part: of a larger one: it is not announced, and in other threads and processes it is silent.
    """

    def __init__(self, similarity: Similarity, k: int, what: str, is_part: bool = False) -> None:
        self.silent = is_part and threading.current_thread() is not threading.main_thread()
        self.k, self.N, self.progress = k, similarity.N, Progress(what)
        columns = expected_columns(k, similarity.N)
        self.long = columns * similarity.n >= PAIRS
        if is_part or not self.long:
            return
        seconds = columns * _seconds_per_column(similarity)
        if seconds > LONG:
            more = f"; {ADVICE}" if seconds > VERY_LONG else ""
            log.warning("%s takes about %s%s", what, format_seconds(seconds), more)

    def __call__(self, chosen: int) -> None:
        """Log how far it is: the rest takes as much longer than expected as what is done."""
        if self.silent or not self.long:
            return
        done, all_ = (expected_columns(count, self.N) for count in (chosen, self.k))
        self.progress(done / all_)


def _seconds_per_column(similarity: Similarity) -> float:
    """Return how long one item takes with all candidates, measured on a few after a first call."""
    vector, tall, wide = similarity.vector, min(TALL, similarity.n), min(WIDE, similarity.N)
    candidates, items = vector(np.arange(tall), np.int64), vector(np.arange(wide), np.int64)
    low, weights = vector(np.full(wide, 0.5), np.float32), vector(np.ones(wide), np.float32)
    for _ in range(2):
        began = time.perf_counter()
        similarity.host(similarity.gained(candidates, items, low, 1.0, weights))
        passed = time.perf_counter() - began
    return passed * similarity.n / tall / wide
