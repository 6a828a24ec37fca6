"""`dmsgd inspect`: what is in the data, what batches would hold, and which to use."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dmsgd.commands.options import FORCE, IMAGES, OUTPUT, SEED, TEXTS, design_options
from dmsgd.commands.terminal import echo
from dmsgd.errors import as_options

if TYPE_CHECKING:
    from dmsgd.commands.files import DataFiles
    from dmsgd.designs.options import DesignOptions


@click.command()
@design_options
@click.option("--page", type=OUTPUT, help="Page to write, with pictures of all this: .html.")
@click.option(
    "--csv",
    "table",
    type=OUTPUT,
    help="Table of the items to write: number, class, times uniform, first of its near-duplicates.",
)
@TEXTS
@IMAGES
@click.option(
    "--gradients", help="Gradient of each item's loss, as rows: noise is then that of gradients."
)
@SEED
@FORCE
def inspect(
    files: DataFiles, k: int, options: DesignOptions, page: Path | None, table: Path | None,
    images: str | None, gradients: str | None, seed: int, force: bool,
) -> None:  # fmt: skip
    """Look at data before training, and recommend batches.

    \b
    Examples:
      dmsgd inspect features.npy --labels y.npy -k 64
      dmsgd inspect features.npy -k 64 --page page.html --csv items.csv
      dmsgd inspect iris.csv --labels species -k 10
      dmsgd inspect features.npy --labels y.npy -w 0.7 -k 64

    Prints classes, near-duplicates, columns and dimension, what a batch holds, how often an item
    is seen per epoch, and one recommendation with its code and its price: stratified batches where
    classes are uneven, shuffled epochs elsewhere (docs/good-for.md). A k-DPP is shown only if you
    give one of its options; `dmsgd sample` draws from the same one. Noise is the variance of a
    batch's mean, on the same columns for all. The page opens from disk and loads nothing.
    """
    from dmsgd.commands.files import PAGES, check_output, load_images, write
    from dmsgd.diagnostics.study import inspect as look
    from dmsgd.runtime.progress import progress_bar

    inputs = [*files.inputs(), images, gradients]
    check_output(page, PAGES, inputs, force)
    check_output(table, (".csv",), inputs, force)
    X, about = files.load()
    pictures = load_images(images)
    with progress_bar("Looking (the first run compiles)"):
        found = look(X, k, about.get("label"), options, gradients=gradients, seed=seed)
    for line in found.lines(files.features):
        echo(line)
    if found.advice.options.batches != "uniform":
        given = {"labels": files.beside.get("labels"), "columns": files.columns}
        given = found.advice.options.changed() | given | {"drop": files.drop}
        words = as_options({name: value for name, value in given.items() if value is not None})
        name = shlex.quote(files.features)
        echo(f"  dmsgd sample {name} -k {k} -n 1000 {words} -o batches.npy")
    written = {}
    if page is not None:
        with progress_bar("the page"):
            name = Path(files.features).name
            written[page] = found.html(name, texts=about.get("text"), images=pictures).encode()
    if table is not None:
        written[table] = found.csv().encode()
    write(written, force)
    if written:
        echo(f"written     {' and '.join(map(str, written))}")
