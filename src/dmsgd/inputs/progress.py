"""Announces long work before it begins, and logs its progress."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread
from typing import final

import numpy as np

from dmsgd.inputs.messages import format_bytes

log = logging.getLogger("dmsgd")

#: Work that takes longer than this, in seconds, is announced in the log (level WARNING, which
#: Python prints where nobody has asked for anything else).
LONG = 60.0

#: Seconds from one line that says how far work is to the next.
EVERY = 30.0

#: Seconds after which the clock is looked at again.
TICK = 1.0

#: Seconds of a multiplication with an addition on a slow machine: what is short there is not timed.
SLOW = 5e-10

#: Rows of the matrices whose product tells how fast this machine is.
_TRIAL = 768

#: The eigendecomposition of a large matrix in products of matrices of its size.
EIGH = 6.0


@cache
def product_seconds() -> float:
    """Return the seconds that a multiplication with an addition takes in a product of matrices."""
    A, found = np.ones((_TRIAL, _TRIAL)), []
    for _ in range(6):  # threads are started by the first; others may be at work meanwhile
        start = time.perf_counter()
        A @ A
        found.append(time.perf_counter() - start)
    return min(found) / float(_TRIAL) ** 3


def expected(products: float) -> float:
    """Return the seconds that so many multiplications take if that is long, and 0 otherwise."""
    if products * SLOW < LONG:
        return 0.0
    seconds = products * product_seconds()
    return seconds if seconds > LONG else 0.0


def announce(products: float, count: int, what: str, advice: str) -> None:
    """Say that `what` takes long, and `count` floats, if so many multiplications do."""
    if seconds := expected(products):
        memory = format_bytes(8 * count)
        log.warning("%s takes about %s and %s; %s", what, format_seconds(seconds), memory, advice)


@final
class Progress:
    """Says how far `what` is, every half minute, in the log (level WARNING, as `announce`).

    Long work calls it between its pieces with the share that is done, above 0; more than 1 is
    work that takes longer than was expected.
    """

    def __init__(self, what: str) -> None:
        self.what, self.began = what, time.monotonic()
        self.said = self.began

    def __call__(self, share: float) -> None:
        """Say how far it is, if nothing was said for half a minute."""
        now = time.monotonic()
        if now - self.said < EVERY:
            return
        self.said, passed = now, now - self.began
        of = (
            f" of about {format_seconds(passed / share)}"
            if share <= 1
            else ", longer than expected"
        )
        log.warning("%s: %s%s", self.what, format_seconds(passed), of, extra={"share": share})


@contextmanager
def meanwhile(what: str, seconds: float) -> Iterator[None]:
    """Say how far the block is, by the clock: for work of others that has no pieces to call from.

    seconds: how long it takes about, as `expected` knows it.
    """
    tell, over = Progress(what), Event()

    def watch() -> None:
        while not over.wait(TICK):
            tell((time.monotonic() - tell.began) / max(seconds, EVERY))

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def format_seconds(seconds: float) -> str:
    """Return a time as people say it, for example '12 minutes'."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
