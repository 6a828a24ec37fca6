"""The table of classes that `sample` and `select` show of what they drew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from dmsgd.inputs.arrays import IntArray

#: With more classes than this the table shows the largest and the rarest only.
CLASSES_SHOWN = 12
#: Characters of a class's name that are shown.
NAME = 40


def class_table(
    y: Any,
    drawn: IntArray,
    headings: tuple[str, ...],
    cells: Callable[[int, int], tuple[str, ...]],
) -> Table:
    """Return a row for each class of the labels y: its name, and cells(items, how many are drawn).

    drawn: item numbers, in an array of any shape.
    """
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    from dmsgd.inputs.messages import visible

    names, codes, items = np.unique(y, return_inverse=True, return_counts=True)
    counts = np.bincount(codes[drawn].ravel(), minlength=names.size)
    shown = np.arange(names.size)
    if names.size > CLASSES_SHOWN:
        shown = np.argsort(-items, kind="stable")
        shown = np.concatenate([shown[: CLASSES_SHOWN // 2], shown[-CLASSES_SHOWN // 2 :]])
    table = Table(box=None, pad_edge=False)
    table.add_column("class", no_wrap=True, max_width=NAME)
    for heading in headings:
        table.add_column(heading, justify="right")
    for c in shown:
        table.add_row(Text(visible(names[c], NAME)), *cells(int(items[c]), int(counts[c])))
    return table
