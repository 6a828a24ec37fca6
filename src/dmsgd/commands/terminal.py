"""What commands say: text of users as text, and no work lost when nobody listens."""

from __future__ import annotations

import errno
import io
import logging
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

log = logging.getLogger("dmsgd")


def say(line: str = "", *, wrapped: bool = False) -> None:
    """Print one line to standard output; `wrapped` breaks it where the terminal ends."""
    from dmsgd.inputs.messages import visible

    _console().print(visible(line), soft_wrap=not wrapped)


def show(table: Table) -> None:
    """Print a table to standard output."""
    _console().print(table)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


@contextmanager
def bar(description: str) -> Iterator[Callable[[float], None]]:
    """Show progress while the block runs, if there is a terminal to show it on.

    What is yielded takes the fraction done.
    """
    from rich.console import Console
    from rich.progress import Progress

    shown = sys.stderr.isatty()
    with Progress(console=Console(stderr=True), disable=not shown, transient=True) as progress:
        task = progress.add_task(description, total=1.0)
        with _heard(shown, lambda line: progress.update(task, description=line)):
            yield lambda fraction: progress.update(task, completed=fraction)


@contextmanager
def working(description: str) -> Iterator[None]:
    """Show that the block is at work, if there is a terminal to show it on."""
    from rich.console import Console

    with (
        Console(stderr=True).status(description) as status,
        _heard(sys.stderr.isatty(), status.update),
    ):
        yield


@contextmanager
def _heard(shown: bool, tell: Callable[[str], None]) -> Iterator[None]:
    """Let long work say how far it is in what is `shown`, rather than line by line."""
    hearer = _Progress(tell)
    if shown:
        log.addFilter(hearer)
    try:
        yield
    finally:
        log.removeFilter(hearer)


class _Progress(logging.Filter):
    """Takes how far long work is (`dmsgd.inputs.progress.Progress`) out of the log."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self.tell = tell

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is anything else."""
        if not hasattr(record, "share"):
            return True
        self.tell(record.getMessage())
        return False


class Lasting(io.RawIOBase):
    """A stream that takes whatever is written; when it is lost, `error` says how."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.error: OSError | None = None

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the number that the system knows the stream by."""
        return int(self.raw.fileno())

    def isatty(self) -> bool:
        """Return whether someone is looking."""
        return bool(self.raw.isatty())

    def write(self, data: Any) -> int:
        """Return how many bytes were written, or dropped after an error."""
        while self.error is None:
            try:
                written = self.raw.write(data)
            except OSError as error:
                self.error = error
                break
            if written is not None:
                return int(written)
            select.select([], [self.raw], [])  # a pipe that is full for now
        return len(data)


def open_streams() -> Lasting:
    """Let writing to standard output and error always succeed; return what is below the former.

    A descriptor that is closed leads nowhere from then on: the next file to be opened would
    otherwise take its number, and what is printed. Characters that the encoding lacks are escaped.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    output = _lasting(sys.stdout, 1)
    sys.stdout = _text(output, sys.stdout)
    sys.stderr = _text(_lasting(sys.stderr, 2), sys.stderr)
    return output


def _lasting(stream: TextIO | None, number: int) -> Lasting:
    if stream is None:  # it was closed when Python started
        return Lasting(io.FileIO(number, "w", closefd=False))
    return Lasting(getattr(stream.buffer, "raw", stream.buffer))  # python -u has no buffer


def _text(below: Lasting, stream: TextIO | None) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(below),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


def exit_code(code: Any, output: Lasting) -> Any:
    """Return `code`, or 1 where all went well but what was printed is lost.

    A reader that has read enough, as in `| head`, has lost nothing.
    """
    sys.stdout.flush()
    if output.error is None or output.error.errno == errno.EPIPE or code:
        return code
    print(f"error: standard output: {output.error.strerror}", file=sys.stderr)
    return 1
