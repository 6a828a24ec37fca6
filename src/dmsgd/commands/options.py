"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

#: The end of the help of commands that read features.
FEATURES = (
    "FEATURES has items as rows: .npy, .npz (or file.npz:NAME; SciPy sparse too), .csv, .tsv, "
    ".parquet, .jsonl, .zarr (or store.zarr:NAME), or a folder of sparse .npz files."
)
#: A file to write.
OUTPUT = click.Path(path_type=Path)


def all_of(*options: Decorator) -> Decorator:
    """Return a decorator that gives a command these options, in this order."""

    def given(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return given


def reads_features(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument FEATURES, and its help the formats."""
    command.__doc__ = f"{cleandoc(command.__doc__ or '')}\n\n{FEATURES}"
    return click.argument("features")(command)


def output_option(help: str, required: bool = True) -> Decorator:
    """Return the option --output of a command."""
    return click.option("-o", "--output", type=OUTPUT, required=required, help=help)


SEED = click.option(
    "--seed", type=click.IntRange(0), default=0, help="The same seed gives the same result."
)
FORCE = click.option("--force", is_flag=True, help="Replace an existing output.")
TEXTS = click.option("--texts", help="Text of each item: a column, or a file as for --labels.")
IMAGES = click.option(
    "--images", help="Picture of each item: .npy or .npz, (items, height, width[, 3])."
)
LABELS = (
    "Class of each item: a file (.npy, .npz, .csv, .tsv, .txt, .parquet, .jsonl, .zarr), or a "
    "column of FEATURES, which is then no feature."
)
#: Which columns of a table are features.
COLUMNS = all_of(
    click.option(
        "--columns",
        metavar="NAME,NAME",
        help="Columns of a table that are features.  [default: all that no option names, or only "
        "lists of numbers if there are such columns]",
    ),
    click.option(
        "--drop", metavar="NAME,NAME", help="Columns of a table that are no features, such as ids."
    ),
)
QUALITY = "Worth of each item, >= 0: a column, or a file of numbers"
DIVERSITY = click.option(
    "--diversity",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    help="0.5 takes --quality as it is; near 0 only quality counts, at 1 only diversity.",
)
#: What is done to the features first.
MAPS = all_of(
    click.option("--rho", type=float, help="Anneal the features first: x to the power rho."),
    click.option(
        "--standardize",
        is_flag=True,
        help="Scale columns to mean 0 and standard deviation 1: for columns in different units.",
    ),
)
#: What describes a design, the same in all commands.
DESIGN = all_of(
    reads_features,
    click.option("-k", type=click.IntRange(1), required=True, help="Items in a batch."),
    click.option("--labels", help=LABELS),
    COLUMNS,
    click.option(
        "-w",
        type=float,
        default=0.0,
        help="Weight of the labels: 0 only reports them, 1 looks at nothing else.",
    ),
    click.option(
        "--kernel",
        type=click.Choice(["auto", "linear", "rbf"]),
        default="auto",
        help="Similarity of items: linear where there are 1.25 k columns, otherwise RBF.",
    ),
    click.option(
        "--scale", type=float, help="Length scale of --kernel rbf.  [default: fitted to k]"
    ),
    MAPS,
    click.option(
        "--normalize/--no-normalize",
        default=None,
        help="Scale rows to length 1, so that only directions count.  [default: for a linear "
        "kernel]",
    ),
    click.option(
        "--target",
        type=click.Choice(["uniform"]),
        help="How often items are drawn: all alike.  [default: as the kernel gives it]",
    ),
)


def design_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the options of a design, as its first arguments `files`, `k` and `options`."""

    @wraps(command)
    def called(**given: Any) -> None:
        from dmsgd.commands.files import FILES, KNOWN, DataFiles
        from dmsgd.designs.options import DesignOptions
        from dmsgd.files.tables import column_names

        asked = {each.name for each in fields(DesignOptions)} & given.keys()
        if given.get("quality") != "length" or "length" in column_names(given["features"]):
            asked.discard("quality")  # it is a column or a file
        options = DesignOptions(**{name: given.pop(name) for name in asked})
        files = DataFiles.named(given)
        if "labels" not in files.beside and options.uses_labels:
            needed = f"-w {options.w:g}" if options.w else f"--batches {options.batches}"
            raise ValueError(f"{needed} needs labels; give them with --labels")
        own = {name: each for name, each in given.items() if name not in (*FILES, *KNOWN)}
        command(files, own.pop("k"), options, **own)

    return DESIGN(called)
