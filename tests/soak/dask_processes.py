"""A Dask scheduler and its workers, each a process of its own that can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

#: It imports once what all of them need, and forks: a worker is there at once, and can draw.
NURSERY = """
import asyncio, os, signal, sys
import dmsgd, numpy
from distributed import Scheduler, Worker

async def serve(kind, where, threads=None):
    one = (
        Scheduler(host="127.0.0.1", port=int(where), dashboard_address=":0")
        if kind == "scheduler"
        else Worker(where, nthreads=int(threads), dashboard_address=":0")
    )
    async with one:
        await one.finished()

dmsgd.presample(dmsgd.diversify(numpy.eye(4), 2), 1)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who is killed is gone
children = []
for line in sys.stdin:
    children.append(os.fork())
    if children[-1] == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        asyncio.run(serve(*line.split()))
        os._exit(0)
    print(children[-1], flush=True)
for child in children:
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class Child:
    """A process of the nursery."""

    def __init__(self, pid):
        self.pid = pid

    def send_signal(self, number):
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def lives(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self):
        """Kill it, and wait until it is gone."""
        self.send_signal(signal.SIGKILL)
        while self.lives():
            time.sleep(0.01)


class DaskProcesses:
    """Used in a `with`: it starts, and in the end kills, a scheduler and `workers` workers."""

    def __init__(self, workers):
        self.held = socket.socket()  # nobody else gets its port, and the scheduler may listen there
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.port = self.held.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.nursery = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", NURSERY],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.scheduler = self._child("scheduler", self.port)
        self.workers, self.threads = [], 1
        for _ in range(workers):
            self.add_worker()

    def _child(self, kind, where):
        self.nursery.stdin.write(f"{kind} {where}\n")
        self.nursery.stdin.flush()
        return Child(int(self.nursery.stdout.readline()))

    def add_worker(self):
        """Start a worker with so many `threads`."""
        self.workers.append(self._child("worker", f"{self.address} {self.threads}"))

    def kill_worker(self):
        """Kill the oldest worker."""
        self.workers.pop(0).kill()

    def replace_dead(self):
        """Start a worker for each that is gone."""
        for dead in [worker for worker in self.workers if not worker.lives()]:
            self.workers.remove(dead)
            self.add_worker()

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
        self.nursery.communicate()  # at the end of its input it kills them all
        self.held.close()
