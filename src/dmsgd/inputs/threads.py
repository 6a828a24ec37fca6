"""How many threads `workers` means."""

from __future__ import annotations

import numbers
import os
from typing import Any

from dmsgd.inputs.scalars import as_count


def thread_count(workers: Any) -> int:
    """Return the number of threads for `workers`: itself, or all available cores for -1.

    More than there are cores would only wait for each other, so that many mean all cores too.
    """
    if isinstance(workers, numbers.Integral) and workers == -1:
        return available_cores()
    return min(as_count(workers, "workers"), available_cores())


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
