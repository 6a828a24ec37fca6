"""Run a part of an experiment for a given time, and keep what is done in its journal.

    python -m experiments.slices labelling --only k=10 --workers 16 --time-limit 500 --out build

For machines that have neither polars nor rich. Runs are done seed by seed, so that what is done is
a balanced part. `python -m experiments` goes on from the journal of an experiment that it lists.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import shutil
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

import dmsgd
from experiments.core import protocol
from experiments.core.journal import Journal


def about(name: str, module: ModuleType, quick: bool = False) -> str:
    """Return what the runs of an experiment depend on.

    That is the number RUNS of the module, where it has one: it is raised when all runs must be made
    again. Else it is a digest of its own files and the version of dmsgd.
    """
    runs = getattr(module, "RUNS", None)
    return f"{name} quick={quick} {_source(module) if runs is None else f'runs {runs}'}"


def _source(module: ModuleType) -> str:
    path = Path(inspect.getfile(module))
    files = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
    content = b"".join(file.read_bytes() for file in files)
    return f"{hashlib.sha256(content).hexdigest()[:16]} {dmsgd.__version__}"


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status: 0 also if runs are left."""
    options = parser().parse_args(arguments)
    module, began = import_module(f"experiments.{options.name}"), time.monotonic()
    path = options.out / f"{options.name}.journal"
    path.parent.mkdir(parents=True, exist_ok=True)
    if options.stored and not path.exists():
        shutil.copyfile(options.stored, path)
    journal = Journal(path, about(options.name, module))
    for only in options.only or [""]:
        left = began + options.time_limit - time.monotonic()
        done, count = protocol.fill(module.cases(), options.workers, journal, left, only)
        spent = time.monotonic() - began
        print(f"{only!r}: {done:,} of {count:,} runs are in {path}, {spent:.0f} s", flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    found = argparse.ArgumentParser("python -m experiments.slices", description=__doc__)
    found.add_argument("name", help="the experiment")
    found.add_argument("--only", action="append",
                       help='pattern of "case: arm"; of several, one after the other')  # fmt: skip
    found.add_argument("--workers", type=int, default=1, help="processes that share the runs")
    found.add_argument("--time-limit", type=float, default=1e9,
                       help="seconds after which no run is begun")  # fmt: skip
    found.add_argument("--out", type=Path, default=Path("build/experiments"),
                       help="folder of the journal (default: %(default)s)")  # fmt: skip
    found.add_argument("--stored", type=Path, help="a journal to go on from, if --out has none")
    return found


if __name__ == "__main__":
    sys.exit(main())
