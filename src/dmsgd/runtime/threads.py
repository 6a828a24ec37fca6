"""How many threads `workers` means, BLAS beside them, and work in a thread of its own."""

from __future__ import annotations

import numbers
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache
from threading import Lock, Thread
from typing import Any, TypeVar

from dmsgd.inputs.scalars import as_count

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
            self._passes += 1
            if self._passes == 1:
                self._limits = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")

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
