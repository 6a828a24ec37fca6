"""Features on a Dask cluster: that of the active client, or none.

Passes run where the blocks are, in tasks dmsgd-gram, dmsgd-norms, dmsgd-answer, ...; without a
client in this process. Dask waits for ever for a scheduler that hangs, and for workers that never
come: here every call has a timeout.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from functools import partial, reduce
from itertools import count
from typing import Any, final
from uuid import uuid4
from weakref import WeakSet

import numpy as np
from scipy import sparse

from dmsgd.errors import ClusterError
from dmsgd.features.blocks import Blocks, itself
from dmsgd.features.products import add_sparse_gram, mirrored
from dmsgd.features.readers import Reader, even_bounds
from dmsgd.inputs.arrays import FloatArray, IntArray, check_shape
from dmsgd.runtime.threads import in_background, thread_count

#: Before Python 3.11 these are different.
TIMEOUTS = (TimeoutError, asyncio.TimeoutError, FutureTimeout)
#: Seconds in which a scheduler must answer.
CONNECT_SECONDS = 10.0
#: Seconds between two checks that the scheduler answers, while a result is awaited.
CHECK_SECONDS = 5.0
#: Seconds that a cluster may be without any worker.
WORKERLESS_SECONDS = 60.0
#: Clients that have been connected: where one is no longer, its scheduler is lost.
_CONNECTED: WeakSet[Any] = WeakSet()


@final
class DaskReader(Reader):
    """Delayed arrays or CSR arrays that follow each other, of these numbers of rows."""

    kind, name = "distributed", "the Dask array"

    def __init__(self, parts: list[Any], sizes: Sequence[int], d: int, sparse_rows: bool) -> None:
        self.parts, self.sparse_rows, self.states = parts, sparse_rows, {}
        self.edges = np.cumsum([0, *sizes]).astype(np.int64)
        self._set_shape((int(self.edges[-1]), int(d)))

    def bounds(self, width: int) -> IntArray:
        """Return the edges of the parts, and equal parts of those that maps make too large."""
        even = even_bounds(self.n, width or self.d)
        too_large = width not in (0, self.d) and np.diff(self.edges).max() > 4 * even[1]
        return np.unique(np.append(self.edges, even) if too_large else self.edges)

    def read(self, start: int, stop: int) -> Any:
        """Return these rows, which lie in one part, delayed."""
        ((number, rows),) = self.parts_of(start, stop)
        whole = rows.stop - rows.start == self.edges[number + 1] - self.edges[number]
        return self.parts[number] if whole else self.parts[number][rows]


@final
class DaskBlocks(Blocks):
    """Features in the blocks of a `DaskReader`; passes run where these are."""

    def _compute(self, piece: Callable[..., Any], tasks: Sequence[Any], name: str) -> Iterator[Any]:
        return results_of(self._delayed(piece, tasks, name))

    def map_in_turn(
        self, work: Callable[..., Any], name: str, arguments: Sequence[Any], workers: int
    ) -> Iterator[Any]:
        """On a cluster its workers do it, each in one thread."""
        if current_client() is None:
            return super().map_in_turn(work, name, arguments, workers)
        return self.map_blocks(work, name, [(*given, 1) for given in arguments])

    def _delayed(self, piece: Callable[..., Any], tasks: Sequence[Any], name: str) -> list[Any]:
        """Return each task that is not None, delayed; `piece` is sent once."""
        import dask

        everywhere, call = dask.delayed(piece), named(_call, name)
        return [call(everywhere, self.reader.read(*task[:2]), *task) for task in tasks if task]

    def _gram(self) -> FloatArray:
        """Return FᵀF; of sparse rows from one total for each thread of a cluster.

        Totals are large and rows are small: rows are sent to totals.
        """
        client = current_client()
        if not self.sparse_rows or client is None:
            return super()._gram()
        piece, tasks, _ = self._tasks(itself)
        parts = self._delayed(piece, tasks, "gram")
        threads = max(1, min(sum(client.nthreads().values()), len(parts)))
        add: Any = partial(named(_add_rows, "add"), self.d)
        lanes = np.array_split(np.arange(len(parts)), threads)
        totals = [reduce(add, (parts[number] for number in lane), None) for lane in lanes]
        total = reduce(named(np.add, "add"), totals)
        *hashes, found = results_of([*(part[1] for part in parts), total])
        self._compare(hashes)
        return mirrored(found)


def dask_features(value: Any) -> DaskBlocks:
    """Return the features in a Dask array or frame."""
    if (client := current_client()) is not None:
        wait_for_worker(client)  # Dask itself would wait for ever
    array = value.to_dask_array(lengths=True) if hasattr(value, "to_dask_array") else value
    check_shape(array.shape, "the Dask array")
    if np.isnan(array.shape).any():
        array = array.compute_chunk_sizes()
    sparse_rows = sparse.issparse(getattr(array, "_meta", None))
    stack = named(sparse.hstack if sparse_rows else np.hstack, "stack")
    parts = [row[0] if len(row) == 1 else stack(list(row)) for row in array.to_delayed()]
    return DaskBlocks(DaskReader(parts, array.chunks[0], array.shape[1], sparse_rows))


def _call(piece: Callable[..., Any], *arguments: Any) -> Any:
    return piece(*arguments)


def _add_rows(width: int, total: FloatArray | None, found: Any) -> FloatArray:
    """Return a total with more rows; a copy, because Dask may run a task twice."""
    return add_sparse_gram(np.zeros((width, width)) if total is None else total.copy(), found[0])


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the delayed function, whose tasks the dashboard shows as dmsgd-name.

    Keys count down, because Dask begins with the last key: then results come in the order in which
    they are used, and few of them wait.
    """
    import dask

    delayed = dask.delayed(function, pure=False)
    keys = (f"dmsgd-{name}-{number:09}-{uuid4().hex}" for number in count(10**9 - 1, -1))
    return lambda *given: delayed(*given, dask_key_name=next(keys))


def results_of(tasks: list[Any]) -> Iterator[Any]:
    """Yield the results in order, freeing each on the cluster once it is here."""
    import dask

    client = current_client()
    if client is None:
        chosen = dask.config.get("scheduler", None)  # of a client that is gone, perhaps
        here = "threads" if chosen in ("distributed", "dask.distributed") else None
        step = 2 * thread_count(-1)  # a few at a time, so that not all results are held at once
        for first in range(0, len(tasks), step):
            yield from dask.compute(*tasks[first : first + step], scheduler=here)
        return
    with warnings.catch_warnings(), cluster_errors(client):
        warnings.filterwarnings("ignore", message="Sending large graph")  # proposals are the graph
        futures = deque(client.compute(tasks))
    try:
        while futures:
            yield wait_for(futures.popleft(), client)
    finally:
        for future in futures:
            future.release()  # unlike cancel it does not wait for a lost scheduler


def current_client() -> Any:
    """Return the client that Dask would use now, None if there is none; raise if it was lost.

    One that never was connected counts as none: it would wait for results for ever.
    """
    try:
        client = sys.modules["distributed"].get_client()
    except (KeyError, ValueError):
        return None
    if client.status == "running":
        _CONNECTED.add(client)
        return client
    if client in _CONNECTED:
        raise _lost(_address(client), f"the client is {client.status}")
    return None


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
    address = _address(client)
    try:
        workers = in_background(client.nthreads, daemon=True).result(CONNECT_SECONDS)
    except TIMEOUTS:
        raise _lost(address, f"no answer in {CONNECT_SECONDS:g} seconds") from None
    try:
        if not workers:
            client.wait_for_workers(1, timeout=WORKERLESS_SECONDS)
    except TIMEOUTS:
        raise ClusterError(
            f"the Dask cluster at {address} has had no workers for {WORKERLESS_SECONDS:g} "
            f"seconds; start some (`dask worker {address}`) and call again"
        ) from None
