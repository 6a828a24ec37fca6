"""A Dask scheduler and its workers, each a process of its own that can be killed."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

SCHEDULER = """
import asyncio, sys
from distributed import Scheduler

async def serve():
    async with Scheduler(host="127.0.0.1", port=int(sys.argv[1]), dashboard_address=":0") as one:
        await one.finished()

asyncio.run(serve())
"""

#: A worker comes once it can draw, so that it does not spend its short life on imports.
WORKER = """
import asyncio, sys
import dmsgd, numpy
from distributed import Worker

dmsgd.presample(dmsgd.diversify(numpy.eye(4), 2), 1)

async def work():
    async with Worker(sys.argv[1], nthreads=1, dashboard_address=":0") as one:
        await one.finished()

asyncio.run(work())
"""


def start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


class DaskProcesses:
    """Used in a `with`: it starts, and in the end kills, a scheduler and `workers` workers."""

    def __init__(self, workers):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = start(SCHEDULER, self.port)
        self.workers = []
        for _ in range(workers):
            self.add_worker()

    def add_worker(self):
        self.workers.append(start(WORKER, self.address))

    def kill_worker(self):
        """Kill the oldest worker."""
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()

    def until_there(self):
        """Wait until the scheduler listens."""
        for _ in range(600):
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"no scheduler came up at {self.address}")

    def __enter__(self):
        self.until_there()
        return self

    def __exit__(self, *error):
        for process in (self.scheduler, *self.workers):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
