"""`dmsgd sample`: from a file of features to a file of batches."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dmsgd.commands.options import DIVERSITY, FORCE, QUALITY, SEED, design_options, output_option
from dmsgd.commands.terminal import echo, echo_classes, echo_error
from dmsgd.inputs.messages import counted

if TYPE_CHECKING:
    from dmsgd.commands.files import DataFiles
    from dmsgd.designs.contract import Design
    from dmsgd.designs.options import DesignOptions
    from dmsgd.schedules.files import ScheduleFiles


@click.command()
@design_options
@click.option(
    "--batches",
    type=click.Choice(["k-DPP", "weighted", "stratified", "uniform"]),
    default="k-DPP",
    help="Kind of batches: of the k-DPP; with its sampling frequencies and no repulsion; by class; "
    "all items alike.",
)
@click.option(
    "--quality", help=f"{QUALITY}, or `length` for the lengths of the rows: better items come more."
)
@DIVERSITY
@click.option("-n", "--steps", type=click.IntRange(1), required=True, help="Number of batches.")
@output_option("File to write: .npy (int64, one row per batch) or .csv.")
@SEED
@click.option(
    "--workers", type=int, default=-1, help="Threads, -1 for all cores; the result is the same."
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
    force: bool,
) -> None:
    """Draw diverse batches and write their row numbers, from 0.

    \b
    Examples:
      dmsgd sample features.npy -k 64 -n 1000 -o batches.npy
      dmsgd sample features.npy --labels y.npy -w 0.7 -k 64 -n 1000 -o batches.npy
      dmsgd sample iris.csv --labels species -k 32 -n 500 -o b.csv
      dmsgd sample pool.parquet --quality score -k 10 -n 500 -o b.csv
      dmsgd sample tfidf.npz --rho 0.1 -k 50 -n 1000 -o batches.npy
      dmsgd sample features.npy --target uniform -k 64 -n 1000 -o batches.npy
      dmsgd sample features.npy --batches weighted -k 64 -n 1000 -o batches.npy

    An .npy output is a schedule: batches.json beside it records the design, and the same command
    goes on where a run was stopped. If the schedule is finished, nothing is drawn.
    """
    import numpy as np

    from dmsgd import presample
    from dmsgd.commands.files import atomic_write, check_output
    from dmsgd.runtime.threads import thread_count
    from dmsgd.schedules.files import ScheduleFiles

    # Raise about bad options before the work.
    inputs = files.inputs()
    check_output(output, (".npy", ".csv"), inputs, force=True)
    threads = thread_count(workers)
    stored = ScheduleFiles.at(output) if output.suffix.lower() == ".npy" else None
    finished = stored is not None and _is_finished(stored, inputs, steps, k, seed, force)
    if not finished:
        check_output(output, (".npy", ".csv"), inputs, force)
    began = time.perf_counter()
    X, about = files.load()
    y = about.get("label")
    echo(f"features  {files.features}: {counted(X.shape[0], 'item')} x {X.shape[1]:,}")
    design = _set_up(X, k, y, options, about.get("quality"))
    echo(f"set-up    {time.perf_counter() - began:.2f} s")
    left = None if stored is None or finished else stored.unfinished()
    kept, same = 0, (design.fingerprint(), steps, seed)
    if left and left.done and (left.fingerprint, left.steps, left.seed) == same:
        kept = left.done
        echo(f"resumes   after the {kept:,} batches of {steps:,} of a stopped run")
    began, shown = time.perf_counter(), sys.stderr.isatty()
    path = None if stored is None else output
    try:
        schedule = presample(design, steps, seed, path, threads, shown, overwrite=force)
    except (KeyboardInterrupt, SystemExit):
        if stored is not None:
            left = stored.unfinished()
            kept = 0 if left is None else left.done
            echo_error(
                f"stopped: {kept:,} of {steps:,} batches are kept, and the same command goes "
                f"on from there"
            )
        raise
    if stored is None:
        with atomic_write(output, force) as file:
            np.savetxt(file, schedule.batches, fmt="%d", delimiter=",")
    seconds = time.perf_counter() - began
    if finished:
        echo(f"finished  {output} holds these {steps:,} batches already: nothing is drawn")
    else:
        each = 1000 * seconds / max(steps - kept, 1)
        echo(f"draws     {steps - kept:,} in {seconds:.2f} s, {each:.3g} ms per batch")
        echo(f"written   {output}: {steps:,} x {k} item numbers, seed {seed}")
    if y is not None:
        if not options.uses_labels:
            hint = "; -w 0.7 would mix them in" * (options.batches != "uniform")
            echo(f"labels    did not count{hint}")
        cells = {
            "share of items": lambda items, drawn: f"{items / len(y):.2%}",
            "share of draws": lambda items, drawn: f"{drawn / (steps * k):.2%}",
        }
        echo_classes(y, schedule.batches, cells)


def _is_finished(
    stored: ScheduleFiles, inputs: list[str], steps: int, k: int, seed: int, force: bool
) -> bool:
    """Return whether a finished schedule of so many batches of k with this seed is there.

    It is not drawn again; `presample` raises if it is of another design. Raises if a file that is
    no schedule would be replaced.
    """
    from dmsgd.commands.files import check_output

    for file in (stored.record, stored.inclusion):
        check_output(file, (".json", ".npy"), inputs, force=True)
    stored.refuse_strangers()  # also with --force, which replaces schedules
    found = stored.finished() if stored.exist() and not force else None
    if not found or (found.steps, found.k, found.seed) != (steps, k, seed):
        stored.check_disk(steps, k, n=0)
        return False
    return True


def _set_up(X: Any, k: int, y: Any, options: DesignOptions, quality: Any) -> Design:
    """Return the design, compiled and ready to draw, and print what it is."""
    from dmsgd.designs.build import make_design
    from dmsgd.designs.kdpp import KDPP
    from dmsgd.runtime.progress import progress_bar

    with progress_bar("set-up (the first run of all compiles the sampler)"):
        design = make_design(options, X, k, y, quality)
        design.sample(0)  # tables and compiling are set-up, not part of the first batch
    if isinstance(design, KDPP):
        spectrum = design.spectrum
        echo(f"kernel    {design.kernel}: rank {spectrum.rank:,} ({spectrum.route}), k {k}")
    else:
        of = ", frequencies of the k-DPP" * (options.batches == "weighted")
        echo(f"batches   {options.batches}{of}, k {k}")
    return design
