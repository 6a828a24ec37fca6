"""What `dmsgd select` knows about items, and tells and writes about those that were chosen."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmsgd.commands.data_files import DataFiles
from dmsgd.commands.named_items import NUMBER, check_ids
from dmsgd.commands.output import atomic_write
from dmsgd.commands.terminal import echo
from dmsgd.inputs.messages import few, number, visible

if TYPE_CHECKING:
    from dmsgd.files.chosen_rows import Column
    from dmsgd.inputs.arrays import IntArray
    from dmsgd.selection.result import Selection

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
        check_ids(files.beside["--id"], found["id"])
    return {name: column for name, column in found.items() if column is not None}


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

    from dmsgd.files.chosen_rows import NUMBERS_ALONE, distinct_names, read_rows

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
    own = read_rows(files.features, chosen, n, files.feature_names(), verbatim=suffix == ".csv")
    return distinct_names(found, own)


def write_set(output: Path | None, columns: list[Column], force: bool) -> None:
    """Write a set to a file, or print it as CSV."""
    from dmsgd.files.chosen_rows import write_rows

    if output is not None:
        with atomic_write(output, force) as file:
            write_rows(file, output.suffix.lower(), columns)
        return
    table = io.BytesIO()
    write_rows(table, ".csv", columns)
    for line in table.getvalue().decode().splitlines():
        echo(line)
