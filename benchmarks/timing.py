"""One thread, CPU time, best of a few rounds; import this before NumPy."""

from __future__ import annotations

import os
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"


def cpu_seconds(work, rounds=3, least=0.1):
    """CPU seconds of one call of `work`: the best of `rounds` rounds of at least `least`."""
    best, repeats = float("inf"), 1
    while rounds:
        start = time.process_time()
        for _ in range(repeats):
            work()
        spent = time.process_time() - start
        if spent < least:
            repeats = max(2 * repeats, int(repeats * least / max(spent, 1e-6)) + 1)
            continue
        best, rounds = min(best, spent / repeats), rounds - 1
    return best


def human(seconds):
    """Return e.g. '212 µs', '5.1 ms', '2.3 s'."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError
