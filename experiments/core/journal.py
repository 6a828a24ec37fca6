"""What an experiment has done so far, on disk, so that an interrupted run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

#: step, measure, value.
Found = list[tuple[int, str, float]]


class Job(NamedTuple):
    """One run: an arm of a case with a seed and a rate."""

    case: str
    arm: str
    seed: int
    rate: float


class Journal:
    """The rows of finished jobs: in memory, and one JSON line each in a file.

    about: what the rows depend on (code, settings). A file about something else is begun anew, and
           a last line that was cut off is dropped.
    """

    def __init__(self, path: Path | None, about: str) -> None:
        self.path = path
        self._found: dict[Job, Found] = {}
        if path is None:
            return
        if not self._read(path, about):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(about) + "\n", encoding="utf-8")

    def _read(self, path: Path, about: str) -> bool:
        if not path.is_file():
            return False
        first, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
        if first != json.dumps(about) + "\n":
            return False
        whole = [line for line in lines if line.endswith("\n")]
        path.write_text("".join([first, *whole]), encoding="utf-8")
        for line in whole:
            job, rows = json.loads(line)
            self._found[Job(*job)] = [tuple(row) for row in rows]
        return True

    def __contains__(self, job: Job) -> bool:
        return job in self._found

    def __getitem__(self, job: Job) -> Found:
        return self._found[job]

    def __len__(self) -> int:
        return len(self._found)

    def add(self, job: Job, rows: Found) -> None:
        """Keep the rows of a job."""
        self._found[job] = rows
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([job, rows]) + "\n")
