"""Dask workers that are killed every few seconds: schedules are the same as drawn alone.

python tests/soak/workers.py [--kills 20] [--every 3] [--steps 20000] [--workers 3]

Features are on the cluster, whose workers search them. A new worker comes for each that is killed,
and the next is killed once it is there.
"""

from __future__ import annotations

import logging
import tempfile
import threading
from pathlib import Path

import dask.array as da
import numpy as np
from dask_processes import DaskProcesses
from watch import Progress, announce, finish, options

import dmsgd
from distributed import Client

K = 8


def main(arguments=None):
    given = options(arguments, kills=20, every=3.0, steps=20_000, workers=3)
    announce(
        f"{given.kills} kills of Dask workers, one every {given.every:g} s",
        "2 to 6 minutes",
    )
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it tells of every lost worker
    X = np.random.default_rng(0).normal(size=(3000, 40))
    alone, over, kills = (
        dmsgd.diversify(X, K, kernel="linear", normalize=False),
        threading.Event(),
        [0],
    )
    progress, failures, schedules = Progress(given.kills, "kills"), [], 0
    with (
        DaskProcesses(given.workers) as processes,
        Client(processes.address) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        client.wait_for_workers(given.workers)

        def kill():
            while kills[0] < given.kills and not over.wait(given.every):
                if len(client.nthreads()) < given.workers:
                    continue  # the last new one is still on its way
                processes.kill_worker()
                processes.add_worker()
                kills[0] += 1
                progress.show(kills[0], f"{schedules} schedules")

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        try:
            while killer.is_alive():
                seed, array = schedules, da.from_array(X, chunks=(200, 40))
                design = dmsgd.diversify(array, K, kernel="linear", normalize=False)
                path = Path(folder) / f"{seed}.npy"
                drawn = dmsgd.presample(design, given.steps, seed, path)
                if not np.array_equal(drawn.batches, alone.sample(given.steps, seed)):
                    failures.append(f"schedule {seed} differs from the one drawn alone")
                schedules += 1
        except Exception as error:
            failures.append(f"schedule {schedules}: {error!r}")
        over.set()
        killer.join()
    facts = f"{schedules} schedules of {given.steps:,} draws, {kills[0]} kills"
    finish("workers", failures, f"{facts} among {given.workers} workers")


if __name__ == "__main__":
    main()
