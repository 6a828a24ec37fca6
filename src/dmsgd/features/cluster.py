"""Rows of a Dask array or data frame, or of a file that all workers see: passes run where they are.

Without a running cluster, Dask's own scheduler in this process is used; `distributed.Client(...)`
before the call sends the work there. Tasks are named dmsgd-gram, dmsgd-squares, dmsgd-answer, ...
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final
from uuid import uuid4

import numpy as np

from dmsgd.features.blocks import Store, even_bounds
from dmsgd.features.connection import named_losses, result, wait_for_a_worker
from dmsgd.features.files import FileStore
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.threads import thread_count


@final
class DaskStore(Store):
    """An (n, d) Dask array or frame in its own blocks of rows, cut up where they are too large."""

    kind = "distributed"

    def __init__(self, value: Any) -> None:
        client = _client()
        if client is not None:
            wait_for_a_worker(client)  # Dask itself would wait for ever
        array = value.to_dask_array(lengths=True) if hasattr(value, "to_dask_array") else value
        if array.ndim != 2:
            raise ValueError(f"the Dask array must have two dimensions, got shape {array.shape}")
        if any(np.isnan(size) for size in array.chunks[0]):
            array = array.compute_chunk_sizes()
        if 0 in array.shape:
            raise ValueError(f"the Dask array is empty: shape {array.shape}")
        self.array = array.rechunk({1: -1})
        self.n, self.d = (int(size) for size in array.shape)

    def bounds(self, width: int) -> IntArray:
        """Return the edges of chunks, and equal parts of those that are too large."""
        sizes = np.array(self.array.chunks[0], dtype=np.int64)
        most = max(1, int(even_bounds(self.n, width)[1]))
        if width == self.d or sizes.max() <= 4 * most:  # the user's choice, as long as it can be
            return np.concatenate([[0], np.cumsum(sizes)])
        edges = np.concatenate([[0], np.cumsum(sizes)])
        return np.unique(np.append(edges, even_bounds(self.n, width)))

    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield the results in order; from a cluster, each as soon as it and those before are."""
        sizes = tuple(int(size) for size in np.diff(bounds))
        array = self.array if self.array.chunks[0] == sizes else self.array.rechunk({0: sizes})
        return _results(_tasks(list(array.to_delayed().ravel()), piece, arguments, name))


@final
class SharedFileStore(Store):
    """A file that the workers of a cluster read, each its own blocks."""

    def __init__(self, files: FileStore) -> None:
        self.files, self.n, self.d = files, files.n, files.d
        self.kind = "distributed"

    def bounds(self, width: int) -> IntArray:
        """Return the bounds of the file's blocks."""
        return self.files.bounds(width)

    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield the results in order."""
        read = _named(self.files.read, "read")
        ends = zip(bounds[:-1].tolist(), bounds[1:].tolist(), arguments, strict=True)
        chunks = [None if given is None else read(start, stop) for start, stop, given in ends]
        return _results(_tasks(chunks, piece, arguments, name))

    def refuse_changed(self) -> None:
        """Raise if the file has changed."""
        self.files.refuse_changed()


def _tasks(
    chunks: Sequence[Any], piece: Callable[..., Any], arguments: Sequence[Any], name: str
) -> list[Any]:
    """Return a task for each chunk whose argument is not None; `piece` is sent once."""
    import dask

    everywhere, call = dask.delayed(piece), _named(_called, name)
    return [
        call(everywhere, chunk, *given)
        for chunk, given in zip(chunks, arguments, strict=True)
        if given is not None
    ]


def _called(piece: Callable[..., Any], *arguments: Any) -> Any:
    return piece(*arguments)


def _results(tasks: list[Any]) -> Iterator[Any]:
    """Yield the results in order, freeing each on the cluster once it is here."""
    import dask

    client = _client()
    if client is None:
        step = 2 * thread_count(-1)  # a few at a time, so that not all results are held at once
        for first in range(0, len(tasks), step):
            yield from dask.compute(*tasks[first : first + step], scheduler=_here())
        return
    with warnings.catch_warnings(), named_losses(client):
        warnings.filterwarnings("ignore", message="Sending large graph")  # proposals are the graph
        futures = client.compute(tasks)
    try:
        for future in futures:
            yield result(future, client)
            future.release()
    finally:
        for future in futures:
            future.release()  # unlike cancel it waits for no answer of a scheduler that is lost


def _here() -> str | None:
    """Return "threads" where a client that is gone is still asked for, else leave it to Dask."""
    import dask

    chosen = dask.config.get("scheduler", None)
    return "threads" if chosen in ("distributed", "dask.distributed") else None


def _client() -> Any:
    """Return the client that Dask would use now, if there is one and it is connected.

    One that never was, or is closed, would wait for results for ever.
    """
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        client = get_client()
    except ValueError:
        return None
    return client if client.status == "running" else None


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the delayed function, whose tasks the dashboard shows as dmsgd-name."""
    import dask

    delayed = dask.delayed(function, pure=False)

    def call(*arguments: Any) -> Any:
        return delayed(*arguments, dask_key_name=f"dmsgd-{name}-{uuid4().hex}")

    return call
