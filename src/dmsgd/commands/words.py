"""What the package says to those who call it from Python, in the words of the command line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from dmsgd.inputs.messages import visible

#: What is written differently as an option.
OPTIONS = (
    (r"\b(standardize|normalize)=True", r"--\1"),
    (r"\bw=([\d.]+) \(or suggest_w\)", r"-w \1"),
    (r"\blabels='([^']*)'", r"--labels \1"),
    (r"\btarget='(\w+)'", r"--target \1"),
    (r"\bkernel='(\w+)'", r"--kernel \1"),
    (r"\bdrop column '([^']*)'", r"leave it out with --drop '\1'"),
    (r"\boverwrite=True", "--force"),
    (r"\bselect one as (\S+\.npz):NAME", r"name them as in \1:X --labels \1:y"),
    (r"\bpass (-)", r"use \1"),
)


def in_options(message: str) -> str:
    """Return `message` with options for the arguments that it advises.

    >>> in_options("pass standardize=True, or drop column 'id'")
    "use --standardize, or leave it out with --drop 'id'"
    """
    for argument, option in OPTIONS:
        message = re.sub(argument, option, message)
    return message


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line each, rather than with the line of code that they come from."""

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        text = " ".join(str(message).split())
        typer.echo(f"warning: {visible(in_options(text))}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
