"""`dmsgd select`: from a file of features to one diverse set of items."""

from __future__ import annotations

from typing import Any

import click

from dmsgd.commands import options

#: What names items in --given and --exclude.
ITEMS = (
    "numbers such as 3,7,12, ids if there is --id, or a file of them such as an earlier output; "
    "may be repeated."
)
SHARE = click.FloatRange(0, 1, min_open=True)


@click.command()
@options.reads_features
@click.option(
    "-k",
    type=click.IntRange(1),
    help="New items to choose; without it --budget or --until ends the set.",
)
@options.output_option(
    "File to write: .csv, .parquet, .jsonl; .txt, .npy (numbers).  [default: print CSV]", False
)
@click.option("--page", type=options.OUTPUT, help="Page to write about the set: .html.")
@click.option("--id", help="Id of each item: a column, or a file as for --labels.")
@options.TEXTS
@options.IMAGES
@click.option("--quality", help=f"{options.QUALITY}.")
@options.DIVERSITY
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
@click.option(
    "--m",
    type=click.FloatRange(0, min_open=True),
    help="m of the similarity exp(-d²/m), as an earlier round printed it, so that rounds can be "
    "compared.",
)
@click.option("--labels", help=f"{options.LABELS} They are counted, and do not change the set.")
@options.COLUMNS
@options.MAPS
@click.option(
    "--normalize", is_flag=True, help="Scale rows to length 1: for embeddings, counts and images."
)
@click.option(
    "--workers", type=int, default=1, help="Threads, -1 for all cores; the result is the same."
)
@options.FORCE
def select(**given: Any) -> None:
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
    from dmsgd.commands.chosen_set import choose

    choose(**given)
