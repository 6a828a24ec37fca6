"""`dmsgd sample`: from a file of features to a file of batches."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmsgd.commands.arguments import Force, refuse_output, replacing
from dmsgd.commands.asked import Asked, asking
from dmsgd.commands.class_table import CLASSES_SHOWN, class_table
from dmsgd.commands.terminal import say, show, working
from dmsgd.inputs.messages import counted

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.designs import Design, DesignOptions
    from dmsgd.inputs.arrays import IntArray
    from dmsgd.schedules import Schedule
    from dmsgd.schedules.files import ScheduleFiles


@asking
def sample(
    asked: Asked,
    steps: Annotated[int, typer.Option("--steps", "-n", help="Number of batches.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to write: .npy (int64, one row per batch) or .csv."
        ),
    ],
    without_repulsion: Annotated[
        bool,
        typer.Option(
            "--without-repulsion",
            help="See every item as often as this k-DPP does, and let no two avoid each other.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 0,
    workers: Annotated[
        int, typer.Option(help="Threads, -1 for all cores; the result is the same.")
    ] = -1,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler to work on, such as tcp://host:8786; local starts one here.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Draw diverse batches and write their row numbers, from 0.

    \b
    Examples:
      dmsgd sample features.npy -k 64 -n 1000 -o batches.npy
      dmsgd sample features.npy --labels y.npy -w 0.7 -k 64 -n 1000 -o batches.npy
      dmsgd sample iris.csv --labels species --kernel rbf -k 10 -n 500 -o b.csv
      dmsgd sample tfidf.npz --rho 0.1 -k 50 -n 1000 -o batches.npy
      dmsgd sample features.npy --target uniform -k 64 -n 1000 -o batches.npy
      dmsgd sample features.npy --without-repulsion -k 64 -n 1000 -o batches.npy
      dmsgd sample features.zarr --cluster tcp://host:8786 -k 64 -n 1000 -o b.npy

    An .npy output is a schedule: batches.json beside it says what it was drawn from, and the same
    command goes on where a run was stopped. Of a finished one it says so, and draws nothing.
    """
    there = _refuse_output(output, [asked.features, asked.labels], steps, asked.k, seed, force)
    from dmsgd.features.connection import connected
    from dmsgd.features.convert import open_features
    from dmsgd.files.tables import column_names
    from dmsgd.inputs.scalars import as_count, seed_key
    from dmsgd.inputs.threads import thread_count

    # Asked here so that bad values are refused before the work rather than after it.
    as_count(asked.k, "k")
    as_count(steps, "steps")
    seed_key(seed)
    threads = thread_count(workers)
    settings = asked.settings()
    began = time.perf_counter()
    with ExitStack() as stack:
        client = None if cluster is None else stack.enter_context(connected(cluster))
        X, y = asked.load()
        if client is not None:
            drop = asked.dropped(column_names(asked.features))
            X = open_features(asked.features, drop, on_cluster=True)
        say(f"features  {asked.features}: {counted(X.shape[0], 'item')} x {X.shape[1]:,}")
        design = _set_up(X, asked.k, y, settings, without_repulsion)
        say(f"set-up    {time.perf_counter() - began:.2f} s")
        kept = 0 if there else _say_kept(output, design, steps, seed)
        began = time.perf_counter()
        with _stopped(output, steps):
            schedule = _draw_to(output, design, steps, seed, threads, force, client)
    seconds = time.perf_counter() - began
    if there:
        say(f"finished  {output} holds these {steps:,} batches already: nothing is drawn")
    else:
        drawn, each = steps - kept, 1000 * seconds / max(steps - kept, 1)
        say(f"draws     {drawn:,} in {seconds:.2f} s, {each:.3g} ms a batch")
        say(f"written   {output}: {steps:,} x {asked.k} item numbers, seed {seed}")
    if y is not None:
        if not settings.uses_labels:
            say("labels    did not count for the draws; -w 0.7 would mix them in")
        title, table = _shares(y, schedule.batches)
        say(title)
        show(table)


def _refuse_output(
    output: Path, names: list[str | None], steps: int, k: int, seed: int, force: bool
) -> bool:
    """Raise unless all files of the schedule can be written without losing anything.

    Return whether a schedule of so many batches of k lies there already: it is left as it is, and
    refused if it is of another design.
    """
    from dmsgd.files.paths import split
    from dmsgd.schedules.files import ScheduleFiles

    refuse_output(output, (".npy", ".csv"), names, force=True)
    if output.suffix.lower() == ".npy":
        files = ScheduleFiles.at(output)
        files.refuse_inputs([split(name)[0] for name in names if name])
        files.refuse_strangers()  # also with --force, which replaces schedules
        if not force and _is_there(files, steps, k, seed):
            return True
        files.check_disk(max(steps, 1), max(k, 1), n=0)
    refuse_output(output, (".npy", ".csv"), names, force)
    return False


def _is_there(files: ScheduleFiles, steps: int, k: int, seed: int) -> bool:
    """Return whether a schedule of this size and seed is finished."""
    from dmsgd.schedules import Schedule

    if not files.exist():
        return False
    try:
        found = Schedule.load(files.batches, check=False).record
    except (ValueError, OSError):
        return False
    return (found.steps, found.k, found.seed) == (steps, k, seed)


def _say_kept(output: Path, design: Design, steps: int, seed: int) -> int:
    """Return how many batches a run that was stopped has left, and say so."""
    from dmsgd.schedules.files import ScheduleFiles

    found = ScheduleFiles.at(output).unfinished() if output.suffix.lower() == ".npy" else None
    if found is None or found.done == 0:
        return 0
    if (found.fingerprint, found.steps, found.seed) != (design.fingerprint(), steps, seed):
        return 0
    say(f"resumes   after the {found.done:,} batches of {steps:,} that a stopped run has left")
    return found.done


@contextmanager
def _stopped(output: Path, steps: int) -> Iterator[None]:
    """Say that the same command goes on, if the block is stopped after some draws."""
    from dmsgd.schedules.files import ScheduleFiles

    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if output.suffix.lower() == ".npy":
            found = ScheduleFiles.at(output).unfinished()
            kept = 0 if found is None else found.done
            line = f"stopped: {kept:,} of {steps:,} batches are kept, and the same command goes on"
            typer.echo(f"{line} from there", err=True)
        raise


def _set_up(X: Any, k: int, y: Any, settings: DesignOptions, without_repulsion: bool) -> Design:
    """Return the design, its tables made, and say what it is."""
    from dataclasses import replace

    from dmsgd.designs import KDPP
    from dmsgd.designs.build import make_design

    options = replace(settings, batches="weighted" if without_repulsion else "k-DPP")
    with working("set-up (the first run of all compiles the sampler)"):
        design = make_design(options, X, k, y)
        design.sample(0)  # tables and compiling are set-up, not part of the first batch
    if isinstance(design, KDPP):
        rank, route = design.spectrum.rank, design.spectrum.route
        say(f"kernel    {settings.kernel}: rank {rank:,} by the {route} route, k {k}")
    else:
        say(f"weights   b of the {settings.kernel} kernel without repulsion, k {k}")
    return design


def _draw_to(
    output: Path, design: Design, steps: int, seed: int, workers: int, force: bool, client: Any
) -> Schedule:
    """Return the schedule of so many batches, written to `output`."""
    import numpy as np

    from dmsgd import presample

    shown = sys.stderr.isatty()
    if output.suffix.lower() == ".npy":
        return presample(
            design, steps, seed, output, workers, shown, overwrite=force, client=client
        )
    schedule = presample(design, steps, seed, workers=workers, progress=shown, client=client)
    with replacing(output, force) as file:
        np.savetxt(file, schedule.batches, fmt="%d", delimiter=",")
    return schedule


def _shares(y: Any, batches: IntArray) -> tuple[str, Table]:
    """Return the table of each class's share of the items and of the draws, and its title."""
    import numpy as np

    classes = np.unique(y).size
    few = ", here the largest and the rarest" * (classes > CLASSES_SHOWN)

    def cells(items: int, drawn: int) -> tuple[str, ...]:
        return f"{items:,}", f"{items / len(y):.2%}", f"{drawn / batches.size:.2%}"

    headings = ("items", "share of items", "share of draws")
    return f"classes   {classes:,}{few}", class_table(y, batches, headings, cells)
