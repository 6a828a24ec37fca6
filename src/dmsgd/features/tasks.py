"""Tasks on Dask: how passes are sent to where rows are, and their results come back.

Without a running cluster, Dask's own scheduler in this process is used; `distributed.Client(...)`
before the call sends the work there. Tasks are named dmsgd-gram, dmsgd-squares, dmsgd-answer, ...
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any
from uuid import uuid4

import numpy as np

from dmsgd.features.connection import named_losses, result, wait_for_a_worker
from dmsgd.features.sparse_gram import SparseGram
from dmsgd.inputs.threads import thread_count


def wait_for_workers() -> None:
    """Return once the cluster has a worker, if there is one; Dask itself would wait for ever."""
    client = current_client()
    if client is not None:
        wait_for_a_worker(client)


def added_up(
    tasks: list[Any], begin: Callable[[], SparseGram], lanes: int
) -> tuple[SparseGram, list[Any]]:
    """Return the total of the rows that tasks return, and what else they return.

    Totals are large and rows are small: each lane has one total, to which rows come.
    """
    import dask

    first, add, join = dask.delayed(begin), named(_with_rows, "add"), named(_joined, "add")
    other = named(_other, "hashes")
    totals = []
    for lane in np.array_split(np.arange(len(tasks)), lanes):
        total = None
        for number in lane.tolist():
            total = add(first, total, tasks[number])
        totals.append(total)
    while len(totals) > 1:
        pairs = [totals[at : at + 2] for at in range(0, len(totals), 2)]
        totals = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    *rest, total = results_of([*(other(task) for task in tasks), totals[0]])
    return total, rest


def _with_rows(begin: Callable[[], SparseGram], total: SparseGram | None, found: Any) -> SparseGram:
    """Return a total with more rows; a copy, because Dask may do a task again."""
    return (begin() if total is None else deepcopy(total)).add(found[0])


def _joined(one: SparseGram, other: SparseGram) -> SparseGram:
    return one.plus(other)


def _other(found: Any) -> Any:
    return found[1]


def tasks_of(
    chunks: Sequence[Any], piece: Callable[..., Any], arguments: Sequence[Any], name: str
) -> list[Any]:
    """Return a task for each chunk whose argument is not None; `piece` is sent once."""
    import dask

    everywhere, call = dask.delayed(piece), named(called, name)
    return [
        call(everywhere, chunk, *given)
        for chunk, given in zip(chunks, arguments, strict=True)
        if given is not None
    ]


def called(piece: Callable[..., Any], *arguments: Any) -> Any:
    """Return piece(*arguments)."""
    return piece(*arguments)


def results_of(tasks: list[Any]) -> Iterator[Any]:
    """Yield the results in order, freeing each on the cluster once it is here."""
    import dask

    client = current_client()
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


def current_client() -> Any:
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


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the delayed function, whose tasks the dashboard shows as dmsgd-name."""
    import dask

    delayed = dask.delayed(function, pure=False)

    def call(*arguments: Any) -> Any:
        return delayed(*arguments, dask_key_name=f"dmsgd-{name}-{uuid4().hex}")

    return call
