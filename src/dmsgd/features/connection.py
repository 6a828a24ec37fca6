"""The connection to a Dask cluster: made, watched and closed, with one clear error where it fails.

Dask itself waits for ever for a port that accepts and says nothing, for a scheduler that hangs, and
for workers that never come.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from itertools import islice
from threading import Thread
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

from dmsgd.errors import ClusterError
from dmsgd.inputs.messages import require

#: How long to look for a scheduler, or to wait for its answer.
CONNECT_SECONDS = 10.0

#: While a result is waited for, how often to ask whether the scheduler is still there.
LOOK_SECONDS = 5.0

#: How long a cluster may be without any worker.
WORKERLESS_SECONDS = 60.0

#: How often a task is tried again that Dask gives up because several workers died with it.
RETRIES = 10

#: Tasks under way: enough for many workers, and no more results than fit into memory.
TASKS_AHEAD = 512

#: After so many looks in a row at workers without work, what is tried again will never be done.
IDLE_LOOKS = 3


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at `address`, or of a cluster started here ("local")."""
    require("dask", "a cluster")
    from distributed import Client, LocalCluster

    if address == "local":
        with LocalCluster(dashboard_address=None) as cluster, Client(cluster) as client:
            yield client
        return
    identity(address)
    try:
        # Not Dask's default client before it is connected: a failed one would stay that.
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, asyncio.TimeoutError, ValueError) as error:
        raise _no_scheduler(address, type(error).__name__) from None
    logs = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [log.level for log in logs]
    for log in logs:  # of a scheduler that is lost, whoever waits for it tells
        log.setLevel(logging.CRITICAL)
    try:
        with client.as_current():
            yield client
    finally:
        with suppress(Exception):
            client.close(CONNECT_SECONDS)
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def identity(address: str, security: Any = None) -> dict[str, Any]:
    """Return what the scheduler at `address` says of itself and its workers.

    Anything else there, and nothing, is a ClusterError after CONNECT_SECONDS at the latest. It is
    asked in a thread, because whoever calls may be in an event loop.
    """
    answer: Future[dict[str, Any]] = Future()

    def ask() -> None:
        try:
            answer.set_result(asyncio.run(_asked(address, security)))
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=ask, name="dmsgd-connect", daemon=True).start()
    try:
        found = answer.result(CONNECT_SECONDS + 1)
    except (TimeoutError, asyncio.TimeoutError, CancelledError):
        raise _no_scheduler(address, f"no answer in {CONNECT_SECONDS:g} seconds") from None
    except MemoryError:  # the first bytes of another protocol, read as the length of a message
        raise _no_scheduler(address, "what answers there is something else") from None
    except Exception as error:
        # A plain OSError says that Dask gave up; its cause is what it met.
        met = error.__cause__ if type(error) is OSError else error
        if isinstance(met, TimeoutError | asyncio.TimeoutError | None):
            raise _no_scheduler(address, f"no answer in {CONNECT_SECONDS:g} seconds") from None
        raise _no_scheduler(address, type(met).__name__) from None
    kind = found.get("type")
    if kind != "Scheduler":
        raise _no_scheduler(address, f"what answers there is a {kind}")
    return found


async def _asked(address: str, security: Any) -> dict[str, Any]:
    from distributed.comm import connect

    from distributed import Security

    options = (security or Security()).get_connection_args("client")

    async def ask() -> dict[str, Any]:
        # Less than is waited for all: what Dask found when it gave up is then what is told.
        comm = await connect(address, timeout=0.7 * CONNECT_SECONDS, **options)
        try:
            await comm.write({"op": "identity", "reply": True})
            return dict(await comm.read())
        finally:
            comm.abort()

    return await asyncio.wait_for(ask(), CONNECT_SECONDS)


def _no_scheduler(address: str, why: str) -> ClusterError:
    return ClusterError(
        f"there is no Dask scheduler at {address} ({why}); give the address that `dask scheduler` "
        f"prints, or use --cluster local"
    )


def address_of(client: Any) -> str:
    """Return the address of a client's scheduler, in words if it has none.

    A client that Dask has closed has lost it, and keeps what it was started with.
    """
    started = getattr(client, "_start_arg", None)
    return str(getattr(client.scheduler, "address", None) or started or "an unknown address")


def refuse_lost(client: Any) -> None:
    """Raise if a client is not connected, or is none."""
    if not (hasattr(client, "scheduler") and hasattr(client, "status")):
        raise TypeError(
            f"client must be a dask.distributed Client, got {client!r}; use Client(address)"
        )
    if client.asynchronous:
        raise TypeError(
            "client is asynchronous, and draws wait for it; use a plain Client(address)"
        )
    if client.status != "running":
        raise ClusterError(
            f"the connection to the Dask scheduler at {address_of(client)} is lost (the client is "
            f"{client.status}); see that it runs, connect again, and call again"
        )


@contextmanager
def named_losses(client: Any) -> Iterator[None]:
    """Turn what Dask raises where it loses its scheduler or workers into one error of ours."""
    from distributed.comm import CommClosedError

    from distributed import CancelledError as Cancelled
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise _died(client) from error
    except (Cancelled, CommClosedError) as error:
        raise ClusterError(
            f"the Dask scheduler at {address_of(client)} was lost, or the work there was "
            f"cancelled; see that it runs, and call again"
        ) from error


def _died(client: Any) -> ClusterError:
    return ClusterError(
        f"several workers of the Dask cluster at {address_of(client)} died on the same task, "
        f"probably for lack of memory; give them more, or more threads to fewer workers"
    )


def result(future: Any, client: Any) -> Any:
    """Return the result of a future, and wait for it only while there is a cluster.

    Where two tasks that it needs were given up at once, Dask tries one of them again and waits for
    both; nobody works then.
    """
    from distributed import KilledWorker
    from distributed import TimeoutError as TimedOut

    retries = idle = 0
    while True:
        with named_losses(client):
            try:
                return future.result(timeout=LOOK_SECONDS)
            except TimedOut:
                if future.status == "error":
                    raise  # the task's own
            except KilledWorker:
                retries, idle = retries + 1, 0
                if retries > RETRIES:
                    raise
                with suppress(KeyError):  # what it depends on may be no future of the client
                    client.retry([future])
        wait_for_a_worker(client)
        if retries:
            idle = 0 if any(client.processing().values()) else idle + 1
            if idle > IDLE_LOOKS and future.status == "pending":
                raise _died(client)


def wait_for_a_worker(client: Any) -> None:
    """Return once the cluster has a worker; raise if it gets none, or is lost."""
    since, address = monotonic(), address_of(client)
    while not identity(address, client.security)["workers"]:
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
    with warnings.catch_warnings(), named_losses(client):
        warnings.filterwarnings("ignore", message="Sending large graph")
        there = client.submit(_same, shared, key=f"dmsgd-shared-{name}-{uuid4().hex}")
    rest, waiting = iter(starts), deque[Any]()
    while True:
        if len(waiting) <= TASKS_AHEAD // 2:
            more = list(islice(rest, TASKS_AHEAD - len(waiting)))
            with named_losses(client):
                key = f"dmsgd-{name}"
                if more:
                    waiting += client.map(function, more, shared=there, key=key, pure=False)
        if not waiting:
            return
        future = waiting.popleft()
        yield result(future, client)
        future.release()


def _same(shared: Any) -> Any:
    return shared
