"""`dmsgd select`: from a file of features to one diverse set of items."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmsgd.commands.arguments import Force, Seed, refuse_output
from dmsgd.commands.asked import Asked, asking
from dmsgd.commands.selected import (
    as_bytes,
    columns_of,
    counts,
    labels_in_words,
    page_of,
    write,
)
from dmsgd.commands.terminal import say, show, working
from dmsgd.inputs.messages import counted

if TYPE_CHECKING:
    from dmsgd.designs import KDPP
    from dmsgd.designs.conditioned import Conditioned
    from dmsgd.inputs.arrays import IntArray

#: Item numbers, as --given takes them.
NUMBERS = re.compile(r"\s*\d{1,18}\s*(,\s*\d{1,18}\s*)*", re.ASCII)


@asking
def select(
    asked: Asked,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .csv, .txt (a number a line) or .npy."),
    ],
    given: Annotated[
        str | None,
        typer.Option(
            metavar="ITEMS",
            help="Items that are in the set already: numbers such as 3,7,12, or a file of them "
            "(.txt, .npy, .csv, such as an earlier output).",
        ),
    ] = None,
    most: Annotated[
        bool,
        typer.Option(
            "--most",
            help="The most likely set, found greedily, best first, instead of a draw.",
        ),
    ] = False,
    weights: Annotated[
        bool,
        typer.Option(
            "--weights",
            help="Add a column with which sums over the set estimate means over all items (.csv).",
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(help="Page to write about the set: .html."),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
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
    sample` with the same options, with --given from its batches that contain these items, which
    count for -k and come first. The weight of item i is 1 / (N b_i), b_i being the probability that
    it is in the set (1 if it is given): the sum of weight times y over the set has the mean of y
    over all N items as its expectation. The most likely set has no such weights.
    """
    _refuse(output, page, [asked.features, asked.labels, given], most, weights, force)
    from dmsgd.designs.build import make_kdpp
    from dmsgd.inputs.scalars import as_count, seed_key

    # Asked here so that bad values are refused before the work rather than after it.
    as_count(asked.k, "k")
    seed_key(seed)
    settings = asked.settings()
    began = time.perf_counter()
    X, y = asked.load()
    say(f"features  {asked.features}: {counted(X.shape[0], 'item')} x {X.shape[1]:,}")
    known = None if given is None else _given(given, X.shape[0], asked.k)
    with working("set-up (the first run of all compiles the sampler)"):
        whole = make_kdpp(settings, X, asked.k, y)
        design: KDPP | Conditioned = whole if known is None else whole.given(known)
        chosen = _chosen(design, known, most, seed)
    spectrum = whole.spectrum
    say(
        f"kernel    {settings.kernel}: rank {spectrum.rank:,} by the {spectrum.route} route, "
        f"k {asked.k}"
    )
    if known is not None:
        new = asked.k - known.size
        say(f"given     {counted(known.size, 'item')}, first in the set; {new:,} new")
    how = "the most likely set, greedily" if most else f"a draw from the k-DPP, seed {seed}"
    written = as_bytes(output, columns_of(design, chosen, known, weights))
    if page is not None:
        facts = {"chosen by": how, "kernel": settings.describe()}
        if y is not None:
            facts["labels"] = labels_in_words(settings)
        write(page, page_of(whole, chosen, known, y, facts, output.name, seed), force)
    write(output, written, force)
    say(f"chosen    {how}: {counted(asked.k, 'item')} in {time.perf_counter() - began:.2f} s")
    say(f"written   {output}" + (f" and {page}" if page else ""))
    if y is not None:
        if not settings.uses_labels:
            say("labels    did not count for the set; -w 0.7 would mix them in")
        show(counts(y, chosen))


def _refuse(
    output: Path,
    page: Path | None,
    inputs: list[str | None],
    most: bool,
    weights: bool,
    force: bool,
) -> None:
    """Raise unless both files can be written, and hold what is asked for."""
    refuse_output(output, (".csv", ".txt", ".npy"), inputs, force)
    if page is not None:
        refuse_output(page, (".html", ".htm"), inputs, force)
    if weights and most:
        raise ValueError(
            "--weights are of a draw, and --most is none: nothing is known of how likely its items "
            "are; leave one of them out"
        )
    if weights and output.suffix.lower() != ".csv":
        raise ValueError(f"--weights are a column of a table; write to {output.stem}.csv")


def _given(text: str, n: int, k: int) -> IntArray:
    """Return the items that --given names, or that its file holds."""
    from dmsgd.commands.loading import load_labels
    from dmsgd.designs.conditioned import as_given
    from dmsgd.files.tables import column_names
    from dmsgd.inputs.arrays import as_items

    if NUMBERS.fullmatch(text):
        items: Any = [int(number) for number in text.split(",")]
    elif not Path(text).suffix:
        raise ValueError(
            f"--given {text!r} is neither item numbers such as 3,7,12 nor a file of them"
        )
    else:
        items = load_labels(f"{text}:item" if "item" in column_names(text) else text)
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
