"""Items that `dmsgd select` is told about, and what it tells and writes about the chosen ones."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmsgd.commands.files import KNOWN, DataFiles, atomic_write
from dmsgd.commands.terminal import echo
from dmsgd.inputs.messages import cell, counted, few, number, visible

if TYPE_CHECKING:
    from dmsgd.files.contract import Column
    from dmsgd.inputs.arrays import IntArray
    from dmsgd.selection.result import Selection

#: Characters that a message shows of a list, and of the name of a group.
SHOWN, NAME = 200, 40
#: The end of a file of items, or of one of its columns, file.csv:NAME.
FILE = re.compile(r"\.(npy|npz|csv|tsv|parquet|jsonl|zarr|txt)(:.+)?$", re.IGNORECASE)


def named_items(option: str, texts: tuple[str, ...], ids: Any, columns: Sequence[str]) -> IntArray:
    """Return the items that --given or --exclude names, or that files of ids hold, sorted.

    ids:     of all items, each once; their numbers if they have no others.
    columns: names of the column of a file that holds ids.
    """
    import numpy as np

    from dmsgd.files.tables import column_names, read_entries

    places: dict[str, int] = {}
    if texts:
        places = {cell(each): item for item, each in enumerate(ids)}  # as in an earlier output
        places |= {str(each): item for item, each in enumerate(ids)}
    found: set[int] = set()
    for text in texts:
        if FILE.search(text) and text not in places:
            held = column_names(text)
            path = next((f"{text}:{name}" for name in columns if name in held), text)
            listed = [str(each) for each in read_entries(path).tolist()]
        else:
            listed = [text] if text in places else text.split(",")
        listed = [each if each in places else each.strip() for each in listed]
        if unknown := [each for each in listed if each not in places]:
            what = counted(len(unknown), "number" if "item" in columns else "id")
            shown = f"{option} {visible(text, SHOWN)} names {what} that no item has"
            raise ValueError(f"{shown}: {visible(few(unknown), SHOWN)}; give others, or a file")
        found |= {places[each] for each in listed}
    return np.array(sorted(found), dtype=np.int64)


def group_numbers(option: str, texts: tuple[str, ...]) -> int | dict[str, int] | None:
    """Return what --at-most or --at-least says: one number for all groups, or some by name."""
    found: dict[str, int] = {}
    for text in texts:
        name, _, digits = text.rpartition("=")
        if not re.fullmatch("[0-9]{1,18}", digits.strip(), re.ASCII):
            raise ValueError(
                f"{option} {visible(text, SHOWN)} is no number of items; give one for all groups, "
                f"such as {option} 50, or one for a group, such as {option} web=50"
            )
        if name in found or "" in found or (found and not name):
            raise ValueError(
                f"{option} is given twice for {visible(name or 'a group', NAME)}; give one number "
                f"for all groups, or one for each of some"
            )
        found[name] = int(digits)
    return found.get("", found or None)


def facts_of(
    about: Mapping[str, Any], found: Selection, free: IntArray, asked: Mapping[str, Any]
) -> dict[str, str]:
    """Return facts about a set, by name, in words; asked: the arguments of `dmsgd.select`."""
    import numpy as np

    facts = {"similarity": "as given"}
    if asked["metric"] != "precomputed":
        rows = " of rows of length 1" * (asked["metric"] == "cosine")
        facts["similarity"] = f"exp(-d²/m), d distance{rows}, m = {number(found.scale, 3)}"
    if "quality" in about and len(found):
        ours, random = (number(about["quality"][each].mean(), 3) for each in (found.items, free))
        facts["quality"] = f"{ours} on average, {random} at random"
    if "group" in about and len(found):
        names, counts = np.unique(about["group"][found.items], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        facts["groups"] = few([f"{visible(names[i], NAME)} {counts[i]:,}" for i in order])
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
    import numpy as np

    from dmsgd.files.writing import NUMBERS_ALONE

    columns: list[Column] = [("item", found.items)]
    if suffix in NUMBERS_ALONE:
        return columns
    if gains:
        numbers = {"gain": found.gains, "covered": found.coverage[1:]}
        for name, column in (numbers | {"stands_for": found.stands_for}).items():
            digits = [float(f"{each:.6g}") for each in column.tolist()]
            columns.append((name, np.array(digits, dtype=np.float64)))
    of_files = {KNOWN[name] for name, path in files.beside.items() if path not in files.names}
    columns += [(name, column[found.items]) for name, column in about.items() if name in of_files]
    if files.table is None:
        return columns
    own, rows = files.table.rows(found.items, set(files.feature_names()), suffix == ".csv")
    if rows != n:
        raise ValueError(
            f"{files.features} has {rows:,} rows and had {n:,}: it changed meanwhile; try again"
        )
    taken = {name for name, _ in columns}
    for name, column in own:
        while name in taken:
            name = f"input_{name}"
        taken.add(name)
        columns.append((name, column))
    return columns


def write_set(output: Path | None, columns: list[Column], force: bool) -> None:
    """Write a set to a file, or print it as CSV."""
    from dmsgd.files.writing import write_rows

    if output is not None:
        with atomic_write(output, force) as file:
            write_rows(file, output.suffix.lower(), columns)
        return
    table = io.BytesIO()
    write_rows(table, ".csv", columns)
    for line in table.getvalue().decode().splitlines():
        echo(line)
