"""How many threads `workers` means, BLAS beside them, and work in a thread of its own."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from dmsgd.inputs.scalars import as_count

Result = TypeVar("Result")


def thread_count(workers: Any) -> int:
    """Return the number of threads for `workers`: all available cores for -1, and never more."""
    if isinstance(workers, numbers.Integral) and workers == -1:
        return available_cores()
    return min(as_count(workers, "workers"), available_cores())


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _OneBlasThread:
    """Keeps BLAS at one thread while any pass runs; the last to end restores the number before.

    Passes may end in another order than they began, so they are counted.
    """

    def __init__(self) -> None:
        self._lock, self._passes, self._limits = Lock(), 0, None

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with self._lock:
            self._passes += 1
            if self._passes == 1:
                self._limits = threadpool_limits(1, user_api="blas")

    def __exit__(self, *problem: object) -> None:
        with self._lock:
            self._passes -= 1
            if self._passes == 0:
                self._limits.restore_original_limits()  # type: ignore[attr-defined]


one_blas_thread = _OneBlasThread()


class Background(Thread, Generic[Result]):
    """Runs `work` in a new thread; `daemon`: the process may end before the work does.

    Executors take no work once the main thread has ended, though training in another may go on.
    """

    def __init__(self, work: Callable[[], Result], daemon: bool | None = None) -> None:
        super().__init__(name="dmsgd", daemon=daemon)
        self._work = work
        self._result: Result | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Do the work."""
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error
        finally:
            del self._work  # it may refer to the object that waits for it

    def result(self, timeout: float | None = None) -> Result:
        """Return what the work returned, or raise what it raised; TimeoutError after `timeout`."""
        self.join(timeout)
        if self.is_alive():
            raise TimeoutError(f"no result in {timeout:g} seconds")
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]
