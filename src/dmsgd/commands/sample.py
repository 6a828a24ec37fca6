"""`dmsgd sample`: from a file of features to a file of batches."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.arrays import IntArray
    from dmsgd.designs import KDPP
    from dmsgd.schedules import Schedule


#: With more classes than this the table shows the largest and the rarest only.
CLASSES_SHOWN = 12


class KernelName(str, Enum):
    """The kernels that `--kernel` takes."""

    linear = "linear"
    rbf = "rbf"


def sample(
    features: Annotated[
        str,
        typer.Argument(
            metavar="FEATURES",
            help="Items as rows: .npy, .npz (or file.npz:NAME; SciPy sparse too), .csv, .parquet.",
        ),
    ],
    k: Annotated[int, typer.Option("-k", help="Items in a batch.")],
    n: Annotated[int, typer.Option("-n", help="Number of batches.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to write: .npy (int64, one row per batch) or .csv."
        ),
    ],
    labels: Annotated[
        str | None,
        typer.Option(
            help="Class of each item: a file (.npy, .npz, .csv, .txt, .parquet), or a column of "
            "FEATURES, which is then no feature."
        ),
    ] = None,
    w: Annotated[
        float,
        typer.Option(
            "-w", help="Weight of the labels: 0 only reports them, 1 looks at nothing else."
        ),
    ] = 0.0,
    kernel: Annotated[KernelName, typer.Option(help="Similarity of items.")] = KernelName.linear,
    scale: Annotated[
        float | None,
        typer.Option(help="Length scale of --kernel rbf.  [default: the median distance]"),
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="Anneal the features first: x to the power rho.")
    ] = None,
    normalize: Annotated[
        bool,
        typer.Option(
            "--normalize", help="Scale rows to length 1: for embeddings, counts and images."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 0,
    workers: Annotated[
        int, typer.Option(help="Threads, -1 for all cores; the result is the same.")
    ] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
) -> None:
    """Draw diverse batches of items and write their row numbers, from 0.

    \b
    Examples:
      dmsgd sample features.npy -k 64 -n 1000 -o batches.npy
      dmsgd sample features.npy --labels y.npy -w 0.7 -k 64 -n 1000 -o batches.npy
      dmsgd sample iris.csv --labels species -w 0.5 --kernel rbf -k 10 -n 500 -o batches.csv
      dmsgd sample tfidf.npz --rho 0.1 -k 50 -n 1000 -o batches.npy

    An .npy output is a schedule: batches.json beside it says what it was drawn from, and the same
    command goes on where a run was stopped.
    """
    _refuse_output(output, [features, labels], force)
    from rich.console import Console

    import dmsgd
    from dmsgd.arrays import as_count
    from dmsgd.samplers.parallel import thread_count
    from dmsgd.seeding import key_of

    # Asked here so that bad values are refused before the work rather than after it.
    as_count(n, "n")
    key_of(seed)
    threads = thread_count(workers)
    if w > 0 and labels is None:
        raise ValueError(f"-w {w:g} mixes in labels; give them with --labels, or leave -w out")
    console = Console(highlight=False, markup=False, soft_wrap=True)
    began = time.perf_counter()
    X, y = _load(features, labels)
    console.print(f"features  {features}: {X.shape[0]:,} items x {X.shape[1]:,}")
    with Console(stderr=True).status("set-up (the first run of all compiles the sampler)"):
        X = X if rho is None else dmsgd.anneal(X, rho)
        design = dmsgd.diversify(X, k, y, w, kernel.value, normalize=normalize, scale=scale)
        design.sample(0, seed)  # tables and compiling are set-up, not part of the first batch
    rank, route = design.spectrum.rank, design.spectrum.route
    console.print(f"kernel    {kernel.value}: rank {rank:,} by the {route} route, k {k}")
    console.print(f"set-up    {time.perf_counter() - began:.2f} s")
    began = time.perf_counter()
    schedule = _draw_to(output, design, n, seed, threads, force)
    seconds = time.perf_counter() - began
    console.print(f"draws     {n:,} in {seconds:.2f} s, {1000 * seconds / n:.3g} ms a batch")
    console.print(f"written   {output}: {n:,} x {k} item numbers, seed {seed}")
    if y is not None:
        console.print(_shares(y, schedule.batches))


def _refuse_output(output: Path, inputs: list[str | None], force: bool) -> None:
    if output.suffix.lower() not in (".npy", ".csv"):
        raise ValueError(f"{output}: the output must end in .npy or .csv")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent}; create it first")
    if not os.access(output.parent, os.W_OK):
        raise PermissionError(f"the folder {output.parent.resolve()} cannot be written to")
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder; give a file")
    if not output.exists():
        return
    if any(Path(name).exists() and output.samefile(name) for name in inputs if name):
        raise ValueError(f"{output} is an input of this command; write to another file")
    if not force:
        raise FileExistsError(f"{output} exists; use --force to replace it, or another name")


def _load(features: str, labels: str | None) -> tuple[Any, Any]:
    """Return X and y; labels that name a column of the features are taken out of them."""
    from dmsgd.files import LABEL_FILES, column_names, load_features, load_labels

    if labels is None:
        return load_features(features), None
    columns = column_names(features)
    if labels in columns:
        return load_features(features, drop=labels), load_labels(f"{features}:{labels}")
    if columns and not any(suffix in labels.lower() for suffix in LABEL_FILES):
        raise ValueError(
            f"{features} has no column {labels!r} for --labels; it has {', '.join(columns[:10])}"
            + (", ..." if len(columns) > 10 else "")
        )
    X = load_features(features)
    return X, load_labels(labels, n=X.shape[0])


def _draw_to(output: Path, design: KDPP, n: int, seed: int, workers: int, force: bool) -> Schedule:
    """Return the schedule of n batches, written to `output`."""
    import numpy as np

    from dmsgd import presample

    shown = sys.stderr.isatty()
    if output.suffix.lower() == ".npy":
        return presample(design, n, seed, output, workers, shown, overwrite=force)
    schedule = presample(design, n, seed, workers=workers, progress=shown)
    with _replacing(output) as file:
        np.savetxt(file, schedule.batches, fmt="%d", delimiter=",")
    return schedule


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file that takes the place of `path` if all goes well and vanishes if not."""
    target = Path(os.path.realpath(path))  # a link stays a link
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(hidden, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, target)
    finally:
        hidden.unlink(missing_ok=True)


def _shares(y: Any, batches: IntArray) -> Table:
    """Return the table of each class's share of the items and of the draws."""
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    names, codes, items = np.unique(y, return_inverse=True, return_counts=True)
    drawn = np.bincount(codes[batches].ravel(), minlength=names.size)
    shown = np.arange(names.size)
    title = f"classes   {names.size:,}"
    if names.size > CLASSES_SHOWN:
        shown = np.argsort(-items, kind="stable")
        shown = np.concatenate([shown[: CLASSES_SHOWN // 2], shown[-CLASSES_SHOWN // 2 :]])
        title += ", here the largest and the rarest"
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    table.add_column("class", no_wrap=True, max_width=40)
    for heading in ("items", "share of items", "share of draws"):
        table.add_column(heading, justify="right")
    for c in shown:
        before, after = items[c] / items.sum(), drawn[c] / drawn.sum()
        table.add_row(Text(str(names[c])), f"{items[c]:,}", f"{before:.2%}", f"{after:.2%}")
    return table
