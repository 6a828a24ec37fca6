"""`dmsgd select`: from a file of features to one diverse set of items."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dmsgd.commands.options import FORCE, OUTPUT, SEED, DataFiles, design_options, output_option
from dmsgd.commands.output import atomic_write, check_output
from dmsgd.commands.terminal import echo, echo_classes, progress_bar
from dmsgd.inputs.messages import counted

if TYPE_CHECKING:
    from dmsgd.designs.options import DesignOptions
    from dmsgd.inputs.arrays import IntArray

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
    help="The most likely set, found greedily, best first, instead of a draw.",
)
@click.option(
    "--weights",
    is_flag=True,
    help="Add a column with which sums over the set estimate means over all items (.csv).",
)
@click.option("--page", type=OUTPUT, help="Page to write about the set: .html.")
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
    import numpy as np

    from dmsgd.designs.build import make_kdpp
    from dmsgd.designs.design import unbiased_weights
    from dmsgd.report.page import render
    from dmsgd.report.selection import build_selection

    began = time.perf_counter()
    X, y = files.load()
    echo(f"features  {files.features}: {counted(X.shape[0], 'item')} x {X.shape[1]:,}")
    known = np.array([], dtype=np.int64) if given is None else _given(given, X.shape[0], k)
    with progress_bar("set-up (the first run of all compiles the sampler)"):
        whole = make_kdpp(options, X, k, y)
        design = whole.given(known) if known.size else whole
        chosen = design.greedy_map() if most else design.sample(1, seed)[0]
        chosen = np.concatenate([known, chosen[~np.isin(chosen, known)]])
    spectrum = whole.spectrum
    echo(f"kernel    {options.kernel}: rank {spectrum.rank:,} by the {spectrum.route} route, k {k}")
    columns = {"item": chosen.tolist()}
    if weights:
        columns["weight"] = unbiased_weights(design)[chosen].tolist()
    if known.size:
        columns["given"] = [1] * known.size + [0] * (k - known.size)
        echo(f"given     {counted(known.size, 'item')}, first in the set; {k - known.size:,} new")
    how = "the most likely set, greedily" if most else f"a draw from the k-DPP, seed {seed}"
    if page is not None:
        facts = {"chosen by": how, "kernel": options.describe()}
        if y is not None:
            used = f"count, w = {options.w:g}" if options.uses_labels else "did not count"
            facts["labels"] = used
        with progress_bar("the page"), atomic_write(page, force) as file:
            content = build_selection(spectrum, chosen, known.size, y, facts, seed)
            file.write(render("selection.html", output.name, content).encode())
    with atomic_write(output, force) as file:
        if output.suffix.lower() == ".npy":
            np.save(file, chosen)
        elif output.suffix.lower() == ".txt":
            np.savetxt(file, chosen, fmt="%d")
        else:
            lines = [columns, *zip(*columns.values(), strict=True)]
            file.writelines(f"{','.join(map(str, line))}\n".encode() for line in lines)
    echo(f"chosen    {how}: {counted(k, 'item')} in {time.perf_counter() - began:.2f} s")
    echo(f"written   {output}" + (f" and {page}" if page else ""))
    if y is not None:

        def counts(items: int, drawn: int) -> tuple[str, ...]:
            return f"{items:,}", f"{drawn:,}", f"{k * items / len(y):,.1f}"

        echo_classes(y, chosen, options.uses_labels, ("items", "chosen", "at random"), counts)


def _given(text: str, n: int, k: int) -> IntArray:
    """Return the items that --given names, or that its file holds."""
    from dmsgd.designs.kdpp import as_given
    from dmsgd.files.tables import column_names, read_column
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
