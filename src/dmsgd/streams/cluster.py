"""Rows of a Dask array or data frame: passes run where the blocks are.

Without a running cluster, Dask's own scheduler in this process is used; `distributed.Client(...)`
before the call sends the work there. Tasks are named dmsgd-gram, dmsgd-survey, dmsgd-answer, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np

from dmsgd.streams.rows import Rows, Work, prepared


@final
class DaskRows(Rows):
    """An (n, d) Dask array, or the columns of a Dask data frame, in its own blocks of rows."""

    def __init__(self, value: Any) -> None:
        array = value.to_dask_array(lengths=True) if hasattr(value, "to_dask_array") else value
        if array.ndim != 2:
            raise ValueError(f"the Dask array must have two dimensions, got shape {array.shape}")
        if any(np.isnan(size) for size in array.chunks[0]):
            array = array.compute_chunk_sizes()
        array = array.rechunk({1: -1})
        if 0 in array.shape:
            raise ValueError(f"the Dask array is empty: shape {array.shape}")
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.bounds = np.concatenate([[0], np.cumsum(array.chunks[0])]).astype(np.int64)

    def run(
        self, work: Work, name: str, shared: Any = None, arguments: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Yield the results in order, after all of them are there."""
        import dask

        wanted, tasks = self._tasks(work, name, shared, arguments)
        results = dict(zip(wanted, dask.compute(*tasks), strict=True))
        for block in range(self.bounds.size - 1):
            yield results.get(block)

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
            for block, chunk in enumerate(self.array.to_delayed().ravel())
            if given[block] is not None
        ]
        return wanted, tasks


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the delayed function whose tasks the dashboard shows as dmsgd-name."""
    import dask

    return dask.delayed(function, name=f"dmsgd-{name}", pure=False)  # type: ignore[no-any-return]


def _piece(
    chunk: Any, start: int, parts: Sequence[Any], work: Work, shared: Any, argument: Any
) -> Any:
    return work(prepared(chunk, start, parts), shared, argument)
