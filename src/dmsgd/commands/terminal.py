"""Print lines and tables, and finish the work when the terminal is lost."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dmsgd.inputs.messages import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dmsgd.inputs.arrays import IntArray

#: With more classes than this, tables show the commonest and the rarest only.
CLASSES_SHOWN = 12
#: Characters of a class's name that are shown.
NAME = 40


def echo(what: str | Table = "", *, wrapped: bool = False) -> None:
    """Print a line or a table to standard output; `wrapped` breaks lines at the terminal's end."""
    if isinstance(what, str):
        _console().print(visible(what), soft_wrap=not wrapped)
    else:
        _console().print(what)


def echo_error(line: str) -> None:
    """Print one line to standard error."""
    click.echo(visible(line), err=True)


def _console() -> Console:
    """Return a console that takes text for text: no markup, no emoji."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def echo_classes(
    y: Any,
    drawn: IntArray,
    used: bool,
    headings: tuple[str, ...],
    cells: Callable[[int, int], tuple[str, ...]],
) -> None:
    """Print a row for each class of the labels y: its name, and cells(items, how many are drawn).

    drawn: item numbers, in an array of any shape.
    used:  whether their distribution depends on the labels.
    """
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    from dmsgd.inputs.labels import commonest_and_rarest

    names, codes, items = np.unique(y, return_inverse=True, return_counts=True)
    counts = np.bincount(codes[drawn].ravel(), minlength=names.size)
    table = Table(box=None, pad_edge=False)
    table.add_column("class", no_wrap=True, max_width=NAME)
    for heading in headings:
        table.add_column(heading, justify="right")
    for c in commonest_and_rarest(items, CLASSES_SHOWN):
        table.add_row(Text(visible(names[c], NAME)), *cells(int(items[c]), int(counts[c])))
    if not used:
        echo("labels    did not count; -w 0.7 would mix them in")
    some = ", here the commonest and the rarest" * (names.size > CLASSES_SHOWN)
    echo(f"classes   {names.size:,}{some}")
    echo(table)


class Lasting(io.FileIO):
    """A stream whose writes always succeed; `error` is the first one that in truth failed."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        """Return how many bytes were written, or dropped after an error."""
        if self.error is None:
            try:
                written = super().write(data)
                if written is not None:
                    return written
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            except OSError as error:
                self.error = error
        return len(data)


def open_streams() -> Lasting:
    """Make writing to standard output and error always succeed; return the stream of the former.

    Closed descriptors are opened on the null device: the next file to be opened would otherwise
    take their number, and what is printed. Characters that the encoding lacks are escaped.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    output, errors = (Lasting(number, "w", closefd=False) for number in (1, 2))
    for name, below in (("stdout", output), ("stderr", errors)):
        encoding = getattr(getattr(sys, name), "encoding", "utf-8")
        writer = io.BufferedWriter(below)
        text = io.TextIOWrapper(writer, encoding, errors="backslashreplace", line_buffering=True)
        setattr(sys, name, text)
    return output
