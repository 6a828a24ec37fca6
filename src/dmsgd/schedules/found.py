"""What lies where a schedule is to go: that very schedule, a beginning of it, or something else."""

from __future__ import annotations

import time
from contextlib import suppress

from dmsgd.errors import InputError
from dmsgd.schedules.files import Files
from dmsgd.schedules.record import Record
from dmsgd.schedules.refusals import refuse_full_disk, refuse_strangers
from dmsgd.schedules.schedule import Schedule


def seed_found(files: Files) -> int | None:
    """Return the seed of the schedule that is there or was begun, None if there is neither."""
    if files.sidecar.exists() and files.batches.exists():
        return Schedule.load(files.batches, check=False).seed
    journal = files.read_journal()
    return journal.record.seed if journal else None


def finished(files: Files, record: Record, overwrite: bool) -> Schedule | None:
    """Return the schedule if it is there, None if it is to be drawn; refuse another one."""
    if not (files.batches.exists() and files.sidecar.exists()):
        return None
    try:
        for check in (False, True):  # a cheap look first, after which it may have been replaced
            schedule = Schedule.load(files.batches, check=check)
            difference = schedule.record.difference(record)
            if difference:
                break
        else:
            files.tidy()
            return schedule
    except (ValueError, FileNotFoundError) as error:
        if overwrite or not (files.batches.exists() and files.sidecar.exists()):
            return None
        raise InputError(f"{error}; draw it again to replace it", overwrite=True) from None
    if overwrite:
        return None
    raise InputError(
        f"{files.batches} is another schedule: {difference}; choose another path, or replace it",
        overwrite=True,
    )


def finished_without_locks(files: Files, record: Record) -> Schedule | None:
    """Return the schedule if another process is just finishing it, which looks like anything."""
    for _ in range(20):
        with suppress(ValueError, OSError):
            if schedule := finished(files, record, overwrite=False):
                return schedule
        time.sleep(0.05)
    return None


def refuse_loss(files: Files, record: Record, overwrite: bool) -> None:
    """Raise if anything would be lost, or there is no room; asked under the lock."""
    refuse_strangers(files)
    journal = files.read_journal()
    if not overwrite:
        refuse_another_beginning(files, record)
        for file in () if journal else (files.sidecar, files.part):
            if file.exists() and file.stat().st_size:
                raise InputError(
                    f"{file} is not part of a finished schedule; choose another path, or replace "
                    f"it",
                    overwrite=True,
                )
    refuse_full_disk(files, record.steps, record.k, record.n)


def refuse_another_beginning(files: Files, record: Record) -> None:
    """Raise if the draws that were made here so far are not of this very schedule."""
    journal = files.read_journal()
    difference = journal.record.difference(record, versions=True) if journal else ""
    if difference:
        raise InputError(
            f"{files.part} is the beginning of another schedule: {difference}; choose another "
            f"path, or replace it",
            overwrite=True,
        )
