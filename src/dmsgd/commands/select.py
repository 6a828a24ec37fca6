"""`dmsgd select`: from a file of features to one diverse set of items."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from dmsgd.commands.chosen_set import (
    FILE,
    columns_of,
    facts_of,
    group_numbers,
    named_items,
    write_set,
)
from dmsgd.commands.files import FILES, DataFiles, atomic_write, check_output, load_images
from dmsgd.commands.options import (
    COLUMNS,
    DIVERSITY,
    FORCE,
    IMAGES,
    LABELS,
    MAPS,
    OUTPUT,
    QUALITY,
    TEXTS,
    options_named,
    output_option,
    reads_features,
)
from dmsgd.commands.terminal import echo, echo_classes, echo_error
from dmsgd.errors import as_options
from dmsgd.inputs.messages import counted, require, visible

#: What names items in --given and --exclude.
ITEMS = (
    "numbers such as 3,7,12, ids if there is --id, or a file of them such as an earlier output; "
    "may be repeated."
)
#: Options that name what `dmsgd.select` does not ask for.
NOT_ASKED = (*FILES, "labels", "id", "texts")
SHARE = click.FloatRange(0, 1, min_open=True)
#: How sets are described that are not there to cover.
WAYS = {"medoids": "as medoids, best first", "greedy": "greedily, best first"}


@click.command()
@reads_features
@click.option(
    "-k",
    type=click.IntRange(1),
    help="New items to choose; without it --budget or --until ends the set.",
)
@output_option(
    "File to write: .csv, .parquet, .jsonl; .txt, .npy (numbers).  [default: print CSV]", False
)
@click.option("--page", type=OUTPUT, help="Page to write about the set: .html.")
@click.option("--id", help="Id of each item: a column, or a file as for --labels.")
@TEXTS
@IMAGES
@click.option("--quality", help=f"{QUALITY}.")
@DIVERSITY
@click.option("--given", multiple=True, help=f"Items that are there already: {ITEMS}")
@click.option("--exclude", multiple=True, help=f"Items that must not be chosen: {ITEMS}")
@click.option(
    "--how",
    type=click.Choice(["cover", "medoids", "greedy"]),
    default="cover",
    help="Like the others (cover; medoids, for a first set to label), or diverse (greedy); best "
    "first.",
)
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "cosine", "precomputed"]),
    default="euclidean",
    help="How similarity is found; precomputed: FEATURES holds similarities, such as a graph of "
    "nearest neighbours.",
)
@click.option("--cover", help="Cover the rows of this file instead, with the same features.")
@click.option("--groups", help="Group of each item: a column, or a file as for --labels.")
@click.option(
    "--at-most",
    metavar="N|NAME=N",
    multiple=True,
    help="Items of each group at most, or of the group NAME; may be repeated.",
)
@click.option(
    "--at-least",
    metavar="N|NAME=N",
    multiple=True,
    help="Items of each group at least, or of the group NAME; may be repeated.",
)
@click.option("--costs", help="Cost of each item, such as tokens: a column, or a file.")
@click.option("--budget", type=float, help="What all new items may cost together.")
@click.option("--until", type=SHARE, help="Share that is to be covered, such as 0.9.")
@click.option(
    "--duplicates",
    type=SHARE,
    help="Choose no item that is more similar than this to a chosen one, such as 0.995.",
)
@click.option("--labels", help=f"{LABELS} They are counted, and do not change the set.")
@COLUMNS
@MAPS
@click.option(
    "--normalize", is_flag=True, help="Scale rows to length 1: for embeddings, counts and images."
)
@click.option(
    "--workers", type=int, default=1, help="Threads, -1 for all cores; the result is the same."
)
@FORCE
def select(
    output: Path | None, page: Path | None, images: str | None, rho: float | None,
    standardize: bool, normalize: bool, force: bool, **asked: Any,
) -> None:  # fmt: skip
    """Choose one diverse set of items, such as what to label next.

    \b
    Examples:
      dmsgd select pool.parquet --columns embedding -k 500 -o chosen.csv
      dmsgd select pool.csv --id name --texts body -k 50 --page chosen.html
      dmsgd select pool.parquet -k 50 --quality score --given chosen.csv
      dmsgd select pool.csv --columns a,b --quality score --how greedy -k 9
      dmsgd select pool.parquet --drop score --groups source --at-most 9 -k 15
      dmsgd select pool.parquet --columns embedding --until 0.5 -o set.jsonl

    This is dmsgd.select in Python: items are similar by exp(-d²/m), d their distance, m its median
    square. Cover (the default) chooses items to which many others are similar: what to label
    first, or next if --quality is the model's uncertainty, and --given what is labelled. Medoids
    are a little better to label first. Take the greedy set where --quality is relevance; without
    it, it prefers outliers. A line compares the set with random ones.

    The output has the item numbers, from 0, and the columns of FEATURES that are no features. For
    cover and medoids, gain is the share that an item added, covered the share that is covered with
    it, and stands_for the weight of the items to which it is the nearest. Give the file to --given
    for the next set.
    """
    files = DataFiles.named(asked)
    asked = {name: each for name, each in asked.items() if name not in NOT_ASKED}
    k, how, metric, cover = (asked[name] for name in ("k", "how", "metric", "cover"))
    lists = [each for each in (*asked["given"], *asked["exclude"]) if FILE.search(each)]
    inputs = [*files.inputs(), cover, images, *lists]
    if output is not None:
        from dmsgd.files.writing import OUTPUTS

        check_output(output, OUTPUTS, inputs, force)
        if output.suffix.lower() == ".parquet":
            require("parquet", f"{output}: writing Parquet")
    if page is not None:
        check_output(page, (".html", ".htm"), inputs, force)
    import numpy as np

    from dmsgd.designs.options import DesignOptions
    from dmsgd.designs.recipe import dominating_column, prepared
    from dmsgd.errors import warn_kernel
    from dmsgd.features.map_types import Normalize
    from dmsgd.report.selection import figures_of, selection_page
    from dmsgd.runtime.progress import progress_bar
    from dmsgd.runtime.threads import thread_count
    from dmsgd.selection.result import Selection, selection_of
    from dmsgd.selection.rules import Wishes
    from dmsgd.selection.select import select as choose

    maps = DesignOptions(rho=rho, standardize=standardize, normalize=normalize or None)
    asked["at_most"] = group_numbers("--at-most", asked["at_most"])
    asked["at_least"] = group_numbers("--at-least", asked["at_least"])
    with options_named():
        Wishes(**{each.name: asked.get(each.name) for each in fields(Wishes)}).check(k, how, metric)
        thread_count(asked["workers"])
    if metric == "precomputed" and (maps.changed() or page is not None):
        what = as_options(maps.changed()) or f"--page {page}"
        raise ValueError(f"{what} needs features, and --metric precomputed has similarities")
    say = echo_error if output is None else echo
    began = time.perf_counter()
    X, about = files.load()
    n, pictures = X.shape[0], load_images(images)
    say(f"features  {files.features}: {counted(n, 'item')} x {X.shape[1]:,}")
    ids = about.get("id", range(n))
    own = (files.beside["id"], "id") if "id" in about else ("item",)
    known = named_items("--given", asked["given"], ids, own)
    barred = named_items("--exclude", asked["exclude"], ids, own)
    free = np.setdiff1d(np.arange(n), np.append(known, barred))
    asked |= {"given": known, "exclude": barred, "details": how != "greedy"}
    asked |= {"quality": about.get("quality"), "groups": about.get("group")}
    asked["costs"] = about.get("cost")
    if cover is not None:
        asked["cover"] = prepared(maps, files.load_like("--cover", cover, X.shape[1]), X)
    F, other = X if metric == "precomputed" else prepared(maps, X), visible(cover or "")
    if metric == "precomputed" and n != X.shape[1]:
        other = "the columns"
    if metric == "euclidean" and F.d > 1 and (wide := dominating_column(F)):
        names = files.feature_names()
        name = names[wide[0]] if len(names) == F.d else f"{wide[0]} (from 0)"
        warn_kernel(
            f"column {name!r} makes {wide[1]:.2%} of all squared distances, so the set covers "
            f"little else: drop it if it is not a feature, or standardize if columns are in "
            f"different units",
            standardize=True,
        )
    with progress_bar("the set (the first run of all compiles the sampler)"), options_named():
        found = choose(F.to_memory().unwrap() if metric == "precomputed" else F, **asked)
        F = F.mapped(Normalize()) if metric == "cosine" else F
        if not isinstance(found, Selection):
            found = selection_of(F, found, known, free)
        figures = figures_of(
            None if metric == "precomputed" else F, found, known, free,
            "greedy" if how == "greedy" else "cover", other,
        )  # fmt: skip
    if known.size or barred.size:
        say(f"given     {counted(known.size, 'item')}; excluded {counted(barred.size, 'item')}")
    way = WAYS.get(how, f"to cover {other or 'the others'}, best first")
    say(f"chosen    {way}: {counted(len(found), 'item')} in {time.perf_counter() - began:.1f} s")
    say(f"{'spread' if how == 'greedy' else 'coverage':8}  {'; '.join(figures.sentences())}")
    facts = {"chosen": way, **facts_of(about, found, free, asked)}
    for name in ("quality", "groups", "spent"):
        if name in facts:
            say(f"{name:8}  {facts[name]}")
    suffix = ".csv" if output is None else output.suffix.lower()
    columns = columns_of(files, found, how != "greedy", about, n, suffix)
    html = ""
    if page is not None:
        if maps.changed():
            facts["features"] = as_options(maps.changed())
        with progress_bar("the page"):
            html = selection_page(F, figures, about, facts, (output or page).name, pictures)
    write_set(output, columns, force)
    if page is not None:
        with atomic_write(page, force) as file:
            file.write(html.encode())
    if output or page:
        say(f"written   {' and '.join(str(path) for path in (output, page) if path)}")
    if "label" in about and output is not None:
        cells = {
            "items": lambda items, drawn: f"{items:,}",
            "chosen": lambda items, drawn: f"{drawn:,}",
            "at random": lambda items, drawn: f"{len(found) * items / free.size:,.1f}",
        }
        echo_classes(about["label"][free], np.searchsorted(free, found.items), cells)
