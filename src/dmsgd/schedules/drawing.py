"""Drawing a schedule: in memory, or on disk so that it survives being killed."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import dmsgd
from dmsgd.designs.design import Design, refuse_too_many
from dmsgd.designs.stream import FIXED_K
from dmsgd.errors import ClusterError
from dmsgd.features.connection import refuse_lost
from dmsgd.inputs.scalars import Seed, as_count, as_flag, seed_key
from dmsgd.inputs.threads import thread_count
from dmsgd.schedules.completing import complete, inclusion_of
from dmsgd.schedules.disk import locked
from dmsgd.schedules.files import Files
from dmsgd.schedules.found import (
    finished,
    finished_without_locks,
    refuse_another_beginning,
    refuse_loss,
    seed_found,
)
from dmsgd.schedules.pieces import Hands, pieces
from dmsgd.schedules.record import Record
from dmsgd.schedules.schedule import Schedule


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
    progress:  show a progress bar.
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
    progress, overwrite = as_flag(progress, "progress"), as_flag(overwrite, "overwrite")
    if client is not None:
        refuse_lost(client)
    hands = Hands(threads, progress, client)
    if path is None:
        return _in_memory(design, steps, seed, hands)
    return _on_disk(design, steps, seed, hands, Files.at(path), overwrite)


def _in_memory(design: Design, steps: int, seed: Seed, hands: Hands) -> Schedule:
    refuse_too_many(steps, design.k)
    record, batches = _record(design, steps, seed), np.empty((steps, design.k), np.int64)
    for first, rows in pieces(design, record, 0, hands):
        batches[first : first + len(rows)] = rows
    return Schedule(batches, inclusion_of(design), record)


def _on_disk(
    design: Design, steps: int, seed: Seed, hands: Hands, files: Files, overwrite: bool
) -> Schedule:
    files.refuse_impossible()
    if seed is None and not overwrite:
        seed = seed_found(files)
    record = _record(design, steps, seed)
    schedule = finished(files, record, overwrite)
    if schedule is not None:
        return schedule
    if not overwrite:
        refuse_another_beginning(files, record)  # at once, rather than after waiting for it
    with _clear_errors(files), locked(files.part, files.batches) as (file, alone):
        try:
            schedule = finished(files, record, overwrite)  # by another process, meanwhile
            if schedule is None:
                refuse_loss(files, record, overwrite)
                complete(file, files if alone else files.without_locks(), record, design, hands)
                schedule = Schedule.load(files.batches, check=not alone)  # still under the lock
        except (ValueError, OSError):
            schedule = None if alone else finished_without_locks(files, record)
            if schedule is None:
                raise
    return schedule


def _record(design: Design, steps: int, seed: Seed) -> Record:
    key = seed_key(seed)  # refuses what is no seed
    return Record(
        steps=steps,
        k=design.k,
        n=design.n,
        seed=int(seed) if isinstance(seed, numbers.Integral) else key,
        fingerprint=design.fingerprint(),
        dmsgd=dmsgd.__version__,
        **design.provenance(),
    )


@contextmanager
def _clear_errors(files: Files) -> Iterator[None]:
    """Say what could not be written, and that nothing drawn is lost."""
    try:
        yield
    except OSError as error:
        kept = f"; the draws so far are kept in {files.part}" if files.journal.exists() else ""
        if isinstance(error, ClusterError):
            raise ClusterError(f"{error}{kept}") from error
        raise OSError(
            error.errno,
            f"cannot write the schedule {files.batches}: {error.strerror or error}{kept}",
        ) from error
