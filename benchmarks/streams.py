"""Larger than memory: an 8 GB file on one machine, and a Dask cluster of two small workers.

    python benchmarks/streams.py file [--gb 8]        # time, peak memory, bytes read
    python benchmarks/streams.py dask [--items 4000000]   # against the bare Gram and projection
    python benchmarks/streams.py scaling              # 1 against 2 workers, N against 2N

The bare work on the cluster is the Gram matrix and the projection on its eigenvectors, written with
Dask arrays as anybody would.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import dmsgd
from dmsgd.inputs.messages import format_bytes

K, STEPS, COLUMNS = 64, 1000, 64


def generate(path, items, columns=COLUMNS):
    """Write a .npy file of float32 with a decaying spectrum, block by block."""
    array = np.lib.format.open_memmap(path, "w+", np.float32, (items, columns))
    scales = np.logspace(0, -1, columns)
    for start in range(0, items, 2**18):
        stop = min(start + 2**18, items)
        rng = np.random.default_rng([1, start])
        array[start:stop] = rng.standard_normal((stop - start, columns), np.float32) * scales
    array.flush()
    del array


def bytes_read():
    """Bytes this process has asked the system for so far, cached or not."""
    with open("/proc/self/io") as lines:
        return int(next(line.split()[1] for line in lines if line.startswith("rchar")))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def of_file(gigabytes, k):
    """Set-up and a schedule from a file, in a fresh process so that its peak memory is its own."""
    items = int(gigabytes * 2**30 / (4 * COLUMNS))
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        path = Path(folder) / "x.npy"
        generate(path, items)
        size = path.stat().st_size
        pid = os.fork()
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
            return
        dmsgd.diversify(np.eye(40), 3, kernel="linear", normalize=False).sample(1)  # compile
        before, began, read = peak(), time.perf_counter(), bytes_read()
        design = dmsgd.diversify(str(path), k, kernel="linear", normalize=False)
        ready, read_ready = time.perf_counter(), bytes_read()
        schedule = dmsgd.presample(design, STEPS, path=Path(folder) / "s.npy", workers=-1)
        done, read_done = time.perf_counter(), bytes_read()
        assert schedule.batches.shape == (STEPS, k)
        print(
            f"{format_bytes(size)} file, {items:,} x {COLUMNS} float32, k = {k}: set-up "
            f"{ready - began:.0f} s, reading {(read_ready - read) / size:.2f} times the file; "
            f"{STEPS} batches {done - ready:.0f} s, reading {(read_done - read_ready) / size:.2f} "
            f"times; peak memory {format_bytes(peak())} ({format_bytes(before)} before)",
            flush=True,
        )
        os._exit(0)


def bare(array):
    """The Gram matrix and the projection of all rows, in plain Dask and in double precision."""
    array = array.astype(np.float64)
    gram = (array.T @ array).compute()
    basis = np.linalg.eigh(gram)[1]
    return ((array @ basis) ** 2).sum(axis=0).compute()


def cluster(workers):
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers, threads_per_worker=1, memory_limit="700MB", dashboard_address=None
    )


def read(path, start, stop):
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def dask_array(path, chunk=200_000, items=None):
    """The file as a Dask array whose chunks the workers read."""
    import dask
    import dask.array as da

    items = items or np.load(path, mmap_mode="r").shape[0]
    parts = []
    for start in range(0, items, chunk):
        rows = min(chunk, items - start)
        block = dask.delayed(read)(path, start, start + rows)
        parts.append(da.from_delayed(block, (rows, COLUMNS), np.float32))
    return da.concatenate(parts)


def measured(path, workers, k):
    """Return seconds of the bare work, of set-up and of a schedule; and workers that were lost."""
    from distributed import Client

    with cluster(workers) as local, Client(local) as client:
        pids = sorted(client.run(os.getpid).values())
        array = dask_array(path)
        bare(array)  # warm
        dmsgd.diversify(
            dask_array(path, 50_000, 200_000), k, kernel="linear", normalize=False
        ).sample(5)
        began = time.perf_counter()
        bare(array)
        floor = time.perf_counter() - began
        began = time.perf_counter()
        design = dmsgd.diversify(array, k, kernel="linear", normalize=False)
        ready = time.perf_counter()
        dmsgd.presample(design, STEPS, workers=-1)
        done = time.perf_counter()
        lost = len(set(pids) - set(client.run(os.getpid).values()))
    return floor, ready - began, done - ready, lost


def on_dask(items, console, cases, k):
    table = Table(title=f"Dask, {COLUMNS} float32 columns, {STEPS} batches of {k}, 700 MB a worker")
    for name in ("items", "workers", "bare Gram + projection", "set-up", "batches", "all / bare",
                 "workers lost"):  # fmt: skip
        table.add_column(name, justify="right")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        for factor, workers in cases:
            path = Path(folder) / f"{factor}.npy"
            if not path.exists():
                generate(path, int(items * factor))
            floor, setup, draws, lost = measured(path, workers, k)
            table.add_row(
                f"{int(items * factor):,}", str(workers), f"{floor:.1f} s", f"{setup:.1f} s",
                f"{draws:.1f} s", f"{(setup + draws) / floor:.2f}", str(lost),
            )  # fmt: skip
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("file", "dask", "scaling"))
    parser.add_argument("--gb", type=float, default=8)
    parser.add_argument("--items", type=int, default=4_000_000)
    parser.add_argument("-k", type=int, default=K)
    arguments = parser.parse_args()
    console = Console(width=120)
    if arguments.what == "file":
        of_file(arguments.gb, arguments.k)
    elif arguments.what == "dask":
        on_dask(arguments.items, console, [(1, 2)], arguments.k)
    else:
        on_dask(arguments.items, console, [(0.5, 1), (0.5, 2), (1, 1), (1, 2)], arguments.k)


if __name__ == "__main__":
    main()
