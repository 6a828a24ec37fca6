"""Announces long work before it begins, logs its progress, and keeps Ctrl-C working meanwhile."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import final

from dmsgd.inputs.messages import format_bytes
from dmsgd.runtime.memory import reserve
from dmsgd.runtime.threads import Result, in_background

log = logging.getLogger("dmsgd")

#: Work that takes longer than this, in seconds, is announced in the log (level WARNING, which
#: Python prints unless logging is configured otherwise).
LONG = 60.0
#: Work that takes longer than this share of LONG runs in a thread, so that Ctrl-C is heard.
HEARD = 1 / 200
#: Characters of the line that shows progress on a terminal, which covers all that it has shown.
LINE = 76
#: Seconds after which the time of work is estimated, and from which on its advice is logged, too.
TRIAL, VERY_LONG = 5.0, 600.0
#: Seconds between two lines of progress.
EVERY = 30.0
#: Seconds between two looks at the clock while other code computes.
TICK = 0.2
#: Multiplications with an addition per second. A fixed number: how results are rounded must not
#: depend on how busy the machine is.
SPEED = 2e10
#: The eigendecomposition of a large matrix, in products of matrices of its size.
EIGH = 6.0
#: When the last line of the work around was logged, in a list that its parts share.
_LOGGED: ContextVar[list[float] | None] = ContextVar("logged", default=None)


def announce(products: float, count: int, what: str, advice: str) -> None:
    """Log how long `what` takes, this many multiplications, and its `count` floats, if long."""
    if (seconds := products / SPEED) > LONG:
        memory = format_bytes(8 * count)
        log.warning("%s takes about %s and %s; %s", what, format_seconds(seconds), memory, advice)


def plan_work(products: float, count: int, what: str, advice: str) -> None:
    """`reserve` the memory of `count` floats and `announce` the time of `what`."""
    reserve(count, what, advice)
    announce(products, count, what, advice)


@final
class Progress:
    """Logs the progress of `what` every half minute (level WARNING, as `announce`).

    Long work calls it between its pieces with the share that is done, above 0; a share above 1
    means that it takes longer than was expected. Inside `one_work`, parts share the half minute.

    advice: of work that was not announced: after some seconds its time is logged if it is long, and
            if it is very long, what would be faster.
    """

    def __init__(self, what: str, advice: str = "") -> None:
        self.what, self.advice, self.began = what, advice, time.monotonic()
        self.logged = _LOGGED.get() or [self.began]

    def __call__(self, share: float) -> None:
        """Log the progress, unless something was logged less than half a minute ago."""
        now = time.monotonic()
        passed = now - self.began
        if self.advice and passed >= TRIAL:
            if (seconds := passed / share) > LONG:
                more = f"; {self.advice}" if seconds > VERY_LONG else ""
                log.warning("%s takes about %s%s", self.what, format_seconds(seconds), more)
            self.advice = ""
        if now - self.logged[0] < EVERY:
            return
        self.logged[0] = now
        total = format_seconds(passed / share)
        of = f" of about {total}" if share <= 1 else ", longer than expected"
        log.warning("%s: %s%s", self.what, format_seconds(passed), of, extra={"share": share})


@contextmanager
def one_work() -> Iterator[None]:
    """Make the parts of long work log as one: a line every half minute, however short they are."""
    token = _LOGGED.set(_LOGGED.get() or [time.monotonic()])
    try:
        yield
    finally:
        _LOGGED.reset(token)


def run_interruptible(call: Callable[[], Result], products: float, what: str) -> Result:
    """Return call(); unless it is short, Ctrl-C is heard at once and progress is logged.

    The work runs in a daemon thread, and must release the GIL as NumPy's and SciPy's products,
    np.linalg and scikit-learn do. After Ctrl-C the thread computes on until the process ends.

    products: multiplications.
    """
    if (seconds := products / SPEED) <= HEARD * LONG:
        return call()
    progress, work = Progress(what), in_background(call, daemon=True)
    while True:
        done, _ = wait([work], TICK)
        progress((time.monotonic() - progress.began) / seconds)
        if done:
            return work.result()


def format_seconds(seconds: float) -> str:
    """Return a time as people say it, for example '12 minutes'."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"


@contextmanager
def progress_bar(
    what: str, total: int = 0, shown: bool | None = None
) -> Iterator[Callable[[int], None]]:
    """Show a line on stderr while the block runs; call what is yielded with how much is done.

    total: what is done in the end; without it the line names the work alone.
    shown: by default on a terminal only. The cursor waits at the start of the line, so that log
           lines about long work replace it.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda done: None
        return
    show = partial(print, end="\r", file=sys.stderr, flush=True)

    def tell(done: int) -> None:
        show(f"{what} [{'#' * (20 * done // total):20}] {done:,}/{total:,}".ljust(LINE))

    show(f"{what} ...")
    try:
        yield tell
    finally:
        show(" " * LINE)
