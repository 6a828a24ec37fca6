"""Drawing a schedule: in memory, or on disk so that it survives being killed."""

from __future__ import annotations

import hashlib
import io
import logging
import numbers
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import uuid4

import numpy as np

import dmsgd
from dmsgd.designs.design import ClosedForm, Design, refuse_too_many
from dmsgd.designs.source import FIXED_K
from dmsgd.errors import ClusterError
from dmsgd.features.connection import named_losses, refuse_lost, result
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.memory import memory_limit
from dmsgd.inputs.scalars import as_count
from dmsgd.inputs.seeding import Seed, key_of
from dmsgd.inputs.threads import thread_count
from dmsgd.schedules.disk import as_bytes, header, locked, write_bytes
from dmsgd.schedules.files import Files, Journal
from dmsgd.schedules.record import Record
from dmsgd.schedules.schedule import Schedule

log = logging.getLogger("dmsgd")

#: Draws are made in pieces of about this many seconds: progress shows, and Ctrl-C is heard.
PIECE_SECONDS = 0.25

#: And of at most so many numbers, or an 8th of the memory.
PIECE_NUMBERS = 2**20

#: Draws that a worker of a cluster makes at a time.
CLUSTER_DRAWS = 256

#: Such pieces that are under way: enough for many workers, and no more results than fit.
CLUSTER_AHEAD = 512

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
    overwrite: replace another schedule at `path`, or a damaged or unfinished one, which otherwise
               is refused. Files that are not part of a schedule are never replaced.

    A design without closed forms (SwapChain, PoissonDisk) is drawn and stored like any other; only
    `inclusion` of its schedule says that there is none.

    >>> schedule = presample(dmsgd.Uniform(100, 8), steps=20)
    >>> schedule.sample(2, start=18).shape
    (2, 8)
    """
    if not isinstance(design, Design):
        raise TypeError(f"presample needs {FIXED_K}, got {type(design).__name__}")
    steps, threads = as_count(steps, "steps"), thread_count(workers)
    if client is not None:
        refuse_lost(client)
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
    if schedule is not None:
        return schedule
    if not overwrite:
        _refuse_another_beginning(files, record)  # at once, rather than after waiting for it
    with _clear_errors(files), locked(files.part) as (file, alone):
        try:
            schedule = _finished(files, record, overwrite)  # by another process, meanwhile
            if schedule is None:
                _refuse(files, record, overwrite)
                _draw(file, files if alone else files.without_locks(), record, design, hands)
        except (ValueError, OSError):
            schedule = None if alone else _finished_without_locks(files, record)
            if schedule is None:
                raise
    return Schedule.load(path, check=not alone) if schedule is None else schedule


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
    return journal.record.seed if journal else None


def _finished(files: Files, record: Record, overwrite: bool) -> Schedule | None:
    """Return the schedule if it is there, None if it is to be drawn; refuse another one."""
    if not (files.batches.exists() and files.sidecar.exists()):
        return None
    try:
        difference = Schedule.load(files.batches, check=False).record.difference(record)
        if not difference:
            schedule = Schedule.load(files.batches)
            files.tidy()
            return schedule
    except (ValueError, FileNotFoundError) as error:
        if overwrite or not (files.batches.exists() and files.sidecar.exists()):
            return None
        raise ValueError(f"{error}; overwrite=True draws the schedule again") from None
    if overwrite:
        return None
    raise ValueError(
        f"{files.batches} is another schedule: {difference}; choose another path, or replace it "
        f"with overwrite=True"
    )


def _finished_without_locks(files: Files, record: Record) -> Schedule | None:
    """Return the schedule if another process is just finishing it, which looks like anything."""
    for _ in range(20):
        with suppress(ValueError, OSError):
            if schedule := _finished(files, record, overwrite=False):
                return schedule
        time.sleep(0.05)
    return None


def _refuse(files: Files, record: Record, overwrite: bool) -> None:
    """Raise if anything would be lost, or there is no room; asked under the lock."""
    files.refuse_strangers()
    journal = files.read_journal()
    if not overwrite:
        _refuse_another_beginning(files, record)
        for file in () if journal else (files.sidecar, files.part):
            if file.exists() and file.stat().st_size:
                raise ValueError(
                    f"{file} is not part of a finished schedule; choose another path, or replace "
                    f"it with overwrite=True"
                )
    files.refuse_full_disk(record.steps, record.k, record.n)


def _refuse_another_beginning(files: Files, record: Record) -> None:
    """Raise if the draws that were made here so far are not of this very schedule."""
    journal = files.read_journal()
    difference = journal.record.difference(record, versions=True) if journal else ""
    if difference:
        raise ValueError(
            f"{files.part} is the beginning of another schedule: {difference}; choose another "
            f"path, or drop it with overwrite=True"
        )


def _draw(file: io.FileIO, files: Files, record: Record, design: Design, hands: _Hands) -> None:
    """Complete `part`, the open file, and publish it."""
    journal = files.read_journal()
    publishing = journal is not None and journal.publishing
    complete = journal is not None and (journal.record, journal.done) == (record, record.steps)
    if journal and complete and files.published(record, journal.checksum):
        files.publish(record, journal.checksum, _inclusion(design))
        return
    head, width = header(record.steps, record.k), 8 * record.k
    done, digest = _drawn(file, journal, record)
    files.write_journal(record, done, digest.hexdigest(), publishing=publishing)
    if done == 0:  # nothing is cut off: without locks another process may be writing the same
        file.seek(0)
        write_bytes(file, head)
    file.seek(len(head) + done * width)
    saved = time.monotonic()
    for first, batches in _pieces(design, record, done, hands):
        content = as_bytes(batches)
        digest.update(content)
        write_bytes(file, content)
        if time.monotonic() - saved > SAVE_SECONDS:
            os.fsync(file.fileno())
            done = first + len(batches)
            files.write_journal(record, done, digest.hexdigest(), publishing=publishing)
            saved = time.monotonic()
    file.truncate(len(head) + record.steps * width)  # what was there may have been longer
    os.fsync(file.fileno())
    inclusion = _inclusion(design)  # last: draws from features in blocks find it on the way
    if os.name == "nt":
        file.close()  # Windows renames no open file
    files.publish(record, digest.hexdigest(), inclusion)


def _drawn(file: io.FileIO, journal: Journal | None, record: Record) -> tuple[int, Any]:
    """Return how many draws of this schedule `file` holds for certain, and their running hash."""
    head = header(record.steps, record.k)
    anew = hashlib.sha256(head)
    if journal is None or journal.record.difference(record, versions=True):
        return 0, anew
    rest = len(head) + journal.done * 8 * record.k
    there = os.fstat(file.fileno()).st_size
    if not (0 < journal.done <= record.steps and rest <= there and journal.checksum):
        return 0, anew
    digest = hashlib.sha256()
    file.seek(0)
    while rest and (piece := file.read(min(rest, 2**20))):
        digest.update(piece)
        rest -= len(piece)
    if digest.hexdigest() != journal.checksum:
        log.warning("the %d draws in %s were altered; drawing them again", journal.done, file.name)
        return 0, anew
    return journal.done, digest


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
        for piece in _by_threads(design, record, start, hands.workers):
            yield piece
            refuse_lost(hands.client)  # Dask would go on here, in one process


def _by_cluster(
    design: Design, record: Record, start: int, client: Any
) -> Iterator[tuple[int, IntArray]]:
    """Let the workers of a cluster draw; the design is sent to each of them once.

    It is sent as a task, which Dask does again where a worker is lost with it.
    """
    name = f"{record.fingerprint[:8]}-{record.seed}"
    with warnings.catch_warnings(), named_losses(client):
        warnings.filterwarnings("ignore", message="Sending large graph")
        there = client.submit(_same, design, key=f"dmsgd-design-{name}-{uuid4().hex}")
    starts, waiting = iter(range(start, record.steps, CLUSTER_DRAWS)), deque[tuple[int, Any]]()
    while True:
        if len(waiting) <= CLUSTER_AHEAD // 2:
            firsts = list(islice(starts, CLUSTER_AHEAD - len(waiting)))
            with named_losses(client):
                futures = client.map(
                    _draws_from, firsts, design=there, steps=record.steps, seed=record.seed,
                    key=f"dmsgd-draws-{name}", pure=False,
                ) if firsts else []  # fmt: skip
            waiting.extend(zip(firsts, futures, strict=True))
        if not waiting:
            return
        first, future = waiting.popleft()
        yield first, result(future, client)
        future.release()


def _same(design: Design) -> Design:
    return design


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
    except ClusterError as error:
        kept = f"; the draws so far are kept in {files.part}" if files.journal.exists() else ""
        raise ClusterError(f"{error}{kept}") from error
    except OSError as error:
        kept = f"; the draws so far are kept in {files.part}" if files.journal.exists() else ""
        raise OSError(
            error.errno,
            f"cannot write the schedule {files.batches}: {error.strerror or error}{kept}",
        ) from error
