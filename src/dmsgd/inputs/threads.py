"""How many threads `workers` means."""

from __future__ import annotations

import os
from typing import Any

from dmsgd.inputs.arrays import as_count


def thread_count(workers: Any) -> int:
    """Return the number of threads for `workers`: itself, or all available cores for -1."""
    if workers == -1 and not isinstance(workers, bool):
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else (os.cpu_count() or 1)
        )
    return as_count(workers, "workers")
