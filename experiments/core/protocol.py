"""What an experiment is, and how it runs: a rate for each arm from other seeds, then all seeds."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

import dmsgd
from experiments.core.journal import Found, Job, Journal

if TYPE_CHECKING:
    import polars as pl

    from experiments.core.table import Row

#: Seeds from here on choose rates and are never reported.
TUNING = 10**6


@dataclass(frozen=True)
class Case:
    """Arms that differ only in their batches, compared seed by seed on the same task.

    name:      the experiment, or "experiment/case".
    task:      seed -> data and start, the same for all arms. Cache what no seed changes.
    arms:      name -> (task, seed) -> design.
    run:       (task, design, seed, rate) -> (step, measure, value), while it trains.
    seeds:     how many are reported: `first`, `first` + 1, ...
    rates:     each arm gets its own best one, by the mean over all steps of the measure
               `chosen_by` on `tuning_seeds` other seeds.
    """

    name: str
    task: Callable[[int], Any]
    arms: dict[str, Callable[[Any, int], Any]]
    run: Callable[[Any, Any, int, float], Iterator[tuple[int, str, float]]]
    seeds: int
    rates: tuple[float, ...] = (1.0,)
    chosen_by: str = "validation accuracy"
    tuning_seeds: int = 3
    first: int = 0


def training(n: int | None, k: int, arms: dict[str, Callable[[Any, int], Any]]) -> dict[str, Any]:
    """Return the arms of a training: independent uniform batches and shuffled epochs come first.

    n: items; None where tasks differ in it, and have their labels as `y`.
    """

    def uniform(task: Any, seed: int) -> dmsgd.Uniform:
        return dmsgd.Uniform(len(task.y) if n is None else n, k)

    def shuffled(task: Any, seed: int) -> dmsgd.Partition:
        return dmsgd.Partition(uniform(task, seed))

    return {"uniform": uniform, "shuffled": shuffled, **arms}


def results(
    cases: Sequence[Case],
    workers: int = 1,
    journal: Journal | None = None,
    progress: Callable[[float], None] = lambda done: None,
) -> pl.DataFrame:
    """Return the table of all cases. An arm's rate is a row with the measure "rate".

    journal:  keeps what is done, so that an interrupted run goes on.
    progress: is called with the share of the jobs that are done.
    """
    from experiments.core.table import as_table

    journal = Journal(None, "") if journal is None else journal
    tuned = {case.name: case for case in cases if len(case.rates) > 1}
    trials = [
        Job(case.name, arm, TUNING + seed, rate)
        for case in tuned.values()
        for arm in case.arms
        for rate in case.rates
        for seed in range(case.tuning_seeds)
    ]
    count = len(trials) + sum(len(case.arms) * case.seeds for case in cases)
    by_name = {case.name: case for case in cases}

    def told(done: int) -> None:
        progress(done / count)

    _spread(by_name, trials, workers, journal, told)
    rates = {case.name: best_rates(case, journal) for case in cases}
    jobs = [
        Job(case.name, arm, seed, rates[case.name][arm])
        for case in cases
        for arm in case.arms
        for seed in range(case.first, case.first + case.seeds)
    ]
    _spread(by_name, jobs, workers, journal, lambda done: told(len(trials) + done))
    rows: list[Row] = [
        (name, arm, 0, 0, "rate", rate) for name in tuned for arm, rate in rates[name].items()
    ]
    for job in jobs:
        rows += [(job.case, job.arm, job.seed, *row) for row in journal[job]]
    return as_table(rows)


def fill(
    cases: Sequence[Case], workers: int, journal: Journal, seconds: float, only: str = ""
) -> tuple[int, int]:
    """Run what the journal does not have, seed by seed, and begin nothing after so many seconds.

    only: a pattern of "case: arm". Returns how many of its jobs are done, and how many there are.
    For cases with one rate.
    """
    jobs = [
        Job(case.name, arm, seed, case.rates[0])
        for case in cases
        for arm in case.arms
        if re.search(only, f"{case.name}: {arm}")
        for seed in range(case.first, case.first + case.seeds)
    ]
    jobs.sort(key=lambda job: job.seed)
    _spread({case.name: case for case in cases}, jobs, workers, journal, lambda done: None, seconds)
    return sum(job in journal for job in jobs), len(jobs)


def best_rates(case: Case, journal: Journal) -> dict[str, float]:
    """Return the best rate of each arm by the trials in the journal.

    A rate is judged half by its own score and half by those of its two neighbours on the grid, so
    that luck on few seeds does not choose it. At an end the score itself stands for the neighbour
    that is missing. A rate that diverges counts as the worst that did not.
    """
    if len(case.rates) == 1:
        return dict.fromkeys(case.arms, case.rates[0])
    found = {}
    for arm in case.arms:
        scores = [_score(case, arm, rate, journal) for rate in case.rates]
        finite = np.where(np.isfinite(scores), scores, np.nan)
        padded = np.pad(np.nan_to_num(finite, nan=np.nanmin(finite)), 1, mode="edge")
        found[arm] = case.rates[int((padded[:-2] + 2 * padded[1:-1] + padded[2:]).argmax())]
    return found


def at_the_edge(case: Case, table: pl.DataFrame) -> list[str]:
    """Return the arms whose best rate is the smallest or largest of the grid."""
    rates = table.filter(experiment=case.name, measure="rate")
    ends = (min(case.rates), max(case.rates))
    return [arm for arm, rate in rates.select("arm", "value").iter_rows() if rate in ends]


def _score(case: Case, arm: str, rate: float, journal: Journal) -> float:
    """Return how good a rate is: the mean of the measure over steps and seeds."""
    jobs = [Job(case.name, arm, TUNING + seed, rate) for seed in range(case.tuning_seeds)]
    values = [[row[2] for row in journal[job] if row[1] == case.chosen_by] for job in jobs]
    with np.errstate(all="ignore"):
        return float(np.mean(values, axis=1).mean())


def _spread(
    cases: dict[str, Case],
    jobs: list[Job],
    workers: int,
    journal: Journal,
    told: Callable[[int], None],
    seconds: float = np.inf,
) -> None:
    """Run the jobs that the journal does not have; after so many seconds none is begun."""
    left = [job for job in jobs if job not in journal]
    last = time.monotonic() + seconds
    some = (job for job in left if time.monotonic() < last)
    calls = (delayed(_run)(cases[job.case], job) for job in some)
    done = len(jobs) - len(left)
    told(done)
    # In order, so that the journal does not depend on the number of workers.
    found = Parallel(n_jobs=workers, return_as="generator")(calls)
    for job, rows in zip(left, found, strict=not np.isfinite(seconds)):
        journal.add(job, rows)
        done += 1
        told(done)


def _run(case: Case, job: Job) -> Found:
    """Return the rows of a job."""
    with _libraries(len(sys.modules)).limit(limits=1):
        task = case.task(job.seed)
        rows = case.run(task, case.arms[job.arm](task, job.seed), job.seed, job.rate)
        return [(int(step), measure, float(value)) for step, measure, value in rows]


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Return the libraries with threads; looked for again, 25 ms, when more modules are loaded."""
    return ThreadpoolController()
