"""`dmsgd select`: from a file of features to one diverse set of items."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dmsgd.commands.data_files import DataFiles
from dmsgd.commands.options import (
    COLUMNS,
    DIVERSITY,
    FORCE,
    LABELS,
    MAPS,
    OUTPUT,
    QUALITY,
    SEED,
    output_option,
    reads_features,
)
from dmsgd.commands.output import atomic_write, check_output
from dmsgd.commands.terminal import echo, echo_classes, echo_error, progress_bar
from dmsgd.errors import as_options
from dmsgd.inputs.messages import cell, counted, few, visible

if TYPE_CHECKING:
    from dmsgd.inputs.arrays import IntArray

#: The column of an output that holds item numbers; characters that a message shows of a list.
NUMBER, SHOWN = ("item",), 200
#: The end of a file of items, or of one of its columns, file.csv:NAME.
FILE = re.compile(r"\.(npy|npz|csv|tsv|parquet|jsonl|zarr|txt)(:.+)?$", re.IGNORECASE)
#: What names items in --given and --exclude.
ITEMS = (
    "numbers such as 3,7,12, ids if there is --id, or a file of them such as an earlier output; "
    "may be repeated."
)


@click.command()
@reads_features(
    (
        click.argument("features"),
        click.option("-k", type=click.IntRange(1), required=True, help="New items to choose."),
        output_option("File to write: .csv, .txt (numbers), .npy.  [default: print CSV]", False),
        click.option("--page", type=OUTPUT, help="Page to write about the set: .html."),
        click.option("--id", help="Id of each item: a column, or a file as for --labels."),
        click.option("--texts", help="Text of each item: a column, or a file as for --labels."),
        click.option("--quality", help=f"{QUALITY}."),
        DIVERSITY,
        click.option("--given", multiple=True, help=f"Items that are there already: {ITEMS}"),
        click.option("--exclude", multiple=True, help=f"Items that must not be chosen: {ITEMS}"),
        click.option(
            "--how",
            type=click.Choice(["cover", "greedy", "draw"]),
            default="cover",
            help="Best first: like the others (cover), or diverse (greedy); or a random draw.",
        ),
        click.option("--labels", help=f"{LABELS} They are counted, and do not change the set."),
        *COLUMNS,
        *MAPS,
        click.option(
            "--normalize",
            is_flag=True,
            help="Scale rows to length 1: for embeddings, counts and images.",
        ),
        SEED,
        FORCE,
    )
)
def select(
    k: int,
    output: Path | None,
    page: Path | None,
    id: str | None,
    texts: str | None,
    quality: str | None,
    diversity: float,
    given: tuple[str, ...],
    exclude: tuple[str, ...],
    how: Literal["cover", "greedy", "draw"],
    rho: float | None,
    standardize: bool,
    normalize: bool,
    seed: int,
    force: bool,
    **named: Any,
) -> None:
    """Choose one diverse set of items, such as what to label next.

    \b
    Examples:
      dmsgd select pool.parquet --columns embedding -k 500 -o chosen.csv
      dmsgd select pool.csv --id name --texts body -k 50 --page chosen.html
      dmsgd select pool.parquet -k 50 --quality score --given chosen.csv
      dmsgd select pool.csv --columns a,b --quality score --how greedy -k 9

    This is dmsgd.select in Python: items are similar by exp(-d²/m), d their distance, m its median
    square. Cover (the default) chooses items to which many others are similar: what to label
    first, or next if --quality is the model's uncertainty, and --given what is labelled. Take the
    greedy set where --quality is relevance; without it, it prefers outliers. Draw a set that is
    diverse and still like the data: to look at, to test on. A line compares the set with random
    ones.
    """
    files = DataFiles.named(named | {"id": id, "texts": texts, "quality": quality})
    lists = [each for each in (*given, *exclude) if FILE.search(each)]
    inputs = [files.features, files.labels, *files.others.values(), *lists]
    if output is not None:
        check_output(output, (".csv", ".txt", ".npy"), inputs, force)
    if page is not None:
        check_output(page, (".html", ".htm"), inputs, force)
    import numpy as np

    from dmsgd.designs.build import rows_for
    from dmsgd.designs.options import DesignOptions
    from dmsgd.report.report import render
    from dmsgd.report.selection import build_selection, compare_with_random
    from dmsgd.selection.select import select as choose

    say = echo_error if output is None else echo
    began = time.perf_counter()
    X, y = files.load()
    n = X.shape[0]
    say(f"features  {files.features}: {counted(n, 'item')} x {X.shape[1]:,}")
    columns = {
        "id": files.entries("--id", n),
        "label": y,
        "quality": files.numbers("--quality", n),
        "text": files.entries("--texts", n),
    }
    about = {name: column for name, column in columns.items() if column is not None}
    ids, own = about.get("id", range(n)), NUMBER if id is None else ("id", id)
    known, barred = _items("--given", given, ids, own), _items("--exclude", exclude, ids, own)
    maps = DesignOptions(rho=rho, standardize=standardize, normalize=normalize or None)
    F = rows_for(maps, X).to_memory()
    with progress_bar("the set (the first run of all compiles the sampler)"):
        chosen = choose(
            F, k, quality=about.get("quality"), diversity=diversity, given=known, exclude=barred,
            how=how, seed=seed,
        )  # fmt: skip
        free = np.setdiff1d(np.arange(n), np.append(known, barred))
        spread = compare_with_random(F, chosen, known, free, seed)
    if known.size or barred.size:
        say(f"given     {counted(known.size, 'item')}; excluded {counted(barred.size, 'item')}")
    ways = {"draw": f"a draw, seed {seed}", "greedy": "greedily, best first"}
    way = ways.get(how, "to cover the others, best first")
    say(f"chosen    {way}: {counted(k, 'item')} in {time.perf_counter() - began:.1f} s")
    say(f"spread    {spread.words()}")
    facts = {"chosen": way, "similarity": "exp(-d²/m), d distance, m its median square"}
    if "quality" in about:
        q = about["quality"]
        facts["quality"] = f"{q[chosen].mean():.3g} on average, {q[free].mean():.3g} at random"
        say(f"quality   {facts['quality']}")
    if page is not None:
        if maps.changed():
            facts["features"] = as_options(maps.changed())
        with progress_bar("the page"), atomic_write(page, force) as file:
            content = build_selection(F, chosen, known, free, spread, about, facts)
            title = (output or page).name
            file.write(render("selection.html", title, content).encode())
    _write(chosen, about, output, force)
    if output or page:
        say(f"written   {' and '.join(str(path) for path in (output, page) if path)}")
    if y is not None and output is not None:

        def counts(items: int, drawn: int) -> tuple[str, ...]:
            return f"{items:,}", f"{drawn:,}", f"{k * items / free.size:,.1f}"

        echo_classes(
            y[free], np.searchsorted(free, chosen), True, ("items", "chosen", "at random"), counts
        )


def _items(option: str, texts: tuple[str, ...], ids: Any, own: tuple[str | None, ...]) -> IntArray:
    """Return the items that --given or --exclude names, or that files of ids hold.

    ids: of all items, their numbers if they have no others; own: columns of files that hold them.
    """
    import numpy as np

    from dmsgd.files.tables import column_names, read_column

    places: dict[str, list[int]] = {}
    for item, each in enumerate(ids if texts else ()):
        for name in {str(each), cell(each)}:  # the latter is in earlier outputs
            places.setdefault(name, []).append(item)
    found: list[int] = []
    for text in texts:
        if FILE.search(text) and text not in places:
            held = column_names(text)
            path = next((f"{text}:{name}" for name in own if name in held), text)
            listed = [str(each) for each in read_column(path).tolist()]
        else:
            listed = [text] if text in places else [each.strip() for each in text.split(",")]
        unknown = [each for each in listed if each not in places]
        if unknown:
            what = counted(len(unknown), "number" if own == NUMBER else "id")
            shown = f"{option} {visible(text, SHOWN)} names {what} that no item has"
            raise ValueError(f"{shown}: {visible(few(unknown), SHOWN)}; give others, or a file")
        found += [item for each in listed for item in places[each]]
    return np.unique(np.array(found, dtype=np.int64))


def _write(chosen: IntArray, about: Mapping[str, Any], output: Path | None, force: bool) -> None:
    """Write the set: item numbers, or a table that has what is known `about` all items, too."""
    import numpy as np

    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["item", *about])
    for item in chosen.tolist():
        writer.writerow([item, *(cell(column[item]) for column in about.values())])
    if output is None:
        for line in table.getvalue().splitlines():
            echo(line)
        return
    with atomic_write(output, force) as file:
        if output.suffix.lower() == ".npy":
            np.save(file, chosen)
        elif output.suffix.lower() == ".txt":
            np.savetxt(file, chosen, fmt="%d")
        else:
            file.write(table.getvalue().encode())
