"""Says before long work how long it will take, and what would be shorter."""

from __future__ import annotations

import logging
import time
from functools import cache

import numpy as np

from dmsgd.inputs.memory import human

log = logging.getLogger("dmsgd")

#: Work that takes longer than this, in seconds, is announced in the log (level WARNING, which
#: Python prints where nobody has asked for anything else).
LONG = 60.0

#: Rows of the matrices whose product tells how fast this machine is.
_TRIAL = 768

#: The eigendecomposition of a large matrix in products of matrices of its size.
EIGH = 6.0


@cache
def product_seconds() -> float:
    """Return the seconds that a multiplication with an addition takes in a product of matrices."""
    A = np.ones((_TRIAL, _TRIAL))
    A @ A  # threads are started
    start = time.perf_counter()
    A @ A
    return (time.perf_counter() - start) / float(_TRIAL) ** 3


def announce(products: float, count: int, what: str, advice: str) -> None:
    """Say that `what` takes long, and `count` floats, if so many multiplications do."""
    if products * 1e-12 < LONG / 4:  # on any machine
        return
    seconds = products * product_seconds()
    if seconds > LONG:
        memory = human(8 * count)
        log.warning("%s takes about %s and %s; %s", what, in_words(seconds), memory, advice)


def in_words(seconds: float) -> str:
    """Return a time as people say it, for example '12 minutes'."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
