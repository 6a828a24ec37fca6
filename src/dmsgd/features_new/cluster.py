"""Rows of a Dask array or data frame, or of a file that all workers see: passes run where they are.

Without a running cluster, Dask's own scheduler in this process is used; `distributed.Client(...)`
before the call sends the work there. Tasks are named dmsgd-gram, dmsgd-survey, dmsgd-answer, ...
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, final
from uuid import uuid4

import numpy as np

from dmsgd.streams.recognise import open_rows
from dmsgd.streams.rows import Rows, StoredRows, Work, prepared

#: How long to look for a scheduler.
CONNECT_SECONDS = 10


@final
class DaskRows(Rows):
    """An (n, d) Dask array or frame in its own blocks of rows, or a file read by the workers."""

    def __init__(self, value: Any) -> None:
        if isinstance(value, StoredRows):
            self.shape, self.bounds, self.transforms = value.shape, value.bounds, value.transforms
            read = _named(value.read, "read")
            self.chunks = [read(start, stop) for start, stop in pairwise(value.bounds.tolist())]
            return
        array = value.to_dask_array(lengths=True) if hasattr(value, "to_dask_array") else value
        if array.ndim != 2:
            raise ValueError(f"the Dask array must have two dimensions, got shape {array.shape}")
        if any(np.isnan(size) for size in array.chunks[0]):
            array = array.compute_chunk_sizes()
        array = array.rechunk({1: -1})
        if 0 in array.shape:
            raise ValueError(f"the Dask array is empty: shape {array.shape}")
        self.chunks = list(array.to_delayed().ravel())
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.bounds = np.concatenate([[0], np.cumsum(array.chunks[0])]).astype(np.int64)

    def run(
        self, work: Work, name: str, shared: Any = None, arguments: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield the results in order; from a cluster, each as soon as it and those before are."""
        wanted, tasks = self._tasks(work, name, shared, arguments)
        results, wanted_too = _results(tasks), set(wanted)
        for block in range(self.bounds.size - 1):
            yield next(results) if block in wanted_too else None

    def reduce(
        self, work: Work, combine: Callable[[Any, Any], Any], name: str
    ) -> tuple[Any, list[Any]]:
        """Combine on the workers, in pairs; the second parts come back in order."""
        import dask

        _, tasks = self._tasks(work, name, None, None)
        firsts = [task[0] for task in tasks]
        while len(firsts) > 1:
            pairs = [
                _named(combine, f"{name}-combine")(firsts[i], firsts[i + 1])
                for i in range(0, len(firsts) - 1, 2)
            ]
            firsts = pairs + firsts[2 * len(pairs) :]
        combined, *others = dask.compute(firsts[0], *(task[1] for task in tasks))
        return combined, others

    def _tasks(
        self, work: Work, name: str, shared: Any, arguments: Sequence[Any] | None
    ) -> tuple[list[int], list[Any]]:
        import dask

        count = self.bounds.size - 1
        given: Sequence[Any] = [()] * count if arguments is None else arguments
        wanted = [block for block in range(count) if given[block] is not None]
        everywhere = dask.delayed(shared)
        call = _named(_piece, name)
        tasks = [
            call(chunk, int(self.bounds[block]), self.parts(block), work, everywhere, given[block])
            for block, chunk in enumerate(self.chunks)
            if given[block] is not None
        ]
        return wanted, tasks


def rows_on_cluster(path: str, drop: str | None = None) -> DaskRows:
    """Return the features in a file that the workers of a cluster read; they must see the file."""
    return DaskRows(open_rows(path, drop))


def _results(tasks: list[Any]) -> Iterator[Any]:
    """Yield the results in order, freeing each on the cluster once it is here."""
    import dask

    client = _client()
    if client is None:
        yield from dask.compute(*tasks)
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # proposals are the graph
        futures = client.compute(tasks)
    try:
        for future in futures:
            yield future.result()
            future.release()
    finally:
        client.cancel(futures)


def _client() -> Any:
    """Return the client that Dask would use now, if any."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at `address`, or of a cluster started here ("local")."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError("a cluster needs Dask; pip install 'dmsgd[dask]'") from None
    if address == "local":
        with LocalCluster(dashboard_address=None) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"there is no Dask scheduler at {address} ({type(error).__name__}); give the address "
            f"that `dask scheduler` prints, or use --cluster local"
        ) from None
    with client:
        yield client


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the delayed function, whose tasks the dashboard shows as dmsgd-name."""
    import dask

    delayed = dask.delayed(function, pure=False)

    def call(*arguments: Any) -> Any:
        return delayed(*arguments, dask_key_name=f"dmsgd-{name}-{uuid4().hex}")

    return call


def _piece(
    chunk: Any, start: int, parts: Sequence[Any], work: Work, shared: Any, argument: Any
) -> Any:
    return work(prepared(chunk, start, parts), shared, argument)
