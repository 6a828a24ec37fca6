"""What a piece of work costs, in CPU seconds: a busy machine changes them little."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what `work` returns, and the CPU seconds it took."""
    begun = process_time()
    value = work()
    return value, process_time() - begun
