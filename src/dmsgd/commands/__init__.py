"""The command line: `dmsgd --help`. Each command is a file of this folder.

Nothing heavy is imported until a command runs, so that help is shown at once.
"""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Any

import click

from dmsgd import __version__
from dmsgd.commands.demo import demo
from dmsgd.commands.inspect import inspect
from dmsgd.commands.report import report
from dmsgd.commands.sample import sample
from dmsgd.commands.select import select
from dmsgd.commands.terminal import echo_error, exit_code, open_streams
from dmsgd.errors import HasFixes, as_options

#: What bad input raises; anything else is a bug and keeps its traceback.
USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError)


class Commands(click.Group):
    """The group of commands, which reports bad input and warnings in one line each."""

    def invoke(self, ctx: click.Context) -> Any:
        """Return what the command returns; exit with 2 on bad input and 130 on Ctrl-C."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None
        except USER_ERRORS as error:
            if ctx.params["debug"]:
                raise
            echo_error(f"error: {one_line(error)}")
            raise click.exceptions.Exit(2) from None


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """Print a warning without the line of code that it comes from."""
    echo_error(f"warning: {one_line(message) if isinstance(message, Warning) else message}")


def one_line(error: BaseException) -> str:
    """Return the message of `error` without line breaks, with options for arguments."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}".removesuffix(": ")
    message = error.message("use", as_options) if isinstance(error, HasFixes) else str(error)
    return " ".join(message.split()) or type(error).__name__


def _print_versions(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from dmsgd.commands.versions import versions

        click.echo(versions())
        ctx.exit()


@click.group(
    cls=Commands,
    commands=[inspect, report, sample, select, demo],
    context_settings={"show_default": True},
)
@click.version_option(__version__, message="dmsgd %(version)s")
@click.option(
    "--versions",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Show versions, processor, BLAS and GPU, for questions, and exit.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of errors (before the command).")
def app(debug: bool) -> None:
    """Draw mini-batches from a k-DPP: diverse batches that see rare data.

    \b
    Examples:
      dmsgd demo
      dmsgd inspect features.npy --labels y.npy -k 64
      dmsgd report features.npy --labels y.npy -w 0.7 -k 64 -o report.html
      dmsgd sample features.npy --labels y.npy -w 0.7 -k 64 -n 1000 -o batches.npy
      dmsgd sample features.npy -k 64 -n 1000 -o batches.npy
      dmsgd select features.npy -k 50 -o chosen.csv
      dmsgd sample --help
    """


def main() -> None:
    """Run the command line (the console script `dmsgd`)."""
    # A run that is terminated, or whose terminal is closed, cleans up as an interrupted one does.
    for name in ("SIGTERM", "SIGHUP"):
        sent = getattr(signal, name, None)
        if sent and signal.getsignal(sent) != signal.SIG_IGN:  # nohup ignores it
            signal.signal(sent, lambda number, _: sys.exit(128 + number))  # the code of shells
    output = open_streams()
    try:
        app(prog_name="dmsgd")
    except SystemExit as end:
        sys.exit(exit_code(end.code, output))
