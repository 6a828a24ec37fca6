"""What `dmsgd select` does: items that it is told about, the chosen ones, and what it writes."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from dmsgd.commands.files import FILES, KNOWN, PAGES, DataFiles, check_output, load_images, write
from dmsgd.commands.terminal import echo, echo_classes, echo_error
from dmsgd.designs.build import prepared, warn_dominating_column
from dmsgd.designs.options import DesignOptions
from dmsgd.errors import as_options
from dmsgd.features.maps import Normalize
from dmsgd.files.contract import Column
from dmsgd.files.tables import NUMBERS_ALONE, OUTPUTS, column_names, read_entries, write_rows
from dmsgd.inputs.arrays import IntArray
from dmsgd.inputs.messages import cell, counted, few, number, require, visible
from dmsgd.report.selection import SetFigures, selection_page
from dmsgd.runtime.progress import progress_bar
from dmsgd.runtime.threads import thread_count
from dmsgd.selection import select as selection
from dmsgd.selection.result import Selection, selection_of
from dmsgd.selection.rules import Wishes

#: Characters that a message shows of a list, and of the name of a group.
SHOWN, NAME = 200, 40
#: The end of a file of items, or of one of its columns, file.csv:NAME.
FILE = re.compile(r"\.(npy|npz|csv|tsv|parquet|jsonl|zarr|txt)(:.+)?$", re.IGNORECASE)
#: Columns of an output beside those of the input and of options, and what columns of the input
#: begin with whose name is taken.
OWN, PREFIX = ("item", "gain", "covered", "stands_for"), re.compile("^(input_)+")
#: Options that are no arguments of `dmsgd.select`.
NOT_ASKED = (*FILES, "labels", "id", "texts", "rho", "standardize", "normalize")
#: How sets are described that are not there to cover.
WAYS = {"medoids": "as medoids, best first", "greedy": "greedily, best first"}


def choose(
    output: Path | None, page: Path | None, images: str | None, force: bool, **given: Any
) -> None:
    """Choose, describe and write a set.

    given: what `DataFiles` names, what is done to features, and arguments of `dmsgd.select`.
    """
    files, normalize = DataFiles.named(given), given["normalize"] or None
    maps = DesignOptions(rho=given["rho"], standardize=given["standardize"], normalize=normalize)
    asked = {name: each for name, each in given.items() if name not in NOT_ASKED}
    k, how, metric, cover = (asked[name] for name in ("k", "how", "metric", "cover"))
    lists = [each for each in (*asked["given"], *asked["exclude"]) if FILE.search(each)]
    inputs = [*files.inputs(), cover, images, *lists]
    suffix = ".csv" if output is None else output.suffix.lower()
    check_output(output, OUTPUTS, inputs, force)
    check_output(page, PAGES, inputs, force)
    if suffix == ".parquet":
        require("parquet", f"{output}: writing Parquet")
    asked["at_most"] = group_numbers("--at-most", asked["at_most"])
    asked["at_least"] = group_numbers("--at-least", asked["at_least"])
    Wishes(**{each.name: asked.get(each.name) for each in fields(Wishes)}).check(k, how, metric)
    thread_count(asked["workers"])
    if metric == "precomputed" and (maps.changed() or page is not None):
        what = as_options(maps.changed()) or f"--page {page}"
        raise ValueError(f"{what} needs features, and --metric precomputed has similarities")
    say, began = echo_error if output is None else echo, time.perf_counter()
    X, about = files.load()
    n, pictures = X.shape[0], load_images(images)
    say(f"features  {files.features}: {counted(n, 'item')} x {X.shape[1]:,}")
    ids = about.get("id", range(n))
    known = named_items("--given", asked["given"], ids, files)
    barred = named_items("--exclude", asked["exclude"], ids, files)
    free = np.setdiff1d(np.arange(n), np.append(known, barred))
    asked |= {"given": known, "exclude": barred, "details": how != "greedy"}
    asked |= {name: about.get(KNOWN[name]) for name in ("quality", "groups", "costs")}
    if cover is not None:
        asked["cover"] = prepared(maps, files.load_like(cover, X.shape[1]), X)
    F, other = prepared(maps, X), visible(cover or "")
    if metric == "precomputed" and n != X.shape[1]:
        other = "the columns"
    if metric == "euclidean" and F.d > 1:
        effect = "the set covers little else"
        warn_dominating_column(F, effect, names=files.feature_names())
    with progress_bar("the set"):
        found = selection.select(F.to_memory().unwrap() if metric == "precomputed" else F, **asked)
        F = F.mapped(Normalize()) if metric == "cosine" else F
        if not isinstance(found, Selection):
            found = selection_of(F, found, known, free)
        figures = SetFigures(found, known, free, how == "greedy", other)
    if known.size or barred.size:
        say(f"given     {counted(known.size, 'item')}; excluded {counted(barred.size, 'item')}")
    way = WAYS.get(how, f"to cover {other or 'the others'}, best first")
    say(f"chosen    {way}: {counted(len(found), 'item')} in {time.perf_counter() - began:.1f} s")
    say(f"coverage  {'; '.join(figures.sentences())}")
    facts = facts_of(about, found, free, asked)
    for name, text in facts.items():
        say(f"{name:8}  {text}")
    table = io.BytesIO()
    write_rows(table, suffix, columns_of(files, found, how != "greedy", about, n, suffix))
    written = {} if output is None else {output: table.getvalue()}
    if page is not None:
        rows = " of rows of length 1" * (metric == "cosine")
        measure = f"exp(-d²/m), d distance{rows}, m = {found.m:.6g}"
        facts = {"chosen": way, "similarity": measure, **facts}
        if maps.changed():
            facts["features"] = as_options(maps.changed())
        with progress_bar("the page"):
            html = selection_page(F, figures, about, facts, (output or page).name, pictures)
        written[page] = html.encode()
    write(written, force)
    for line in table.getvalue().decode().splitlines() if output is None else ():
        echo(line)
    if written:
        say(f"written   {' and '.join(map(str, written))}")
    if "label" in about and output is not None:
        cells = {
            "chosen": lambda items, drawn: f"{drawn:,}",
            "at random": lambda items, drawn: f"{len(found) * items / free.size:,.1f}",
        }
        echo_classes(about["label"][free], np.searchsorted(free, found.items), cells)


def named_items(option: str, texts: tuple[str, ...], ids: Any, files: DataFiles) -> IntArray:
    """Return the items that --given or --exclude names, or that files of ids hold, sorted.

    ids: of all items, each once; their numbers if they have no others.
    """
    kinds = (cell, str) if texts else ()  # `cell`: as in an earlier output
    places = {kind(each): item for kind in kinds for item, each in enumerate(ids)}
    found: set[int] = set()
    for text in texts:
        listed = [text] if text in places else text.split(",")
        if text not in places and FILE.search(text):
            name = id_column(files, column_names(text))
            path = text if name is None else f"{text}:{name}"
            listed = [str(each) for each in read_entries(path).tolist()]
        listed = [each if each in places else each.strip() for each in listed]
        if unknown := [each for each in listed if each not in places]:
            what = counted(len(unknown), "id" if "id" in files.beside else "number")
            shown = f"{option} {visible(text, SHOWN)} names {what} that no item has"
            raise ValueError(f"{shown}: {visible(few(unknown), SHOWN)}; give others, or a file")
        found |= {places[each] for each in listed}
    return np.array(sorted(found), dtype=np.int64)


def id_column(files: DataFiles, held: Sequence[str]) -> str | None:
    """Return which column of a file, of those it has, names items; None if none does.

    In an output the column of --id begins with `input_` if the output has one of that name.
    """
    given = files.beside.get("id")
    names = ["item"] if given is None else [given, "id"]
    if given in files.names:
        features = set(files.feature_names())
        alike = [each for each in files.names if PREFIX.sub("", each) == PREFIX.sub("", given)]
        alike = [each for each in alike if each not in features]
        renamed = output_names(alike, (*OWN, *KNOWN.values()))
        if set(renamed) <= set(held):
            names.insert(0, renamed[alike.index(given)])
    return next((name for name in names if name in held), None)


def output_names(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return the names that columns of the input have in an output where some are taken."""
    found: list[str] = []
    known = set(taken)
    for name in names:
        while name in known:
            name = f"input_{name}"
        known.add(name)
        found.append(name)
    return found


def group_numbers(option: str, texts: tuple[str, ...]) -> int | dict[str, int] | None:
    """Return what --at-most or --at-least says: one number for all groups, or some by name."""
    found: dict[str, int] = {}
    for text in texts:
        (name, _, digits), problem = text.rpartition("="), ""
        if not re.fullmatch("[0-9]{1,18}", digits.strip(), re.ASCII):
            problem = f"{visible(text, SHOWN)} is no number of items"
        elif name in found or "" in found or (found and not name):
            problem = f"is given twice for {visible(name or 'a group', NAME)}"
        if problem:
            raise ValueError(
                f"{option} {problem}; give one number for all groups, such as {option} 50, or one "
                f"for each of some, such as {option} web=50"
            )
        found[name] = int(digits)
    return found.get("", found or None)


def facts_of(
    about: Mapping[str, Any], found: Selection, free: IntArray, asked: Mapping[str, Any]
) -> dict[str, str]:
    """Return facts about a set, by name, in words; asked: the arguments of `dmsgd.select`."""
    facts = {}
    if "quality" in about and len(found):
        ours, random = (number(about["quality"][each].mean(), 3) for each in (found.items, free))
        facts["quality"] = f"{ours} on average, {random} at random"
    if "group" in about and len(found):
        names, counts = np.unique(about["group"][found.items], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        facts["groups"] = few(f"{visible(names[i], NAME)} {counts[i]:,}" for i in order)
    if found.spent is not None:
        facts["spent"] = f"{found.spent:g} of {asked['budget']:g}"
    return facts


def columns_of(
    files: DataFiles, found: Selection, gains: bool, about: Mapping[str, Any], n: int, suffix: str
) -> list[Column]:
    """Return the table of a set: item numbers, what each adds, what is known, its own columns.

    gains:  whether what each adds belongs to it.
    suffix: of the file that it is for.
    """
    columns: list[Column] = [(OWN[0], found.items)]
    if suffix in NUMBERS_ALONE:
        return columns
    if gains:
        numbers = found.gains, found.coverage[1:], found.stands_for
        for name, column in zip(OWN[1:], numbers, strict=True):
            columns.append((name, np.array([float(f"{each:.6g}") for each in column.tolist()])))
    of_files = {KNOWN[name] for name, path in files.beside.items() if path not in files.names}
    columns += [(name, column[found.items]) for name, column in about.items() if name in of_files]
    if files.table is None:
        return columns
    own, rows = files.table.rows(found.items, set(files.feature_names()), suffix == ".csv")
    if rows != n:
        raise ValueError(
            f"{files.features} has {rows:,} rows and had {n:,}: it changed meanwhile; try again"
        )
    names = output_names((name for name, _ in own), (name for name, _ in columns))
    return columns + list(zip(names, (column for _, column in own), strict=True))
