"""The connection to a Dask cluster, with one clear error where it fails.

Dask itself waits for ever for a port that accepts and never answers, for a scheduler that hangs,
and for workers that never come. Here every call has a timeout.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

from dmsgd.errors import ClusterError
from dmsgd.inputs.messages import require
from dmsgd.inputs.threads import in_background

#: Before Python 3.11 these are different.
TIMEOUTS = (TimeoutError, asyncio.TimeoutError, futures.TimeoutError)
#: Seconds in which a scheduler must answer.
CONNECT_SECONDS = 10.0
#: Seconds between two checks that the scheduler answers, while a result is awaited.
CHECK_SECONDS = 5.0
#: Seconds that a cluster may be without any worker.
WORKERLESS_SECONDS = 60.0
#: Tasks under way: enough for many workers, and no more results than fit into memory.
TASKS_AHEAD = 512


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at `address`, or of a cluster started here ("local").

    Dask's own log stays silent from then on: a lost scheduler is reported by ClusterError.
    """
    require("dask", "a cluster")
    from distributed import Client, LocalCluster

    if address == "local":
        with LocalCluster(dashboard_address=None) as cluster, Client(cluster) as client:
            yield client
        return
    for name in ("distributed", "distributed.client", "distributed.comm.tcp"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    client = _connect(address)
    try:
        with client.as_current():
            yield client
    finally:
        with suppress(Exception):
            client.close(CONNECT_SECONDS)


def _connect(address: str) -> Any:
    from distributed import Client

    class OwnClient(Client):  # type: ignore[misc]
        def __del__(self) -> None:
            """Do nothing: `connected` closes it, and one that never connected would wait here."""

    def connect() -> Any:
        # Not Dask's default client before it is connected: a failed one would stay that.
        return OwnClient(address, timeout=CONNECT_SECONDS, set_as_default=False)

    try:
        return in_background(connect, daemon=True).result(CONNECT_SECONDS + 1)
    except TIMEOUTS:
        why = f"no answer in {CONNECT_SECONDS:g} seconds"
    except Exception as error:  # of any other protocol that answers there
        why = type(error).__name__
    raise ClusterError(
        f"there is no Dask scheduler at {address} ({why}); give the address that `dask scheduler` "
        f"prints, or use --cluster local"
    )


def check_client(client: Any) -> None:
    """Raise if this is no Dask client, or one that is not connected."""
    if not hasattr(client, "scheduler") or client.asynchronous:
        raise TypeError(
            f"client must be a dask.distributed Client, got {client!r}; use Client(address), which "
            f"is not asynchronous"
        )
    if client.status != "running":
        raise _lost(_address(client), f"the client is {client.status}")


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", None) or "an unknown address")


def _lost(address: str, why: str) -> ClusterError:
    return ClusterError(
        f"the Dask scheduler at {address} was lost ({why}); see that it runs, connect again, and "
        f"call again"
    )


@contextmanager
def cluster_errors(client: Any) -> Iterator[None]:
    """Turn what Dask raises where it loses its scheduler or workers into ClusterError."""
    from distributed.comm import CommClosedError

    from distributed import CancelledError, KilledWorker

    address = _address(client)  # a client that is closed has none
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"several workers of the Dask cluster at {address} died on the same task, probably for "
            f"lack of memory; give them more, or more threads to fewer workers"
        ) from error
    except (CancelledError, CommClosedError) as error:
        raise _lost(address, "or the work there was cancelled") from error


def wait_for(future: Any, client: Any) -> Any:
    """Return the result of a future; raise ClusterError if the cluster is lost meanwhile."""
    from distributed import TimeoutError as DaskTimeout

    with cluster_errors(client):
        while True:
            try:
                found = future.result(timeout=CHECK_SECONDS)
                future.release()
                return found
            except DaskTimeout:
                if future.status == "error":
                    raise  # the task's own
            wait_for_worker(client)


def wait_for_worker(client: Any) -> None:
    """Return once the cluster has a worker; raise if none comes, or the scheduler is lost."""
    since, address = monotonic(), _address(client)
    while True:
        try:
            workers = in_background(client.nthreads, daemon=True).result(CONNECT_SECONDS)
        except TIMEOUTS:
            raise _lost(address, f"no answer in {CONNECT_SECONDS:g} seconds") from None
        if workers:
            return
        if monotonic() - since > WORKERLESS_SECONDS:
            raise ClusterError(
                f"the Dask cluster at {address} has had no workers for {WORKERLESS_SECONDS:g} "
                f"seconds; start some (`dask worker {address}`) and call again"
            )
        sleep(1)


def map_on_workers(
    client: Any, function: Callable[[int, Any], Any], starts: Iterable[int], shared: Any, name: str
) -> Iterator[Any]:
    """Yield function(start, shared) for each of `starts` in order, computed by a cluster's workers.

    `shared` is sent to each worker once, as a task, which Dask does again where it is lost.
    """
    with warnings.catch_warnings(), cluster_errors(client):
        warnings.filterwarnings("ignore", message="Sending large graph")
        there = client.submit(_same, shared, key=f"dmsgd-shared-{name}-{uuid4().hex}")
    waiting = deque[Any]()
    for start in starts:
        with cluster_errors(client):
            key = f"dmsgd-{name}-{uuid4().hex}"
            waiting.append(client.submit(function, start, shared=there, key=key, pure=False))
        if len(waiting) == TASKS_AHEAD:
            yield wait_for(waiting.popleft(), client)
    while waiting:
        yield wait_for(waiting.popleft(), client)


def _same(shared: Any) -> Any:
    return shared
