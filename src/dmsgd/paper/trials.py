"""Many independent runs of one function: seeds, methods, settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dmsgd.inputs.threads import thread_count
from dmsgd.paper.protocol import Progress

T = TypeVar("T")


def run_trials(
    function: Callable[..., T],
    jobs: Sequence[tuple[Any, ...]],
    progress: Progress | None = None,
    workers: int = 1,
) -> list[T]:
    """Return [function(*job) for job in jobs], each on one BLAS thread.

    `workers` processes share the jobs (then function and jobs must pickle), at most one a core,
    which -1 is too. The results do not depend on it: a job must bring its own seed.
    """
    from joblib import Parallel, delayed

    results: list[T] = []
    calls = (delayed(_on_one_thread)(function, job) for job in jobs)
    for result in Parallel(n_jobs=thread_count(workers), return_as="generator")(calls):
        results.append(result)
        if progress is not None:
            progress(len(results) / len(jobs))
    return results


def _on_one_thread(function: Callable[..., T], job: tuple[Any, ...]) -> T:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(*job)
