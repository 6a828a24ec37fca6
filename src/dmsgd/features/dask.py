"""Rows that a Dask cluster holds, or reads from a file: passes run where the blocks are.

Without a running cluster Dask's own scheduler in this process is used; `distributed.Client(...)`
before the call sends the work there. Tasks are named dmsgd-gram, dmsgd-norms, dmsgd-answer, ...
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial, reduce
from itertools import pairwise
from typing import Any, final
from uuid import uuid4

import numpy as np
from scipy import sparse

from dmsgd.features.blocks import Blocks, itself
from dmsgd.features.cluster import cluster_errors, wait_for, wait_for_worker
from dmsgd.features.readers import Reader, even_bounds
from dmsgd.features.rows import SparseGram
from dmsgd.inputs.arrays import FloatArray, IntArray, check_shape
from dmsgd.inputs.threads import thread_count


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
        if width not in (0, self.d):
            even = even_bounds(self.n, width)
            if np.diff(self.edges).max() > 4 * even[1]:
                return np.unique(np.append(self.edges, even))
        return np.unique(self.edges)

    def read(self, start: int, stop: int) -> Any:
        """Return these rows, which lie in one part, delayed."""
        number = int(np.searchsorted(self.edges, start, side="right")) - 1
        first, end = self.edges[number : number + 2].tolist()
        part = self.parts[number]
        return part if (first, end) == (start, stop) else part[start - first : stop - first]


@final
class DaskBlocks(Blocks):
    """Features in the blocks of a `DaskReader`; passes run where these are."""

    def _compute(self, piece: Callable[..., Any], tasks: Sequence[Any], name: str) -> Iterator[Any]:
        return results_of(self._delayed(piece, tasks, name))

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
        total = reduce(named(SparseGram.plus, "add"), totals)
        *hashes, found = results_of([*(part[1] for part in parts), total])
        self._compare(hashes)
        return np.asarray(found.matrix())


def shared_file(reader: Reader) -> DaskBlocks:
    """Return the features in a file that the workers of a cluster read, each its own blocks."""
    bounds = reader.bounds(0 if reader.sparse_rows else reader.d)
    read = named(reader.read, "read")
    parts = [read(start, stop) for start, stop in pairwise(bounds.tolist())]
    found = DaskReader(parts, np.diff(bounds).tolist(), reader.d, reader.sparse_rows)
    found.name, found.states = reader.name, reader.states
    return DaskBlocks(found)


def dask_features(value: Any) -> DaskBlocks:
    """Return the features in a Dask array or frame, or in delayed sparse matrices."""
    if (client := current_client()) is not None:
        wait_for_worker(client)  # Dask itself would wait for ever
    parts = list(value) if isinstance(value, list | tuple) else [value]
    if all(type(part).__module__ == "dask.delayed" for part in parts):
        shape = named(_shape, "shape")  # a pass of its own: the number of rows must be known first
        shapes = list(results_of([shape(part) for part in parts]))
        widths = sorted({d for _, d in shapes})
        if len(widths) > 1:
            raise ValueError(
                f"the delayed matrices have {widths[0]} to {widths[-1]} columns; they are rows of "
                f"one matrix and need the same columns"
            )
        return DaskBlocks(DaskReader(parts, [n for n, _ in shapes], widths[0], True))
    if isinstance(value, list | tuple):
        raise TypeError("X is a list in which some are delayed and some are not; delay them all")
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


def _add_rows(width: int, total: SparseGram | None, found: Any) -> SparseGram:
    """Return a total with more rows; a copy, because Dask may run a task twice."""
    return (SparseGram(width) if total is None else deepcopy(total)).add(found[0])


def _shape(part: Any) -> tuple[int, int]:
    """Return the size of a delayed matrix, or raise if it is none."""
    shape: Any = getattr(part, "shape", ())
    if len(shape) != 2:
        raise TypeError(
            f"a delayed part of X is a {type(part).__name__}, and must be an (n, d) sparse matrix"
        )
    return int(shape[0]), int(shape[1])


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the delayed function, whose tasks the dashboard shows as dmsgd-name."""
    import dask

    delayed = dask.delayed(function, pure=False)
    return lambda *given: delayed(*given, dask_key_name=f"dmsgd-{name}-{uuid4().hex}")


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
        futures = client.compute(tasks)
    try:
        for future in futures:
            yield wait_for(future, client)
    finally:
        for future in futures:
            future.release()  # unlike cancel it does not wait for a lost scheduler


def current_client() -> Any:
    """Return the client that Dask would use now, if it is connected.

    One that never was, or is closed, would wait for results for ever.
    """
    try:
        from distributed import get_client

        client = get_client()
    except (ImportError, ValueError):
        return None
    return client if client.status == "running" else None
