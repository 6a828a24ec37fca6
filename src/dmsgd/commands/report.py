"""`dmsgd report`: one page that shows what diverse batches do to the data, to open or to send."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dmsgd.commands.data_files import DataFiles
from dmsgd.commands.options import FORCE, OUTPUT, SEED, design_options, output_option
from dmsgd.commands.output import atomic_write, check_output
from dmsgd.commands.terminal import echo, progress_bar
from dmsgd.inputs.messages import counted

if TYPE_CHECKING:
    from dmsgd.designs.options import DesignOptions


@click.command()
@design_options
@output_option("Page to write: .html.")
@click.option("--texts", help="Text of each item: a column, or a file as for --labels.")
@click.option("--images", help="Picture of each item: .npy or .npz, (items, height, width[, 3]).")
@click.option(
    "--gradients", help="Gradient of each item's loss, as rows: adds a section on variance."
)
@click.option(
    "--csv",
    "table",
    type=OUTPUT,
    help="Table of the items to write: number, class, times uniform, first of its near-duplicates.",
)
@click.option("--title", help="Title of the page.  [default: the name of FEATURES]")
@SEED
@FORCE
def report(
    files: DataFiles,
    k: int,
    options: DesignOptions,
    output: Path,
    texts: str | None,
    images: str | None,
    gradients: str | None,
    table: Path | None,
    title: str | None,
    seed: int,
    force: bool,
) -> None:
    """Write a page: what diverse batches hold, favour and cost.

    \b
    Examples:
      dmsgd report features.npy -k 64 -o report.html
      dmsgd report features.npy --labels y.npy -w 0.7 -k 64 -o r.html
      dmsgd report tfidf.npz --rho 0.1 -k 50 -o report.html
      dmsgd report iris.csv --labels species -k 10 -o report.html
      dmsgd report features.npy -k 64 -o report.html --csv items.csv

    The page opens from disk and loads nothing. It shows the figures of `dmsgd inspect`, begins with
    the design that `dmsgd sample` draws from with the same options, and has sliders for w and k
    (with a --target, none). With --gradients the recommendation follows from these. For curation it
    lists favoured items, near-duplicates and outliers. Very large data is sampled; the page
    then gives the number of items that it shows.
    """
    inputs = [files.features, files.labels, texts, images, gradients]
    check_output(output, (".html", ".htm"), inputs, force)
    if table is not None:
        check_output(table, (".csv",), inputs, force)
    from dmsgd.features.convert import open_features
    from dmsgd.files.arrays import load_array
    from dmsgd.files.paths import find_file
    from dmsgd.report import build

    began = time.perf_counter()
    X, y = files.load()
    n = X.shape[0]
    more: dict[str, Any] = {"texts": files.entries("--texts", n)}
    if images is not None:
        more["images"] = load_array(*find_file(images, (".npy", ".npz")), ("images", "X", "x"))
    if gradients is not None:
        more["gradients"] = open_features(gradients)
    with progress_bar("Eigendecompositions (the first run compiles the sampler)") as progress:
        made = build(X, k, y, options, **more, seed=seed, progress=progress)
    page, sampled = made.html(title or Path(files.features).name).encode(), made.content["sampled"]
    with atomic_write(output, force) as file:
        file.write(page)
    if table is not None:
        with atomic_write(table, force) as file:
            file.write(made.csv().encode())
    echo(f"features  {files.features}: {counted(n, 'item')} x {X.shape[1]:,}")
    if sampled < n:
        echo(f"sample    of {sampled:,} items, which the page shows")
    if y is not None and not options.uses_labels:
        how = "-w 0.7 would mix them in" if options.target else "the slider over w mixes them in"
        echo(f"labels    do not count where the page begins; {how}")
    if table is not None:
        echo(f"table     {table}: {sampled:,} items")
    seconds = time.perf_counter() - began
    echo(f"written   {output}: {len(page) / 1e6:.1f} MB in {seconds:.1f} s")
