"""The command line: `dmsgd --help`. Each command is a file of this folder.

Nothing heavy is imported until a command runs, so help and completion answer at once.
"""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dmsgd import __version__
from dmsgd.commands.bench import bench
from dmsgd.commands.demo import demo
from dmsgd.commands.inspect import inspect
from dmsgd.commands.report import report
from dmsgd.commands.sample import sample
from dmsgd.commands.select import select
from dmsgd.commands.terminal import exit_code, open_streams
from dmsgd.commands.words import one_line, plain_warnings
from dmsgd.inputs.messages import visible

#: What bad input raises; anything else is a bug and keeps its traceback.
USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError)


class Commands(TyperGroup):
    """The group of commands, which reports errors of the user in one line."""

    def invoke(self, ctx: Any) -> Any:
        """Return what the command returns; exit with 2 on bad input and 130 on Ctrl-C."""
        try:
            with plain_warnings():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except USER_ERRORS as error:
            if ctx.params["debug"]:
                raise
            typer.echo(f"error: {visible(one_line(error))}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(inspect)
app.command()(report)
app.command()(sample)
app.command()(select)
app.command()(demo)
app.command()(bench)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dmsgd {__version__}")
        raise typer.Exit


def _print_versions(asked: bool) -> None:
    if asked:
        from dmsgd.commands.versions import versions

        typer.echo(versions())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    versions: Annotated[
        bool,
        typer.Option(
            "--versions",
            callback=_print_versions,
            is_eager=True,
            help="Show versions, processor, BLAS and GPU, for questions, and exit.",
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of errors (before the command).")
    ] = False,
) -> None:
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
        if sent and signal.getsignal(sent) != signal.SIG_IGN:  # as nohup has it
            signal.signal(sent, lambda number, _: sys.exit(128 + number))  # as shells report it
    output = open_streams()
    try:
        app(prog_name="dmsgd")
    except SystemExit as end:
        sys.exit(exit_code(end.code, output))
