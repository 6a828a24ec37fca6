"""Errors and warnings of the package in one line each, with options instead of arguments."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from dmsgd.errors import HasFixes, as_options
from dmsgd.inputs.messages import visible


def one_line(error: BaseException) -> str:
    """Return the message of `error` without line breaks; never empty."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}".removesuffix(": ")
    message = error.message("use", as_options) if isinstance(error, HasFixes) else str(error)
    return " ".join(message.split()) or type(error).__name__


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line each, without the line of code that they come from."""

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        line = one_line(message) if isinstance(message, Warning) else message
        typer.echo(f"warning: {visible(line)}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
