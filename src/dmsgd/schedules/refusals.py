"""What drawing a schedule must not replace, and whether there is room for it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dmsgd.inputs.messages import format_bytes
from dmsgd.schedules.disk import begins, header
from dmsgd.schedules.files import Files
from dmsgd.schedules.record import MARK, read_json

#: What the NumPy files of a schedule begin with: `part`, and b.
PART_MARK = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i8', 'fortran_order': False, 'shape': ("
INCLUSION_MARK = PART_MARK.replace(b"<i8", b"<f8")

#: The JSON files, the journal of a small schedule: room that is needed besides the arrays.
SMALL_FILES = 2**14


def refuse_strangers(files: Files) -> None:
    """Raise if anything that would be replaced is not recognisably part of a schedule.

    Asked in this order, no moment of another process that publishes looks like a stranger's:
    batches come while there is a journal, which goes only when there is a sidecar.
    """
    if files.batches.stem.endswith((".part", ".inclusion")):
        raise ValueError(
            f"{files.batches} is a name for parts of another schedule; choose another path"
        )
    for file in (files.part, *map(files.aside, (files.inclusion, files.sidecar, files.journal))):
        if file.is_symlink():
            raise ValueError(
                f"{file} is a link, and nothing is written through links; remove it, or choose "
                f"another path"
            )
    arrays = [file for file in (files.batches, files.inclusion) if os.path.lexists(file)]
    journal = files.read_journal()
    ours = {
        files.part: begins(files.part, PART_MARK) or journal is not None,
        files.journal: begins(files.journal, MARK),
        files.aside(files.inclusion): begins(files.aside(files.inclusion), INCLUSION_MARK),
        files.aside(files.sidecar): begins(files.aside(files.sidecar), MARK),
        files.aside(files.journal): begins(files.aside(files.journal), MARK),
        files.sidecar: begins(files.sidecar, MARK),
    }
    publishing = journal is not None and journal.publishing
    if files.batches in arrays:
        ours[files.batches] = publishing or files.sidecar.exists()
    if files.inclusion in arrays:
        ours[files.inclusion] = publishing or _has_inclusion(files)
    for file, known in ours.items():
        if not known or file.is_dir():
            raise ValueError(
                f"{file} is not part of a schedule, and would be lost; move it away, or choose "
                f"another path"
            )


def refuse_inputs(files: Files, inputs: Iterable[Path]) -> None:
    """Raise if a file that would be replaced is one of these, or lies in one of them."""
    for given in inputs:
        for file in (*files.all(), *files.batches.parents):
            with suppress(OSError):  # one of them is not there, or was renamed just now
                if file.samefile(given):
                    raise ValueError(
                        f"{given} is an input, and would be lost to the schedule {files.batches}; "
                        f"choose another path"
                    )


def _has_inclusion(files: Files) -> bool:
    """Return whether the sidecar says that there is a file of b, or cannot be asked."""
    try:
        return bool(read_json(files.sidecar)[1].get("inclusion_checksum"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return files.sidecar.exists()


def refuse_full_disk(files: Files, steps: int, k: int, n: int) -> None:
    """Raise if the disk has no room for so many batches, and b of n items."""
    needed = len(header(steps, k)) + 8 * (steps * k + n) + SMALL_FILES
    with suppress(FileNotFoundError):
        needed -= files.part.stat().st_size
    free = shutil.disk_usage(files.part.parent).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"{steps:,} batches of {k:,} need {format_bytes(needed)}, and {format_bytes(free)} are "
            f"free; ask for fewer steps, or write to another disk",
        )
