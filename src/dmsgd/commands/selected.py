"""What `dmsgd select` writes and shows of the set that it has chosen."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmsgd.commands.arguments import replacing
from dmsgd.commands.class_table import class_table
from dmsgd.commands.terminal import working

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.designs import KDPP, DesignOptions
    from dmsgd.designs.conditioned import Conditioned
    from dmsgd.inputs.arrays import FloatArray, IntArray


def columns_of(
    design: KDPP | Conditioned, chosen: IntArray, known: IntArray | None, weights: bool
) -> dict[str, IntArray | FloatArray]:
    """Return the columns of the table."""
    import numpy as np

    from dmsgd.designs import unbiased_weights

    columns: dict[str, IntArray | FloatArray] = {"item": chosen}
    if weights:
        columns["weight"] = unbiased_weights(design)[chosen]
    if known is not None:
        columns["given"] = np.isin(chosen, known).astype(np.int64)
    return columns


def as_bytes(output: Path, columns: dict[str, IntArray | FloatArray]) -> bytes:
    """Return the file: all columns in a .csv, the items alone in others."""
    import numpy as np

    file, kind = io.BytesIO(), output.suffix.lower()
    if kind == ".npy":
        np.save(file, columns["item"])
    elif kind == ".txt":
        np.savetxt(file, columns["item"], fmt="%d")
    else:
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows)]
        file.write("".join(f"{line}\n" for line in lines).encode())
    return file.getvalue()


def write(path: Path, content: bytes, force: bool) -> None:
    """Write a file whole, or leave what is there."""
    with replacing(path, force) as file:
        file.write(content)


def page_of(
    whole: KDPP,
    chosen: IntArray,
    known: IntArray | None,
    y: Any,
    facts: dict[str, str],
    title: str,
    seed: int,
) -> bytes:
    """Return the page about the set."""
    from dmsgd.report.selection import build_selection, render_selection

    given = 0 if known is None else known.size
    with working("the page"):
        content = build_selection(whole.spectrum, chosen, given, y, facts, seed)
        return render_selection(content, title).encode()


def labels_in_words(settings: DesignOptions) -> str:
    """Return what the labels were used for."""
    if settings.w > 0:
        return f"mixed in with w = {settings.w:g}"
    return "count for the target" if settings.uses_labels else "did not count"


def counts(y: Any, chosen: IntArray) -> Table:
    """Return the table of classes: how many items are chosen, and would be at random."""

    def cells(items: int, drawn: int) -> tuple[str, ...]:
        return f"{items:,}", f"{drawn:,}", f"{chosen.size * items / len(y):,.1f}"

    return class_table(y, chosen, ("items", "chosen", "at random"), cells)
