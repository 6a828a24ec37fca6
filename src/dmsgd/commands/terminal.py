"""Print lines and tables, and finish the work when nobody reads them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dmsgd.inputs.messages import visible

if TYPE_CHECKING:
    from dmsgd.inputs.arrays import IntArray

#: With more classes than this, tables show the commonest and the rarest only.
CLASSES_SHOWN = 12
#: Characters of a class's name that are shown.
NAME = 40


def echo(line: str) -> None:
    """Print one line to standard output."""
    with _lost(1):
        print(visible(line), flush=True)


def echo_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text, aligned: the first column to the left, the others to the right."""
    width, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    for name, *cells in rows:
        right = (f"  {text:>{size}}" for text, size in zip(cells, widths, strict=True))
        echo(f"{name:{width}}{''.join(right)}")


def echo_error(line: str) -> None:
    """Print one line to standard error."""
    with _lost(2):
        print(visible(line), file=sys.stderr, flush=True)


def echo_classes(y: Any, drawn: IntArray, cells: Mapping[str, Callable[[int, int], str]]) -> None:
    """Print a row for each class of the labels y.

    drawn: item numbers, in an array of any shape.
    cells: more of (items of the class, how many of them are drawn), by heading.
    """
    import numpy as np

    from dmsgd.inputs.labels import commonest_and_rarest

    names, codes, items = np.unique(y, return_inverse=True, return_counts=True)
    counts = np.bincount(codes[drawn].ravel(), minlength=names.size)
    some = ", here the commonest and the rarest" * (names.size > CLASSES_SHOWN)
    echo(f"classes   {names.size:,}{some}")
    rows = [["class", "items", *cells]]
    for c in commonest_and_rarest(items, CLASSES_SHOWN):
        more = (text(items[c], counts[c]) for text in cells.values())
        rows.append([visible(names[c], NAME), f"{items[c]:,}", *more])
    echo_table(rows)


@contextmanager
def _lost(number: int) -> Iterator[None]:
    """Drop what is printed to a stream (1: output, 2: error) after it could not be written.

    Only lost output is an error, and not if it goes to a closed pipe, as of `| head`.
    """
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)  # or Python tries again as it ends
        if number == 1 and not isinstance(error, BrokenPipeError):
            raise


def open_streams() -> None:
    """Escape characters that the encodings of the streams lack, and open closed descriptors.

    The next file to be opened would otherwise take their number, and what is printed.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - to the end of the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
