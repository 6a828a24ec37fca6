"""Writing the draws that a schedule still lacks, so that a kill at any moment loses little."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import time
from pathlib import Path
from typing import Any

from dmsgd.designs.design import ClosedForm, Design
from dmsgd.designs.partition import Partition
from dmsgd.inputs.arrays import FloatArray
from dmsgd.schedules.disk import as_bytes, header, write_bytes
from dmsgd.schedules.files import Files, Journal
from dmsgd.schedules.pieces import Hands, pieces
from dmsgd.schedules.record import Record

log = logging.getLogger("dmsgd")

#: At most about this many seconds of work are lost when the process is killed.
SAVE_SECONDS = 1.0


def complete(file: io.FileIO, files: Files, record: Record, design: Design, hands: Hands) -> None:
    """Complete `part`, the open file, and publish it."""
    journal = files.read_journal()
    publishing = journal is not None and journal.publishing
    complete = journal is not None and (journal.record, journal.done) == (record, record.steps)
    if journal and complete and files.published(record, journal.checksum):
        files.publish(record, journal.checksum, inclusion_of(design))
        return
    head, width = header(record.steps, record.k), 8 * record.k
    done, digest = _drawn(file, files.part, journal, record)
    files.write_journal(record, done, digest.hexdigest(), publishing=publishing)
    if done == 0:  # nothing is cut off: without locks another process may be writing the same
        file.seek(0)
        write_bytes(file, head)
    file.seek(len(head) + done * width)
    saved = time.monotonic()
    for first, batches in pieces(design, record, done, hands):
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
    inclusion = inclusion_of(design)  # last: draws from features in blocks find it on the way
    if os.name == "nt":
        file.close()  # Windows renames no open file
    files.publish(record, digest.hexdigest(), inclusion)


def _drawn(file: io.FileIO, part: Path, journal: Journal | None, record: Record) -> tuple[int, Any]:
    """Return how many draws of this schedule `part` holds for certain, and their running hash.

    file: `part`, which is open.
    """
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
        log.warning("the %d draws in %s were altered; drawing them again", journal.done, part)
        return 0, anew
    return journal.done, digest


def inclusion_of(design: Design) -> FloatArray | None:
    """Return b, or None for a design whose inclusion probabilities have no closed form."""
    return design.inclusion() if isinstance(design, ClosedForm | Partition) else None
