"""One thread, CPU time, best of a few rounds; import this before NumPy."""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from dmsgd.commands.bench import cpu_seconds  # noqa: E402

__all__ = ["cpu_seconds", "human"]


def human(seconds):
    """Return e.g. '212 µs', '5.1 ms', '2.3 s'."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError
