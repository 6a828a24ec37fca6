"""The command line: `dmsgd --help`. Each command is a file of this folder.

Nothing heavy is imported until a command runs, so that help is shown at once.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from dmsgd import __version__
from dmsgd.commands.demo import demo
from dmsgd.commands.inspect import inspect
from dmsgd.commands.sample import sample
from dmsgd.commands.select import select
from dmsgd.commands.terminal import echo, echo_error, open_streams
from dmsgd.errors import HasFixes, as_options

#: What bad input raises; anything else is a bug and keeps its traceback.
USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError)
#: Packages whose versions decide what dmsgd computes or can read.
PACKAGES = (
    "numpy", "scipy", "numba", "llvmlite", "threadpoolctl", "click", "scikit-learn", "pandas",
    "pyarrow", "zarr", "dask", "torch", "lightning", "transformers", "imbalanced-learn",
)  # fmt: skip


class Commands(click.Group):
    """The group of commands, which reports bad input and warnings in one line each."""

    def invoke(self, ctx: click.Context) -> Any:
        """Return what the command returns; exit with 2 on bad input and 130 on Ctrl-C."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, **__: echo_error(
                    f"warning: {one_line(message)}"
                )
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None
        except USER_ERRORS as error:
            if ctx.params["debug"]:
                raise
            echo_error(f"error: {one_line(error)}")
            raise click.exceptions.Exit(2) from None


def one_line(error: BaseException | str) -> str:
    """Return the message of `error` without line breaks, with options for arguments."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}".removesuffix(": ")
    message = error.message("use", _known_options) if isinstance(error, HasFixes) else str(error)
    return " ".join(message.split()) or type(error).__name__


def _known_options(arguments: Mapping[str, object]) -> str:
    """Return arguments as options, but those that the command which runs does not have."""
    context = click.get_current_context(silent=True)
    command = app.commands.get(context.find_root().invoked_subcommand or "") if context else None
    options = (as_options({name: value}) for name, value in arguments.items())
    if command is None:
        return " ".join(options)
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    return " ".join(each for each in options if each.split()[0] in known)


def _print_versions(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print a line each for dmsgd, Python, the machine, BLAS, every package installed and GPUs."""
    if not wanted:
        return
    import scipy.linalg  # noqa: F401 - so that its library is loaded
    from llvmlite.binding import get_host_cpu_name
    from threadpoolctl import threadpool_info

    rows = [("dmsgd", __version__), ("python", sys.version), ("system", platform.platform())]
    rows.append(("processor", f"{get_host_cpu_name()}, {os.cpu_count()} cores"))
    for each in threadpool_info():
        if each["user_api"] == "blas":
            library = f"{each['internal_api']} {each['version']} {each.get('architecture', '')}"
            rows.append(("blas", f"{library}, {each['num_threads']} threads"))
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            rows.append((name, version(name)))
    with suppress(ImportError, OSError):  # torch is missing or damaged
        from torch import cuda

        gpus = [cuda.get_device_name(number) for number in range(cuda.device_count())]
        rows += [("cuda", gpu) for gpu in gpus or ["none that torch sees"]]
    for name, what in rows:
        echo(f"{name:16}  {what}")
    ctx.exit()


@click.group(
    cls=Commands, commands=[inspect, sample, select, demo], context_settings={"show_default": True}
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
      dmsgd inspect features.npy --labels y.npy -k 64 --page page.html
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
    open_streams()
    try:
        app(prog_name="dmsgd")
    except SystemExit as end:
        if any(each.daemon and each.name == "dmsgd" for each in threading.enumerate()):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(end.code or 0))  # LAPACK in a thread crashes while Python unloads it
        raise
