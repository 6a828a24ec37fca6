"""Schedules: batches drawn once, in memory or on disk, and used like a design any number of times.

`presample` draws them, `Schedule.load` finds them again; `dmsgd.schedules.files` has the files.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np

import dmsgd
from dmsgd.designs.contract import COUNT, Design, check_range
from dmsgd.designs.stream import FIXED_K, Stream
from dmsgd.errors import ClusterError, InputError
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.scalars import Seed, as_count, as_flag, seed_key
from dmsgd.runtime.memory import memory_limit
from dmsgd.runtime.progress import progress_bar
from dmsgd.runtime.threads import thread_count
from dmsgd.schedules.files import HEADER, Record, ScheduleFiles, read_record, sha256_of_open

#: Draws are made in chunks of about this many seconds, so that progress shows and Ctrl-C is heard,
CHUNK_SECONDS = 0.25
#: and of at most this many numbers, or an 8th of the memory.
CHUNK_NUMBERS = 2**20
#: Times that `load` waits 10 ms for another process that publishes the schedule; how many times one
#: counts if it cannot be told whether there is such a process.
PATIENCE, UNTOLD = 1000, 20


@final
class Schedule:
    """A (steps, k) array of batches with provenance and, if known, inclusion probabilities.

    Use it wherever a design is taken: `n`, `k`, `sample`, `stream` and `inclusion` are a design's.
    See also `presample` and `Schedule.load`, which make it.

    batches: (steps, k) int64, read-only; mapped from the disk if it lies there.
    seed:    the int for which design.sample(steps, seed) gives these batches.
    record:  size and provenance.
    path, checksum: the .npy file and its sha256; None and "" in memory.

    >>> import dmsgd
    >>> schedule = dmsgd.presample(dmsgd.Uniform(9, 3), steps=5)
    >>> len(schedule), schedule.batches.shape
    (5, (5, 3))
    """

    #: Number of batches that `sample` makes for the price of one.
    chunk = 1

    def __init__(
        self,
        batches: IntArray,
        inclusion: FloatArray | None,
        record: Record,
        path: Path | None = None,
    ) -> None:
        self.batches = batches.view()
        self.batches.flags.writeable = False
        self._inclusion = inclusion
        self.record, self.path, self.checksum = record, path, record.checksum
        self.n, self.k, self.seed = record.n, record.k, record.seed

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schedule:
        """Return the finished schedule at `path`, its batches mapped rather than read.

        Every byte is compared with the checksum first, about a second per GB. If another process is
        replacing the schedule, the old or the new one comes back; that may take ten seconds. Raises
        ValueError if files were cut short or altered or are no schedule, FileNotFoundError if there
        are none.
        """
        return cls._found(ScheduleFiles.at(path), PATIENCE)

    @classmethod
    def _found(cls, files: ScheduleFiles, patience: int) -> Schedule:
        """Return what `load` does.

        patience: how often, 10 ms each time, to wait for a process that publishes the schedule.
        """
        again = False
        while True:
            before = files.finished()
            try:
                return cls._load(files)
            except (ValueError, FileNotFoundError):
                while patience > 0 and files.finished() == before:
                    if (published := files.is_published()) is False:
                        break
                    patience -= 1 if published else UNTOLD
                    time.sleep(0.01)
                if files.finished() != before:
                    continue
                found = files.unfinished()
                if not again and not (found and found.complete):  # it may just have been published
                    again = True
                    continue
                if found and (found.complete or not files.exist()):
                    made = f"{found.done} of {found.steps} draws were made; call presample to go on"
                    raise ValueError(f"{files.batches} is unfinished: {made}") from None
                raise

    @classmethod
    def _load(cls, files: ScheduleFiles, check: bool = True) -> Schedule:
        file, b = files.batches, None
        if not files.exist():
            raise FileNotFoundError(f"there is no schedule {file} with {files.record.name}")
        record = read_record(files.record)
        shape = (record.steps, record.k)
        wrong = ValueError(f"{file} was cut short or altered, or is of another schedule")
        if not file.is_file():
            raise wrong
        # What is hashed is mapped, even if another process replaces the files meanwhile.
        with open(os.fspath(file), "rb", buffering=0) as opened:
            whole = os.fstat(opened.fileno()).st_size == HEADER + 8 * math.prod(shape)
            if not whole or (check and sha256_of_open(opened).hexdigest() != record.checksum):
                raise wrong
            if record.inclusion_checksum:
                file = files.inclusion
                content = file.read_bytes() if file.is_file() else b""
                if hashlib.sha256(content).hexdigest() != record.inclusion_checksum:
                    raise ValueError(f"{file} is missing or was altered")
                b = np.frombuffer(content, "<f8", offset=HEADER)
            batches = np.memmap(opened, "<i8", "r", offset=HEADER, shape=shape)
        return cls(batches, b, record, files.batches)

    def __len__(self) -> int:
        """Number of batches."""
        return self.record.steps

    def sample(self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1) -> IntArray:
        """Return batches start..start+size, shape (size, k); `seed` may only be the schedule's."""
        size, start = as_count(size, "size", least=0), as_count(start, "start", least=0)
        thread_count(workers)
        if seed is not None and (not isinstance(seed, int | np.integer) or seed != self.seed):
            raise ValueError(f"this schedule is already drawn, with seed {self.seed}; leave it out")
        if start + size > len(self):
            raise ValueError(
                f"draws {start}..{start + size} were asked for, but the schedule has {len(self)}; "
                f"presample {start + size} steps with seed {self.seed}: it begins with the same"
            )
        return np.array(self.batches[start : start + size])

    def stream(self, seed: Seed) -> Stream:
        """Return the batches in order; whatever `seed` is, they are those of the schedule's own."""
        seed_key(seed)  # raises for anything that is not a seed
        return Stream(self, self.seed, steps=len(self))

    def fingerprint(self) -> str:
        """Return the fingerprint of the design that the batches were drawn from."""
        return self.record.fingerprint

    def inclusion(self) -> FloatArray:
        """Return b_i, the probability that item i is in a batch, shape (n,).

        Raises ValueError for draws of a design that has no closed form for it.
        """
        if self._inclusion is None:
            design = self.record.design
            raise ValueError(f"inclusion probabilities have no closed form under {design}; {COUNT}")
        return self._inclusion.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            return Schedule, (np.array(self.batches), self._inclusion, self.record)
        return _unpickled, (str(self.path), self.checksum)

    def __repr__(self) -> str:
        where = self.path or "in memory"
        return f"Schedule({len(self)} draws of {self.k} out of {self.n}, seed {self.seed}, {where})"


def _unpickled(path: str, checksum: str) -> Schedule:
    """Return the schedule that was pickled, which must still be the one at `path`."""
    schedule = Schedule.load(path)
    if schedule.checksum != checksum:
        raise ValueError(f"{path} is not the schedule that was pickled: it was replaced since")
    return schedule


def presample(
    design: Design,
    steps: int,
    seed: Seed = 0,
    path: str | os.PathLike[str] | None = None,
    workers: int = 1,
    progress: bool = False,
    *,
    overwrite: bool = False,
) -> Schedule:
    """Return the first `steps` batches of `design` as a schedule, in memory or at `path`.

    seed:      An int is kept. Anything else is turned into an int, which is the schedule's seed.
    path:      Where it is stored, with or without .npy (see `dmsgd.schedules.files`). If the same
               schedule is there, it is returned; if a part of it is there, because a process was
               killed, that is completed to the same bytes. While another process draws it, this
               one waits. With seed=None, a schedule of any seed counts as the same.
    workers:   The number of threads, -1 for all cores. It does not change the draws.
    progress:  Whether to show a progress bar.
    overwrite: Whether to replace another schedule at `path`, or a damaged or unfinished one, which
               otherwise raises ValueError. Files that are not part of a schedule stay.

    A design without closed forms (SwapChain) is drawn and stored like any other; only `inclusion`
    of its schedule raises ValueError. Raises OSError if the disk is full and `ClusterError` if the
    cluster is lost; batches on disk are kept. See also `Schedule`, `loader`.

    >>> schedule = presample(dmsgd.Uniform(100, 8), steps=20)
    >>> schedule.sample(2, start=18).shape
    (2, 8)
    """
    if not isinstance(design, Design):
        raise TypeError(f"presample needs {FIXED_K}, got {type(design).__name__}")
    steps, threads = as_count(steps, "steps"), thread_count(workers)
    progress, overwrite = as_flag(progress, "progress"), as_flag(overwrite, "overwrite")
    files = None if path is None else ScheduleFiles.at(path)
    if seed is None and files is not None and not overwrite:
        found = files.finished() or files.unfinished()
        seed = found.seed if found else None
    key = seed_key(seed)  # raises for anything that is not a seed
    origin: dict[str, Any] = design.provenance()
    record = Record(
        steps=steps,
        k=design.k,
        n=design.n,
        seed=int(seed) if isinstance(seed, numbers.Integral) else key,
        fingerprint=design.fingerprint(),
        dmsgd=dmsgd.__version__,
        **origin,
    )

    def draw(start: int) -> Iterator[IntArray]:
        with progress_bar("draws", steps, progress) as tell:
            for batches in draw_chunks(design, record, start, threads):
                yield batches
                start += len(batches)
                tell(start)

    inclusion = getattr(design, "inclusion", lambda: None)
    if files is not None:
        return _on_disk(files, record, overwrite, draw, inclusion)
    check_range(steps, 0, design.k)
    batches, done = np.empty((steps, design.k), np.int64), 0
    for rows in draw(0):
        batches[done : done + len(rows)] = rows
        done += len(rows)
    return Schedule(batches, inclusion(), record)


def _on_disk(
    files: ScheduleFiles,
    asked: Record,
    overwrite: bool,
    draw: Callable[[int], Iterator[IntArray]],
    inclusion: Callable[[], FloatArray | None],
) -> Schedule:
    """Return the schedule in these files, drawn as far as it is not there yet."""
    of_data: list[OSError] = []  # errors of reading features, and not of writing

    @contextmanager
    def reading() -> Iterator[None]:
        try:
            yield
        except OSError as error:
            of_data.append(error)
            raise

    def drawn(start: int) -> Iterator[IntArray]:
        with reading():
            yield from draw(start)

    schedule = _finished(files, asked, overwrite)
    if schedule is not None and not files.is_abandoned():
        return schedule
    files.record_to_continue(asked, overwrite)  # refuses another beginning now, not after a wait
    try:
        with files.locked():
            files.refuse_strangers()
            unfinished = files.unfinished()
            if unfinished and unfinished.complete:
                files.publish()  # or nothing vouches for the batches when another one is begun
            schedule = _finished(files, asked, overwrite)  # perhaps another process has drawn it
            if schedule is None:
                files.check_disk(asked.steps, asked.k, asked.n)
                files.fill(files.record_to_continue(asked, overwrite), drawn, reading()(inclusion))
                files.publish()
                schedule = Schedule._load(files, check=False)  # still under the lock
            return schedule
    except OSError as error:
        kept = f"; the draws so far are kept in {files.work}" if files.unfinished() else ""
        if isinstance(error, ClusterError):
            raise ClusterError(f"{error}{kept}") from error
        if error in of_data:
            raise
        why = f"cannot write the schedule {files.batches}: {error.strerror or error}{kept}"
        raise OSError(error.errno, why) from error


def _finished(files: ScheduleFiles, asked: Record, overwrite: bool) -> Schedule | None:
    """Return the schedule if it is there, None if it is to be drawn; raise for another one."""
    before = files.finished()
    try:
        schedule = Schedule._found(files, 0)  # whoever publishes it holds the lock
    except (ValueError, FileNotFoundError) as error:
        unfinished = files.unfinished()
        if overwrite or not files.exist() or (unfinished and unfinished.complete):
            return None
        if files.finished() != before:  # another process has published it meanwhile
            return _finished(files, asked, overwrite)
        raise InputError(f"{error}; draw it again to replace it", overwrite=True) from None
    # Finished draws of another version of dmsgd are the same schedule.
    asked = replace(asked, dmsgd=schedule.record.dmsgd)
    same = schedule.record.is_of(asked, f"{files.batches} is", overwrite)
    return schedule if same else None


def draw_chunks(design: Design, record: Record, start: int, workers: int) -> Iterator[IntArray]:
    """Yield the draws from `start` to the end.

    Chunks take about CHUNK_SECONDS, or are as large as the design asks for.
    """
    stream = design.stream(record.seed)
    most = max(1, min(CHUNK_NUMBERS, memory_limit() // 64) // record.k)
    size = stream.call_size(min(16 * workers, most))
    while start < record.steps:
        began = time.monotonic()
        yield (batches := stream.sample(min(size, record.steps - start), start, workers))
        start += len(batches)
        if time.monotonic() - began < CHUNK_SECONDS / 2:
            size = stream.call_size(min(2 * size, most))
