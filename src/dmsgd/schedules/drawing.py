"""Drawing a schedule: in memory, or on disk so that it survives being killed."""

from __future__ import annotations

import io
import numbers
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import dmsgd
from dmsgd.designs.design import ClosedForm, Design, refuse_too_many
from dmsgd.designs.source import FIXED_K
from dmsgd.inputs.arrays import FloatArray, IntArray, as_count
from dmsgd.inputs.memory import memory_limit
from dmsgd.inputs.seeding import Seed, key_of
from dmsgd.inputs.threads import thread_count
from dmsgd.schedules.files import Files, header, locked, write_bytes, write_rows
from dmsgd.schedules.record import Record
from dmsgd.schedules.schedule import Schedule

#: Draws are made in pieces of about this many seconds: progress shows, and Ctrl-C is heard.
PIECE_SECONDS = 0.25

#: And of at most so many numbers, or an 8th of the memory.
PIECE_NUMBERS = 2**20

#: Draws that a worker of a cluster makes at a time.
CLUSTER_DRAWS = 256

#: At most about this many seconds of work are lost when the process is killed.
SAVE_SECONDS = 1.0


def presample(
    design: Design,
    steps: int,
    seed: Seed = 0,
    path: str | os.PathLike[str] | None = None,
    workers: int = 1,
    progress: bool = False,
    *,
    overwrite: bool = False,
    client: Any = None,
) -> Schedule:
    """Return the schedule of draws 0..steps of `design`, in memory or at `path`.

    seed:      an int is kept; of anything else an int is made, which is the schedule's seed.
    path:      where it is stored, with or without .npy (see `dmsgd.schedules.files`). If the same
               schedule is there, it is returned; if a part of it is there, because a process was
               killed, that is completed to the same bytes. While another process is at it, this
               one waits. With seed=None whatever seed is found there is the same.
    workers:   threads, -1 for all cores; they do not change the draws.
    client:    a dask.distributed Client: the draws are made on its cluster, and are the same.
    overwrite: replace what else is at `path`, which otherwise is refused.

    A design without closed forms (SwapChain, PoissonDisk) is drawn and stored like any other; only
    `inclusion` of its schedule says that there is none.

    >>> schedule = presample(dmsgd.Uniform(100, 8), steps=20)
    >>> schedule.sample(2, start=18).shape
    (2, 8)
    """
    if not isinstance(design, Design):
        raise TypeError(f"presample needs {FIXED_K}, got {type(design).__name__}")
    steps, threads = as_count(steps, "steps"), thread_count(workers)
    hands = _Hands(threads, progress, client)
    if path is None:
        refuse_too_many(steps, design.k)
        record, batches = _record(design, steps, seed), np.empty((steps, design.k), np.int64)
        for first, rows in _pieces(design, record, 0, hands):
            batches[first : first + len(rows)] = rows
        return Schedule(batches, _inclusion(design), record)
    files = Files.at(path)
    if seed is None and not overwrite:
        seed = _seed_found(files)
    record = _record(design, steps, seed)
    schedule = _finished(files, record, overwrite)
    if schedule is None:
        with _clear_errors(files), locked(files.part) as file:
            schedule = _finished(files, record, overwrite)  # by another process, meanwhile
            if schedule is None:
                _draw(file, files, record, design, hands)
    return Schedule.load(path, check=False) if schedule is None else schedule


@dataclass(frozen=True)
class _Hands:
    """Who draws, and whether it is shown: threads here, or the workers of a cluster."""

    workers: int
    progress: bool
    client: Any


def _record(design: Design, steps: int, seed: Seed) -> Record:
    key = key_of(seed)  # refuses what is no seed
    return Record(
        steps=steps,
        k=design.k,
        n=design.n,
        seed=int(seed) if isinstance(seed, numbers.Integral) else key,
        fingerprint=design.fingerprint(),
        dmsgd=dmsgd.__version__,
        **design.provenance(),
    )


def _inclusion(design: Design) -> FloatArray | None:
    """Return b, or None for a design whose inclusion probabilities have no closed form."""
    return design.inclusion() if isinstance(design, ClosedForm) else None


def _seed_found(files: Files) -> int | None:
    if files.sidecar.exists() and files.batches.exists():
        return Schedule.load(files.batches, check=False).seed
    journal = files.read_journal()
    return journal[0].seed if journal else None


def _finished(files: Files, record: Record, overwrite: bool) -> Schedule | None:
    """Return the schedule if it is there, None if it is to be drawn; refuse anything else."""
    if not (files.batches.exists() and files.sidecar.exists()):
        if not overwrite:
            _refuse_strangers(files, record)
        return None
    try:
        schedule = Schedule.load(files.batches)
    except ValueError as error:
        if overwrite:
            return None
        raise ValueError(f"{error}; overwrite=True draws the schedule again") from None
    difference = schedule.record.difference(record)
    if not difference:
        files.tidy()
        return schedule
    if overwrite:
        return None
    raise ValueError(
        f"{files.batches} is another schedule: {difference}; choose another path, or replace it "
        f"with overwrite=True"
    )


def _refuse_strangers(files: Files, record: Record) -> None:
    """Raise unless what is there was left by a process that was drawing this very schedule."""
    journal = files.read_journal()
    if journal:
        difference = journal[0].difference(record, versions=True)
        if difference:
            raise ValueError(
                f"{files.part} is the beginning of another schedule: {difference}; choose another "
                f"path, or drop it with overwrite=True"
            )
        strangers = [files.batches]
    else:
        strangers = [files.batches, files.inclusion, files.sidecar]
        if files.part.exists() and files.part.stat().st_size:
            strangers.append(files.part)
    found = [file for file in strangers if file.exists()]
    just_finished = files.batches.exists() and files.sidecar.exists()
    if found and not just_finished:
        raise ValueError(
            f"{found[0]} is not part of a finished schedule; choose another path, or replace it "
            f"with overwrite=True"
        )


def _draw(file: io.FileIO, files: Files, record: Record, design: Design, hands: _Hands) -> None:
    """Complete `part`, the open file, and publish it."""
    head, width = header(record.steps, record.k), 8 * record.k
    done = _drawn(file, files, record, len(head))
    files.write_journal(record, done)
    if done == 0:
        file.truncate(0)
        write_bytes(file, head)
    file.seek(len(head) + done * width)
    saved = time.monotonic()
    for first, batches in _pieces(design, record, done, hands):
        write_rows(file, batches)
        if time.monotonic() - saved > SAVE_SECONDS:
            os.fsync(file.fileno())
            files.write_journal(record, first + len(batches))
            saved = time.monotonic()
    os.fsync(file.fileno())
    inclusion = _inclusion(design)  # last: draws from features in blocks find it on the way
    if os.name == "nt":
        file.close()  # Windows renames no open file
    files.publish(record, inclusion)


def _drawn(file: io.FileIO, files: Files, record: Record, head: int) -> int:
    """Return how many draws of this schedule `file` already holds."""
    journal = files.read_journal()
    if journal is None or journal[0].difference(record, versions=True):
        return 0
    done = journal[1]
    long_enough = os.fstat(file.fileno()).st_size >= head + done * 8 * record.k
    return done if 0 <= done <= record.steps and long_enough else 0


def _pieces(
    design: Design, record: Record, start: int, hands: _Hands
) -> Iterator[tuple[int, IntArray]]:
    """Yield (t, draws t, t+1, ...) from `start` to the end."""
    with _bar(record.steps, start, hands.progress) as advance:
        for first, batches in _drawn_by(design, record, start, hands):
            yield first, batches
            advance(len(batches))


def _drawn_by(
    design: Design, record: Record, start: int, hands: _Hands
) -> Iterator[tuple[int, IntArray]]:
    if hands.client is None:
        return _by_threads(design, record, start, hands.workers)
    if design.at_once is None:
        return _by_cluster(design, record, start, hands.client)
    return _with_cluster(design, record, start, hands)


def _by_threads(
    design: Design, record: Record, start: int, workers: int
) -> Iterator[tuple[int, IntArray]]:
    """Draw here, in pieces that take about PIECE_SECONDS, or as large as the design asks for."""
    most = max(1, min(PIECE_NUMBERS, memory_limit() // 64) // record.k)
    size = design.at_once or min(16 * workers, most)
    while start < record.steps:
        began = time.monotonic()
        size = min(size, record.steps - start)
        yield start, design.sample(size, record.seed, start=start, workers=workers)
        start += size
        if design.at_once is None and time.monotonic() - began < PIECE_SECONDS / 2:
            size = min(2 * size, most)


def _with_cluster(
    design: Design, record: Record, start: int, hands: _Hands
) -> Iterator[tuple[int, IntArray]]:
    """Draw here from data on the cluster, which finds the items of every draw."""
    with hands.client.as_current():
        yield from _by_threads(design, record, start, hands.workers)


def _by_cluster(
    design: Design, record: Record, start: int, client: Any
) -> Iterator[tuple[int, IntArray]]:
    """Let the workers of a cluster draw; the design is sent to each of them once."""
    there = client.scatter(design, broadcast=True)
    starts = list(range(start, record.steps, CLUSTER_DRAWS))
    futures = client.map(
        _draws_from, starts, design=there, steps=record.steps, seed=record.seed,
        key=f"dmsgd-draws-{record.fingerprint[:8]}-{record.seed}", pure=False,
    )  # fmt: skip
    for first, future in zip(starts, futures, strict=True):
        yield first, future.result()
        future.release()


def _draws_from(first: int, design: Design, steps: int, seed: int) -> IntArray:
    return design.sample(min(CLUSTER_DRAWS, steps - first), seed, start=first)


@contextmanager
def _bar(total: int, done: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield the function that moves the progress bar on."""
    if not shown:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("draws", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda count: bar.advance(task, count)


@contextmanager
def _clear_errors(files: Files) -> Iterator[None]:
    """Say what could not be written, and that nothing drawn is lost."""
    try:
        yield
    except OSError as error:
        kept = f"; the draws so far are kept in {files.part}" if files.journal.exists() else ""
        raise OSError(
            error.errno,
            f"cannot write the schedule {files.batches}: {error.strerror or error}{kept}",
        ) from error
