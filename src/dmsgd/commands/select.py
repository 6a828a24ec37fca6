"""`dmsgd select`: from a file of features to one diverse set of items."""

from __future__ import annotations

import csv
import io
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dmsgd.commands.options import FORCE, SEED, DataFiles, design_options, output_option
from dmsgd.commands.output import atomic_write, check_output
from dmsgd.commands.terminal import class_table, echo, echo_table, spinner
from dmsgd.inputs.messages import counted

if TYPE_CHECKING:
    from dmsgd.designs.conditioned import Conditioned
    from dmsgd.designs.kdpp import KDPP
    from dmsgd.designs.options import DesignOptions
    from dmsgd.inputs.arrays import FloatArray, IntArray

#: Item numbers, as --given takes them.
NUMBERS = re.compile(r"\s*\d{1,18}\s*(,\s*\d{1,18}\s*)*", re.ASCII)


@click.command()
@design_options
@output_option("File to write: .csv, .txt (one number per line) or .npy.")
@click.option(
    "--given",
    metavar="ITEMS",
    help="Items that are in the set already: numbers such as 3,7,12, or a file of them (.txt, "
    ".npy, .csv, such as an earlier output).",
)
@click.option(
    "--most",
    is_flag=True,
    show_default=False,
    help="The most likely set, found greedily, best first, instead of a draw.",
)
@click.option(
    "--weights",
    is_flag=True,
    show_default=False,
    help="Add a column with which sums over the set estimate means over all items (.csv).",
)
@click.option("--page", type=click.Path(path_type=Path), help="Page to write about the set: .html.")
@SEED
@FORCE
def select(
    files: DataFiles,
    k: int,
    options: DesignOptions,
    output: Path,
    given: str | None,
    most: bool,
    weights: bool,
    page: Path | None,
    seed: int,
    force: bool,
) -> None:
    """Choose one diverse set of items and write their row numbers.

    \b
    Examples:
      dmsgd select features.npy -k 50 -o chosen.csv
      dmsgd select features.npy --normalize -k 50 -o chosen.csv --page chosen.html
      dmsgd select features.npy -k 80 --given chosen.csv -o more.csv
      dmsgd select features.npy --kernel rbf -k 50 --weights -o chosen.csv
      dmsgd select tfidf.npz --rho 0.1 --most -k 50 -o chosen.txt

    The set, such as what to label first, is one batch: an exact draw from the k-DPP of `dmsgd
    sample` with the same options. With --given it is drawn from the batches that contain these
    items, which count for -k and come first. The weight of item i is 1 / (n b_i), where b_i is the
    probability that it is in the set (1 if it is given): the sum of weight times y over the set
    has the mean of y over all n items as its expectation. The most likely set has no such weights.
    """
    inputs = [files.features, files.labels, given]
    check_output(output, (".csv", ".txt", ".npy"), inputs, force)
    if page is not None:
        check_output(page, (".html", ".htm"), inputs, force)
    if weights and most:
        raise ValueError(
            "--weights need a draw: the probabilities of the items of --most are unknown; leave "
            "one of them out"
        )
    if weights and output.suffix.lower() != ".csv":
        raise ValueError(f"--weights are a column of a table; write to {output.stem}.csv")
    from dmsgd.inputs.scalars import as_count, seed_key

    # Checked here so that bad values are refused before the work.
    as_count(k, "k")
    seed_key(seed)
    began = time.perf_counter()
    X, y = files.load()
    echo(f"features  {files.features}: {counted(X.shape[0], 'item')} x {X.shape[1]:,}")
    known = None if given is None else _given(given, X.shape[0], k)
    with spinner("set-up (the first run of all compiles the sampler)"):
        from dmsgd.designs.build import make_kdpp

        whole = make_kdpp(options, X, k, y)
        design: KDPP | Conditioned = whole if known is None else whole.given(known)
        chosen = _chosen(design, known, most, seed)
    spectrum = whole.spectrum
    echo(f"kernel    {options.kernel}: rank {spectrum.rank:,} by the {spectrum.route} route, k {k}")
    if known is not None:
        echo(f"given     {counted(known.size, 'item')}, first in the set; {k - known.size:,} new")
    how = "the most likely set, greedily" if most else f"a draw from the k-DPP, seed {seed}"
    written = _as_bytes(output, _columns(design, chosen, known, weights))
    if page is not None:
        from dmsgd.report.selection import selection_page

        facts = {"chosen by": how, "kernel": options.describe()}
        if y is not None:
            facts["labels"] = _use_of_labels(options)
        count = 0 if known is None else known.size
        with spinner("the page"), atomic_write(page, force) as file:
            html = selection_page(whole.spectrum, chosen, count, y, facts, output.name, seed)
            file.write(html.encode())
    with atomic_write(output, force) as file:
        file.write(written)
    echo(f"chosen    {how}: {counted(k, 'item')} in {time.perf_counter() - began:.2f} s")
    echo(f"written   {output}" + (f" and {page}" if page else ""))
    if y is not None:
        if not options.uses_labels:
            echo("labels    did not count for the set; -w 0.7 would mix them in")

        def cells(items: int, drawn: int) -> tuple[str, ...]:
            return f"{items:,}", f"{drawn:,}", f"{k * items / len(y):,.1f}"

        echo_table(class_table(y, chosen, ("items", "chosen", "at random"), cells))


def _given(text: str, n: int, k: int) -> IntArray:
    """Return the items that --given names, or that its file holds."""
    from dmsgd.designs.conditioned import as_given
    from dmsgd.files.columns import column_names, read_column
    from dmsgd.inputs.arrays import as_items

    if NUMBERS.fullmatch(text):
        items: Any = [int(number) for number in text.split(",")]
    elif not Path(text).suffix:
        raise ValueError(
            f"--given {text!r} is neither item numbers such as 3,7,12 nor a file of them"
        )
    else:
        items = read_column(f"{text}:item" if "item" in column_names(text) else text)
    return as_given(as_items(items, n, f"--given {text}", 1), n, k)


def _chosen(design: KDPP | Conditioned, known: IntArray | None, most: bool, seed: int) -> IntArray:
    """Return the items of the set, given ones first."""
    import numpy as np

    if most:
        return design.greedy_map()
    drawn: IntArray = design.sample(1, seed)[0]
    if known is None:
        return drawn
    return np.concatenate([known, drawn[~np.isin(drawn, known)]])


def _columns(
    design: KDPP | Conditioned, chosen: IntArray, known: IntArray | None, weights: bool
) -> dict[str, IntArray | FloatArray]:
    """Return the columns of the table that is written."""
    import numpy as np

    from dmsgd.designs.design import unbiased_weights

    columns: dict[str, IntArray | FloatArray] = {"item": chosen}
    if weights:
        columns["weight"] = unbiased_weights(design)[chosen]
    if known is not None:
        columns["given"] = np.isin(chosen, known).astype(np.int64)
    return columns


def _as_bytes(output: Path, columns: dict[str, IntArray | FloatArray]) -> bytes:
    """Return the file: all columns in a .csv, the items alone in others."""
    import numpy as np

    file, kind = io.BytesIO(), output.suffix.lower()
    if kind == ".npy":
        np.save(file, columns["item"])
    elif kind == ".txt":
        np.savetxt(file, columns["item"], fmt="%d")
    else:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        file.write(text.getvalue().encode())
    return file.getvalue()


def _use_of_labels(options: DesignOptions) -> str:
    if options.w > 0:
        return f"mixed in with w = {options.w:g}"
    return "count for the target" if options.uses_labels else "did not count"
