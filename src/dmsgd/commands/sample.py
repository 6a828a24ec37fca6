"""`dmsgd sample`: from a file of features to a file of batches."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dmsgd.commands.options import FORCE, DataFiles, design_options, output_option
from dmsgd.commands.output import atomic_write, check_output
from dmsgd.commands.terminal import (
    CLASSES_SHOWN,
    class_table,
    echo,
    echo_error,
    echo_table,
    spinner,
)
from dmsgd.inputs.messages import counted

if TYPE_CHECKING:
    from dmsgd.designs.design import Design
    from dmsgd.designs.options import DesignOptions
    from dmsgd.inputs.arrays import IntArray
    from dmsgd.schedules import Schedule


@click.command()
@design_options
@click.option(
    "--batches",
    type=click.Choice(["k-DPP", "weighted", "stratified", "uniform"]),
    default="k-DPP",
    help="Kind of batches: of the k-DPP; with its sampling frequencies and no repulsion; by class; "
    "all items alike.",
)
@click.option("-n", "--steps", type=int, required=True, help="Number of batches.")
@output_option("File to write: .npy (int64, one row per batch) or .csv.")
@click.option("--seed", type=int, default=0, help="The same seed gives the same file.")
@click.option(
    "--workers", type=int, default=-1, help="Threads, -1 for all cores; the result is the same."
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Dask scheduler to work on, such as tcp://host:8786; local starts one here.",
)
@FORCE
def sample(
    files: DataFiles,
    k: int,
    options: DesignOptions,
    steps: int,
    output: Path,
    seed: int,
    workers: int,
    cluster: str | None,
    force: bool,
) -> None:
    """Draw diverse batches and write their row numbers, from 0.

    \b
    Examples:
      dmsgd sample features.npy -k 64 -n 1000 -o batches.npy
      dmsgd sample features.npy --labels y.npy -w 0.7 -k 64 -n 1000 -o batches.npy
      dmsgd sample iris.csv --labels species --kernel rbf -k 10 -n 500 -o b.csv
      dmsgd sample tfidf.npz --rho 0.1 -k 50 -n 1000 -o batches.npy
      dmsgd sample features.npy --target uniform -k 64 -n 1000 -o batches.npy
      dmsgd sample features.npy --batches weighted -k 64 -n 1000 -o batches.npy
      dmsgd sample features.zarr --cluster tcp://host:8786 -k 64 -n 1000 -o b.npy

    An .npy output is a schedule: batches.json beside it records the design, and the same command
    goes on where a run was stopped. If the schedule is finished, nothing is drawn.
    """
    there = _check_output(output, [files.features, files.labels], steps, k, seed, force)
    from dmsgd.features.cluster import connected
    from dmsgd.features.convert import open_features
    from dmsgd.files.columns import column_names
    from dmsgd.inputs.scalars import as_count, seed_key
    from dmsgd.inputs.threads import thread_count

    # Checked here so that bad values are refused before the work.
    as_count(k, "k")
    as_count(steps, "steps")
    seed_key(seed)
    threads = thread_count(workers)
    began = time.perf_counter()
    with ExitStack() as stack:
        client = None if cluster is None else stack.enter_context(connected(cluster))
        X, y = files.load()
        if client is not None:
            drop = files.dropped(column_names(files.features))
            X = open_features(files.features, drop, on_cluster=True)
        echo(f"features  {files.features}: {counted(X.shape[0], 'item')} x {X.shape[1]:,}")
        design = _set_up(X, k, y, options)
        echo(f"set-up    {time.perf_counter() - began:.2f} s")
        kept = 0 if there else _echo_kept(output, design, steps, seed)
        began = time.perf_counter()
        with _stopped(output, steps):
            schedule = _draw_to(output, design, steps, seed, threads, force, client)
    seconds = time.perf_counter() - began
    if there:
        echo(f"finished  {output} holds these {steps:,} batches already: nothing is drawn")
    else:
        drawn, each = steps - kept, 1000 * seconds / max(steps - kept, 1)
        echo(f"draws     {drawn:,} in {seconds:.2f} s, {each:.3g} ms per batch")
        echo(f"written   {output}: {steps:,} x {k} item numbers, seed {seed}")
    if y is not None:
        if not options.uses_labels:
            echo("labels    did not count for the draws; -w 0.7 would mix them in")
        _echo_shares(y, schedule.batches)


def _check_output(
    output: Path, inputs: list[str | None], steps: int, k: int, seed: int, force: bool
) -> bool:
    """Raise unless all files of the schedule can be written without losing anything.

    Return whether a schedule of that many batches of k with this seed is finished there: it is left
    as it is, and refused later if it is of another design.
    """
    from dmsgd.schedules import Schedule
    from dmsgd.schedules.files import ScheduleFiles

    check_output(output, (".npy", ".csv"), inputs, force=True)
    if output.suffix.lower() == ".npy":
        files = ScheduleFiles.at(output)
        for file in (files.record, files.inclusion):
            check_output(file, (".json", ".npy"), inputs, force=True)
        files.refuse_strangers()  # also with --force, which replaces schedules
        if not force and files.exist():
            try:
                found = Schedule.load(files.batches, check=False).record
            except (ValueError, OSError):
                found = None
            if found and (found.steps, found.k, found.seed) == (steps, k, seed):
                return True
        files.check_disk(max(steps, 1), max(k, 1), n=0)
    check_output(output, (".npy", ".csv"), inputs, force)
    return False


def _echo_kept(output: Path, design: Design, steps: int, seed: int) -> int:
    """Return how many batches a stopped run has left, and print it."""
    from dmsgd.schedules.files import ScheduleFiles

    found = ScheduleFiles.at(output).unfinished() if output.suffix.lower() == ".npy" else None
    if found is None or found.done == 0:
        return 0
    if (found.fingerprint, found.steps, found.seed) != (design.fingerprint(), steps, seed):
        return 0
    echo(f"resumes   after the {found.done:,} batches of {steps:,} that a stopped run has left")
    return found.done


@contextmanager
def _stopped(output: Path, steps: int) -> Iterator[None]:
    """Print that the same command goes on, if the block is stopped after some draws."""
    from dmsgd.schedules.files import ScheduleFiles

    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if output.suffix.lower() == ".npy":
            found = ScheduleFiles.at(output).unfinished()
            kept = 0 if found is None else found.done
            line = f"stopped: {kept:,} of {steps:,} batches are kept, and the same command goes on"
            echo_error(f"{line} from there")
        raise


def _set_up(X: Any, k: int, y: Any, options: DesignOptions) -> Design:
    """Return the design, compiled and ready to draw, and print what it is."""
    from dmsgd.designs.build import make_design
    from dmsgd.designs.kdpp import KDPP

    with spinner("set-up (the first run of all compiles the sampler)"):
        design = make_design(options, X, k, y)
        design.sample(0)  # tables and compiling are set-up, not part of the first batch
    if isinstance(design, KDPP):
        rank, route = design.spectrum.rank, design.spectrum.route
        echo(f"kernel    {options.kernel}: rank {rank:,} by the {route} route, k {k}")
    else:
        of = f", frequencies of the {options.kernel} kernel" * (options.batches == "weighted")
        echo(f"batches   {options.batches}{of}, k {k}")
    return design


def _draw_to(
    output: Path, design: Design, steps: int, seed: int, workers: int, force: bool, client: Any
) -> Schedule:
    """Return the schedule, written to `output`."""
    import numpy as np

    from dmsgd import presample

    shown = sys.stderr.isatty()
    if output.suffix.lower() == ".npy":
        return presample(
            design, steps, seed, output, workers, shown, overwrite=force, client=client
        )
    schedule = presample(design, steps, seed, workers=workers, progress=shown, client=client)
    with atomic_write(output, force) as file:
        np.savetxt(file, schedule.batches, fmt="%d", delimiter=",")
    return schedule


def _echo_shares(y: Any, batches: IntArray) -> None:
    """Print the table of each class's share of the items and of the draws."""
    import numpy as np

    def cells(items: int, drawn: int) -> tuple[str, ...]:
        return f"{items:,}", f"{items / len(y):.2%}", f"{drawn / batches.size:.2%}"

    classes = np.unique(y).size
    some = ", here the largest and the rarest" * (classes > CLASSES_SHOWN)
    echo(f"classes   {classes:,}{some}")
    echo_table(class_table(y, batches, ("items", "share of items", "share of draws"), cells))
