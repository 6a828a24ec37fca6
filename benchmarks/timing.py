"""One thread, CPU time, and where `experiments` lies; import this before NumPy."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))  # for experiments, which are not installed

THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
for _name in THREADS:
    os.environ[_name] = "1"

__all__ = [
    "cpu_seconds",
    "first_use",
    "human",
    "load_loops",
    "medians",
    "peak_bytes",
    "processor",
    "run_python",
]


def cpu_seconds(work, rounds=3, least=0.05):
    """Return the CPU time of one call: the best of `rounds` rounds of at least `least` seconds."""
    best, repeats = float("inf"), 1
    while rounds:
        began = time.process_time()
        for _ in range(repeats):
            work()
        spent = time.process_time() - began
        if spent < least:
            repeats *= 2
            continue
        best, rounds = min(best, spent / repeats), rounds - 1
    return best


def medians(*works, rounds=7, least=0.1):
    """Return the median CPU seconds of each, in rounds that take turns, so that noise hits all."""
    times = [[] for _ in works]
    for work in works:
        work()
    for _ in range(rounds):
        for work, found in zip(works, times, strict=True):
            start, count = time.process_time(), 0
            while count == 0 or time.process_time() - start < least:
                work()
                count += 1
            found.append((time.process_time() - start) / count)
    return [statistics.median(found) for found in times]


def load_loops():
    """Load the compiled loops of draws: until then, batches are drawn in NumPy."""
    import numpy as np

    import dmsgd

    dmsgd.diversify(np.eye(64), k=32).sample(20_000, seed=0)


def peak_bytes(work):
    """Return the most memory that NumPy and Python held at once during `work`."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def first_use(batches=1):
    """Return CPU seconds from the start of Python to the first batches, with nothing compiled."""
    code = (
        "import numpy, time, dmsgd\n"
        "X = numpy.random.default_rng(0).normal(size=(1000, 64))\n"
        f"dmsgd.diversify(X, k=16).sample({batches}, seed=0)\n"
        "print(time.process_time())"
    )
    found = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            found.append(run_python(code, NUMBA_CACHE_DIR=folder))
    return statistics.median(found)


def run_python(code, one_thread=True, **variables):
    """Return the number that `code` prints in a new process; BLAS threads by default or one."""
    environment = {**os.environ, **variables}
    for name in () if one_thread else THREADS:
        del environment[name]
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, check=True)
    return float(run.stdout)


def processor():
    """Return the processor in words: what it says of itself, and what the compiler calls it."""
    from llvmlite.binding import get_host_cpu_name

    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        model = names[0] if names else model
    return f"{platform.machine()}, {model} ({get_host_cpu_name()}), {os.cpu_count()} cores"


def human(seconds):
    """Return e.g. '212 µs', '5.1 ms', '2.3 s'."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError
