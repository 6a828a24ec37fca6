"""Rows that Dask has, or of a file that all workers see: passes run where they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np
from scipy import sparse

from dmsgd.features.readers import FileStore
from dmsgd.features.sparse_gram import SparseGram
from dmsgd.features.store import Store, even_bounds
from dmsgd.features.tasks import (
    added_up,
    called,
    current_client,
    named,
    results_of,
    tasks_of,
    wait_for_workers,
)
from dmsgd.inputs.arrays import IntArray


class _Distributed(Store):
    """Rows of which Dask has the blocks."""

    kind = "distributed"

    @abstractmethod
    def chunks(self, bounds: IntArray, arguments: Sequence[Any]) -> list[Any]:
        """Return the blocks, delayed; those whose argument is None may be None."""

    def compute(
        self, bounds: IntArray, piece: Callable[..., Any], arguments: Sequence[Any], name: str
    ) -> Iterator[Any]:
        """Yield the results in order; from a cluster, each as soon as it and those before are."""
        return results_of(tasks_of(self.chunks(bounds, arguments), piece, arguments, name))

    def total(
        self,
        bounds: IntArray,
        piece: Callable[..., Any],
        arguments: Sequence[Any],
        begin: Callable[[], SparseGram],
        name: str,
    ) -> tuple[SparseGram, list[Any]]:
        """Return the total; on a cluster each thread adds blocks to one, and these are added."""
        client = current_client()
        if client is None:
            return super().total(bounds, piece, arguments, begin, name)
        tasks = tasks_of(self.chunks(bounds, arguments), piece, arguments, name)
        threads = sum(client.nthreads().values())
        return added_up(tasks, begin, max(1, min(threads, len(tasks))))


@final
class DaskStore(_Distributed):
    """An (n, d) Dask array or frame in its own blocks of rows, cut up where they are too large."""

    def __init__(self, value: Any) -> None:
        wait_for_workers()
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

    def chunks(self, bounds: IntArray, arguments: Sequence[Any]) -> list[Any]:
        """Return the blocks, delayed."""
        sizes = tuple(int(size) for size in np.diff(bounds))
        array = self.array if self.array.chunks[0] == sizes else self.array.rechunk({0: sizes})
        return list(array.to_delayed().ravel())


@final
class SparseDaskStore(_Distributed):
    """Sparse matrices that follow each other, delayed, each of them a block as it is."""

    sparse_rows = True

    def __init__(self, parts: Sequence[Any], shapes: Sequence[tuple[int, int]] | None) -> None:
        wait_for_workers()
        if shapes is None:  # a pass of its own: how many rows there are must be known first
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


def dask_store(value: Any) -> Store:
    """Return the rows of a Dask array or frame, or of delayed sparse matrices, one or a list."""
    parts = value if isinstance(value, list | tuple) else [value]
    if all(type(part).__module__ == "dask.delayed" for part in parts):
        return SparseDaskStore(parts, None)
    if isinstance(value, list | tuple):
        raise TypeError("X is a list in which some are delayed and some are not; delay them all")
    if not sparse.issparse(getattr(value, "_meta", None)):
        return DaskStore(value)
    if value.ndim != 2:
        raise ValueError(f"the Dask array must have two dimensions, got shape {value.shape}")
    rows = value.to_delayed()
    beside = named(_beside, "beside")
    parts = [row[0] if len(row) == 1 else beside(list(row)) for row in rows]
    sizes, d = value.chunks[0], value.shape[1]
    known = not np.isnan([*sizes, d]).any()
    return SparseDaskStore(parts, [(int(size), int(d)) for size in sizes] if known else None)


def _shape(part: Any) -> tuple[int, int]:
    """Return the size of a delayed matrix, or refuse what is none."""
    shape: Any = getattr(part, "shape", ())
    if len(shape) != 2:
        raise TypeError(
            f"a delayed part of X is a {type(part).__name__}, and must be an (n, d) sparse matrix"
        )
    return int(shape[0]), int(shape[1])


def _beside(parts: list[Any]) -> Any:
    return sparse.hstack(parts, format="csr")


@final
class SharedFileStore(_Distributed):
    """A file that the workers of a cluster read, each its own blocks."""

    def __init__(self, files: FileStore) -> None:
        self.files, self.n, self.d = files, files.n, files.d
        self.file, self.sparse_rows = files.file, files.sparse_rows

    def bounds(self, width: int) -> IntArray:
        """Return the bounds of the file's blocks."""
        return self.files.bounds(width)

    def chunks(self, bounds: IntArray, arguments: Sequence[Any]) -> list[Any]:
        """Return what reads the blocks."""
        import dask

        everywhere, read = dask.delayed(self.files.read), named(called, "read")
        ends = zip(bounds[:-1].tolist(), bounds[1:].tolist(), arguments, strict=True)
        return [
            None if given is None else read(everywhere, start, stop) for start, stop, given in ends
        ]

    def refuse_changed(self) -> None:
        """Raise if the file has changed."""
        self.files.refuse_changed()
