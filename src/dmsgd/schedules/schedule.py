"""Batches that are already drawn: used like a design, and checked like a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, final

import numpy as np

from dmsgd.designs.cards import card, how_often
from dmsgd.designs.design import Design
from dmsgd.designs.stream import Stream
from dmsgd.files.numpy_files import load_npy
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.inputs.scalars import Seed, as_count, as_flag, seed_key
from dmsgd.inputs.threads import thread_count
from dmsgd.kernels import Kernel
from dmsgd.schedules.disk import ends, sha256
from dmsgd.schedules.files import Files
from dmsgd.schedules.record import CHECKSUMS, MOST_BYTES, Record, read_json, short


@final
class Schedule:
    """A (steps, k) array of batches with provenance and, if known, inclusion probabilities.

    It stands wherever a design does: `n`, `k`, `sample` and `inclusion` are a design's. Made by
    `dmsgd.presample` or `Schedule.load`.

    batches: (steps, k) int64, read-only; mapped from the disk if it lies there.
    seed:    the int for which design.sample(steps, seed) gives these batches.
    record:  provenance.
    path, checksum: the .npy file and its sha256; None and "" in memory.

    >>> import dmsgd
    >>> schedule = dmsgd.presample(dmsgd.Uniform(9, 3), steps=5)
    >>> len(schedule), schedule.batches.shape
    (5, (5, 3))
    """

    def __init__(
        self,
        batches: IntArray,
        inclusion: FloatArray | None,
        record: Record,
        path: Path | None = None,
        checksum: str = "",
    ) -> None:
        self.batches = batches.view()
        self.batches.flags.writeable = False
        self._inclusion = inclusion
        self.record = record
        self.path, self.checksum = path, checksum
        self.n, self.k, self.seed = record.n, record.k, record.seed
        self.chunk = 1

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, check: bool = True) -> Schedule:
        """Return the finished schedule at `path`, its batches mapped rather than read.

        Every byte is compared with the checksum first, about a second per GB; `check=False` looks
        at the record, the sizes and the first and last 64 KB only. Files that were cut short,
        altered, or are no schedule are refused.
        """
        check = as_flag(check, "check")
        files = Files.at(path)
        while True:  # until nobody replaced the schedule meanwhile
            before = _bytes_of(files.sidecar)
            try:
                schedule = cls._load(files, check)
            except (ValueError, FileNotFoundError):
                if _bytes_of(files.sidecar) == before:
                    raise
            else:
                if _bytes_of(files.sidecar) == before:
                    return schedule

    @classmethod
    def _load(cls, files: Files, check: bool) -> Schedule:
        record, recorded = _read_sidecar(files)
        batches = _map(files.batches, (record.steps, record.k))
        if "ends" in recorded and ends(files.batches) != recorded["ends"]:
            raise ValueError(
                f"{files.batches} was altered, or is of another schedule: its first and last rows "
                f"are not the recorded ones"
            )
        if check and sha256(files.batches) != recorded["checksum"]:
            raise ValueError(f"{files.batches} was altered: its checksum is not the recorded one")
        b = _read_inclusion(files.inclusion, recorded["inclusion_checksum"], record)
        if (
            check
            and recorded["version"] == 1
            and not (0 <= batches.min() <= batches.max() < record.n)
        ):
            raise ValueError(f"{files.sidecar} was altered: batches have items beyond {record.n}")
        return cls(batches, b, record, files.batches, recorded["checksum"])

    def __len__(self) -> int:
        """Number of batches."""
        return self.record.steps

    def sample(self, size: int, seed: Seed = None, *, start: int = 0, workers: int = 1) -> IntArray:
        """Return draws start..start+size, shape (size, k); they are there, so workers are idle."""
        size, start = as_count(size, "size", least=0), as_count(start, "start", least=0)
        thread_count(workers)
        if seed is not None and (not isinstance(seed, int | np.integer) or seed != self.seed):
            raise ValueError(
                f"this schedule is already drawn, with seed {self.seed}; leave the seed out, or "
                f"presample another schedule"
            )
        if start + size > len(self):
            raise ValueError(
                f"draws {start}..{start + size} were asked for, but the schedule has {len(self)}; "
                f"presample {start + size} steps with seed {self.seed} to a new path: it begins "
                f"with the same draws"
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
            raise ValueError(
                f"inclusion probabilities have no closed form under {self.record.design}, which "
                f"this schedule was drawn from: estimate_inclusion(draws, seed) of that design "
                f"counts draws; for closed forms presample KDPP(exact(kernel), k), or "
                f"KDPP(pivoted_cholesky(kernel), k) when n is large"
            )
        return self._inclusion.copy()

    def verify(self, source: Design | Kernel) -> None:
        """Raise ValueError unless the batches were drawn for this very design or kernel."""
        if not isinstance(source, Design | Kernel):
            raise TypeError(f"verify takes a Design or a Kernel, got {type(source).__name__}")
        mine = self.record.fingerprint if isinstance(source, Design) else self.record.data
        theirs = source.fingerprint()
        if mine != theirs:
            raise ValueError(
                f"the schedule was drawn for other data: {self.record.design} with fingerprint "
                f"{short(mine)}, not {source!r} with fingerprint {short(theirs)}"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            return Schedule, (np.array(self.batches), self._inclusion, self.record)
        return _pickled, (str(self.path), self.checksum)

    def _repr_html_(self) -> str:
        """Return what notebooks show: size, origin, and how evenly items are drawn."""
        b = self._inclusion
        rows = {
            "draws": f"{len(self):,} of {self.k:,} out of {self.n:,} items",
            "seed": str(self.seed),
            "place": "in memory" if self.path is None else str(self.path),
            "design": self.record.design,
        }
        if b is not None:
            rows["items are drawn"] = how_often(b)
        return card("Schedule", rows, b)

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else str(self.path)
        return f"Schedule({len(self)} draws of {self.k} out of {self.n}, seed {self.seed}, {place})"


def _pickled(path: str, checksum: str) -> Schedule:
    """Return the schedule that was pickled, which must still be the one at `path`."""
    schedule = Schedule.load(path, check=False)
    if schedule.checksum != checksum:
        raise ValueError(f"{path} is not the schedule that was pickled: it was replaced since")
    return schedule


def _read_sidecar(files: Files) -> tuple[Record, dict[str, Any]]:
    """Return what the sidecar says, or why there is no finished schedule."""
    if files.batches.exists() and files.sidecar.exists():
        record, recorded = read_json(files.sidecar)
        for name in CHECKSUMS if recorded["version"] > 1 else CHECKSUMS[:2]:
            if name not in recorded:
                raise ValueError(f"{files.sidecar} is damaged: {name} is None")
        return record, recorded
    journal = files.read_journal()
    if journal:
        raise ValueError(
            f"{files.batches} is unfinished: {journal.done} of {journal.record.steps} draws were "
            f"made; call presample with the same arguments to go on"
        )
    if files.batches.exists():
        raise ValueError(
            f"{files.batches} is not a schedule: there is no {files.sidecar.name} beside it"
        )
    raise FileNotFoundError(f"there is no schedule {files.batches}")


def _bytes_of(sidecar: Path) -> bytes | None:
    """Return what the sidecar holds, None if there is none."""
    try:
        if not sidecar.is_file():
            return None
        with open(sidecar, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError:
        return None


def _read_inclusion(path: Path, checksum: str, record: Record) -> FloatArray | None:
    """Return b, or None if the sidecar says that there is none."""
    if not checksum:
        return None
    if not path.is_file() or sha256(path) != checksum:
        raise ValueError(f"{path} is missing or was altered")
    b = np.array(load_npy(path))
    if b.shape != (record.n,) or b.dtype.str != "<f8":
        raise ValueError(f"{path} does not hold one probability for each of {record.n} items")
    return b


def _map(path: Path, shape: tuple[int, int]) -> np.memmap[Any, np.dtype[np.int64]]:
    """Return the (steps, k) int64 array in a NumPy file, mapped."""
    array = load_npy(path)
    if array.shape != shape or array.dtype.str != "<i8" or not array.flags.c_contiguous:
        raise ValueError(f"{path} was replaced: it does not hold {shape} integers of 64 bits")
    if array.offset + array.nbytes != path.stat().st_size:
        raise ValueError(f"{path} was altered: there are bytes after its last batch")
    return array
