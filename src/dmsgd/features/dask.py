"""Rows that a Dask cluster holds, or reads from a file: passes run where the blocks are.

Without a running cluster Dask's own scheduler in this process is used; `distributed.Client(...)`
before the call sends the work there. Tasks are named dmsgd-gram, dmsgd-norms, dmsgd-answer, ...
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, final
from uuid import uuid4

import numpy as np
from scipy import sparse

from dmsgd.features.cluster import cluster_errors, wait_for, wait_for_worker
from dmsgd.features.readers import FileReader, Reader, even_bounds
from dmsgd.features.sparse_gram import SparseGram
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.threads import thread_count


class DaskReader(Reader):
    """Rows whose blocks are Dask's."""

    kind = "distributed"

    @abstractmethod
    def chunks(self, bounds: IntArray, arguments: Sequence[Any]) -> list[Any]:
        """Return the blocks, delayed; those whose argument is None may be None."""

    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield the results in order; from a cluster, each as soon as it and those before are."""
        return results_of(self._tasks(bounds, piece, arguments, name))

    def _tasks(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> list[Any]:
        """Return a task for each block whose argument is not None; `piece` is sent once."""
        import dask

        everywhere, call = dask.delayed(piece), named(_call, name)
        chunks = zip(self.chunks(bounds, arguments), arguments, strict=True)
        return [call(everywhere, chunk, *given) for chunk, given in chunks if given is not None]

    def sparse_gram(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], width: int
    ) -> tuple[SparseGram, list[Any]]:
        """Return what `Reader.sparse_gram` does; on a cluster each thread has one total.

        Totals are large and rows are small: rows are sent to totals.
        """
        import dask

        client = current_client()
        if client is None:
            return super().sparse_gram(bounds, piece, arguments, width)
        tasks = self._tasks(bounds, piece, arguments, "gram")
        lanes = max(1, min(sum(client.nthreads().values()), len(tasks)))
        first, add, join = dask.delayed(width), named(_add_rows, "add"), named(_join, "add")
        totals = []
        for lane in np.array_split(np.arange(len(tasks)), lanes):
            total = None
            for number in lane.tolist():
                total = add(first, total, tasks[number])
            totals.append(total)
        while len(totals) > 1:
            pairs = [totals[at : at + 2] for at in range(0, len(totals), 2)]
            totals = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        hashes = named(_second, "hashes")
        *rest, total = results_of([*(hashes(task) for task in tasks), totals[0]])
        return total, rest


@final
class DaskArrayReader(DaskReader):
    """An (n, d) Dask array or frame in its own blocks of rows, cut up where they are too large."""

    def __init__(self, value: Any) -> None:
        _wait_for_cluster()
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
        edges, even = np.concatenate([[0], np.cumsum(sizes)]), even_bounds(self.n, width)
        if width == self.d or sizes.max() <= 4 * even[1]:  # the user's choice, if it is possible
            return edges
        return np.unique(np.append(edges, even))

    def chunks(self, bounds: IntArray, arguments: Sequence[Any]) -> list[Any]:
        """Return the blocks, delayed."""
        sizes = tuple(int(size) for size in np.diff(bounds))
        array = self.array if self.array.chunks[0] == sizes else self.array.rechunk({0: sizes})
        return list(array.to_delayed().ravel())


@final
class DelayedReader(DaskReader):
    """Delayed sparse matrices that follow each other, each of them a block as it is."""

    sparse_rows = True

    def __init__(self, parts: Sequence[Any], shapes: Sequence[tuple[int, int]] | None) -> None:
        _wait_for_cluster()
        if shapes is None:  # a pass of its own: the number of rows must be known first
            shape = named(_shape, "shape")
            shapes = list(results_of([shape(part) for part in parts]))
        widths = sorted({d for _, d in shapes})
        if len(widths) > 1:
            raise ValueError(
                f"the delayed matrices have {widths[0]} to {widths[-1]} columns; they are rows of "
                f"one matrix and need the same columns"
            )
        self.parts, self.d = list(parts), widths[0]
        self.edges = np.cumsum([0, *(n for n, _ in shapes)])
        self.n = int(self.edges[-1])
        if 0 in (self.n, self.d):
            raise ValueError(f"the delayed matrices are empty: shape {(self.n, self.d)}")

    def bounds(self, width: int) -> IntArray:
        """Return where the matrices begin and end."""
        return self.edges

    def chunks(self, bounds: IntArray, arguments: Sequence[Any]) -> list[Any]:
        """Return the matrices."""
        return self.parts


@final
class SharedFileReader(DaskReader):
    """A file that the workers of a cluster read, each its own blocks."""

    def __init__(self, reader: FileReader) -> None:
        self.reader, self.n, self.d = reader, reader.n, reader.d
        self.name, self.sparse_rows = reader.name, reader.sparse_rows

    def bounds(self, width: int) -> IntArray:
        """Return the bounds of the file's blocks."""
        return self.reader.bounds(width)

    def chunks(self, bounds: IntArray, arguments: Sequence[Any]) -> list[Any]:
        """Return the reading of each block, delayed."""
        import dask

        everywhere, read = dask.delayed(self.reader.read), named(_call, "read")
        ends = zip(bounds[:-1].tolist(), bounds[1:].tolist(), arguments, strict=True)
        return [
            None if given is None else read(everywhere, start, stop) for start, stop, given in ends
        ]

    def check_unchanged(self) -> None:
        """Raise if the file has changed."""
        self.reader.check_unchanged()


def dask_reader(value: Any) -> DaskReader:
    """Return the rows of a Dask array or frame, or of delayed sparse matrices, one or a list."""
    parts = value if isinstance(value, list | tuple) else [value]
    if all(type(part).__module__ == "dask.delayed" for part in parts):
        return DelayedReader(parts, None)
    if isinstance(value, list | tuple):
        raise TypeError("X is a list in which some are delayed and some are not; delay them all")
    if not sparse.issparse(getattr(value, "_meta", None)):
        return DaskArrayReader(value)
    if value.ndim != 2:
        raise ValueError(f"the Dask array must have two dimensions, got shape {value.shape}")
    stack = named(_stack_columns, "stack")
    parts = [row[0] if len(row) == 1 else stack(list(row)) for row in value.to_delayed()]
    sizes, d = value.chunks[0], value.shape[1]
    known = not np.isnan([*sizes, d]).any()
    return DelayedReader(parts, [(int(size), int(d)) for size in sizes] if known else None)


def _call(piece: Callable[..., Any], *arguments: Any) -> Any:
    return piece(*arguments)


def _add_rows(width: int, total: SparseGram | None, found: Any) -> SparseGram:
    """Return a total with more rows; a copy, because Dask may run a task twice."""
    return (SparseGram(width) if total is None else deepcopy(total)).add(found[0])


def _join(one: SparseGram, other: SparseGram) -> SparseGram:
    return one.plus(other)


def _second(found: Any) -> Any:
    return found[1]


def _stack_columns(parts: list[Any]) -> Any:
    return sparse.hstack(parts, format="csr")


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
            future.release()
    finally:
        for future in futures:
            future.release()  # unlike cancel it does not wait for a lost scheduler


def _wait_for_cluster() -> None:
    """Return once the cluster, if there is one, has a worker; Dask itself would wait for ever."""
    client = current_client()
    if client is not None:
        wait_for_worker(client)


def current_client() -> Any:
    """Return the client that Dask would use now, if it is connected.

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
