"""Items that `dmsgd select` is told about, and what it tells and writes about the chosen ones."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmsgd.commands.data_files import DataFiles
from dmsgd.commands.output import atomic_write
from dmsgd.commands.terminal import echo
from dmsgd.inputs.messages import cell, counted, few, number, visible

if TYPE_CHECKING:
    from dmsgd.files.contract import Column
    from dmsgd.inputs.arrays import IntArray
    from dmsgd.selection.result import Selection

#: The column of an output that holds item numbers; characters that a message shows of a list.
NUMBER, SHOWN = "item", 200
#: The end of a file of items, or of one of its columns, file.csv:NAME.
FILE = re.compile(r"\.(npy|npz|csv|tsv|parquet|jsonl|zarr|txt)(:.+)?$", re.IGNORECASE)
#: What is known about items, and the option that names it.
KNOWN = {
    "id": "--id",
    "label": "--labels",
    "quality": "--quality",
    "text": "--texts",
    "group": "--groups",
    "cost": "--costs",
}
#: How similarity is found.
SIMILARITY = {
    "euclidean": "exp(-d²/m), d distance, m ",
    "cosine": "exp(-d²/m), d distance of rows of length 1, m ",
    "precomputed": "as given",
}
#: Characters that are shown of the name of a group.
NAME = 40


def read_about(files: DataFiles, y: Any, n: int) -> dict[str, Any]:
    """Return the optional columns (id, label, quality, ...) that were given, by name."""
    found = {
        "id": files.entries("--id", n),
        "label": y,
        "quality": files.numbers("--quality", n),
        "text": files.entries("--texts", n),
        "group": files.classes("--groups", n),
        "cost": files.numbers("--costs", n),
    }
    if found["id"] is not None:
        (commonest, times), *_ = Counter(map(str, found["id"])).most_common(1)
        if times > 1:
            raise ValueError(
                f"--id {files.beside['--id']} must tell items apart, but "
                f"{visible(repr(commonest), SHOWN)} occurs {times:,} times; name another column, "
                f"or leave --id out"
            )
    return {name: column for name, column in found.items() if column is not None}


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
        unknown = [each for each in listed if each not in places]
        if unknown:
            what = counted(len(unknown), "number" if NUMBER in columns else "id")
            shown = f"{option} {visible(text, SHOWN)} names {what} that no item has"
            raise ValueError(f"{shown}: {visible(few(unknown), SHOWN)}; give others, or a file")
        found |= {places[each] for each in listed}
    return np.array(sorted(found), dtype=np.int64)


def facts_of(
    about: Mapping[str, Any],
    chosen: IntArray,
    free: IntArray,
    metric: str,
    covering: Selection | None,
    budget: float | None,
) -> dict[str, str]:
    """Return facts about a set, by name, in words."""
    import numpy as np

    facts = {"similarity": SIMILARITY[metric]}
    if metric != "precomputed":
        scale = "its median square" if covering is None else f"= {number(covering.scale, 3)}"
        facts["similarity"] += scale
    if "quality" in about and chosen.size:
        ours, random = (number(about["quality"][items].mean(), 3) for items in (chosen, free))
        facts["quality"] = f"{ours} on average, {random} at random"
    if "group" in about and chosen.size:
        names, counts = np.unique(about["group"][chosen], return_counts=True)
        pairs = sorted(zip(counts.tolist(), names.tolist(), strict=True), key=lambda each: -each[0])
        facts["groups"] = few([f"{visible(name, NAME)} {count:,}" for count, name in pairs])
    if covering is not None and covering.spent is not None:
        facts["spent"] = f"{covering.spent:g} of {budget:g}"
    return facts


def columns_of(
    files: DataFiles,
    chosen: IntArray,
    covering: Selection | None,
    about: Mapping[str, Any],
    n: int,
    suffix: str,
) -> list[Column]:
    """Return the table of a set: item numbers, what each adds, what is known, its own columns.

    suffix: of the file that it is for.
    """
    import numpy as np

    from dmsgd.files.writing import NUMBERS_ALONE

    found: list[Column] = [(NUMBER, chosen)]
    if suffix in NUMBERS_ALONE:
        return found
    if covering is not None:
        numbers = {"gain": covering.gains, "covered": covering.coverage[1:]}
        numbers["stands_for"] = covering.stands_for
        for name, column in numbers.items():
            digits = [float(f"{number:.6g}") for number in column.tolist()]
            found.append((name, np.array(digits, dtype=np.float64)))
    for name, column in about.items():
        if files.beside[KNOWN[name]] not in files.names:
            found.append((name, column[chosen]))
    if files.table is None:
        return found
    leave_out = set(files.feature_names())
    own, rows = files.table.rows(chosen, leave_out, verbatim=suffix == ".csv")
    if rows != n:
        raise ValueError(
            f"{files.features} has {rows:,} rows and had {n:,}: it changed meanwhile; try again"
        )
    taken = {name for name, _ in found}
    for name, column in own:
        while name in taken:
            name = f"input_{name}"
        taken.add(name)
        found.append((name, column))
    return found


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
