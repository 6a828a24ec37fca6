"""Errors that users may want to catch by name; plain bad input raises ValueError or TypeError."""

from __future__ import annotations

import inspect
import shlex
import warnings
from collections.abc import Callable, Mapping

#: Options of the command line that are not their argument with dashes.
OPTIONS = {"k": "-k", "w": "-w", "overwrite": "--force"}
#: Fixes that are options of the command line and no arguments.
COMMAND_LINE = frozenset({"columns", "drop", "texts"})


class HasFixes(Exception):
    """A problem in plain words, and arguments that would each solve it."""

    def __init__(self, problem: str, **fixes: object) -> None:
        super().__init__(problem)
        self.problem, self.fixes = problem, fixes

    def __str__(self) -> str:
        return self.message("pass", as_python)

    def message(self, verb: str, write: Callable[[Mapping[str, object]], str]) -> str:
        """Return the problem and its fixes, written by `as_python` or `as_options`."""
        ways = [write({name: value}) for name, value in self.fixes.items()]
        fixes = ", or ".join(filter(None, ways))
        return f"{self.problem}; {verb} {fixes}" if fixes else self.problem


def as_python(arguments: Mapping[str, object]) -> str:
    """Return arguments as they are written in Python."""
    known = {name: value for name, value in arguments.items() if name not in COMMAND_LINE}
    return ", ".join(f"{name}={value!r}" for name, value in known.items())


def as_options(arguments: Mapping[str, object]) -> str:
    """Return arguments as options of the command line."""
    words = []
    for name, value in arguments.items():
        option = OPTIONS.get(name, "--" + name.replace("_", "-"))
        if value is False:
            option = f"--no{option[1:]}"
        words.append(option if isinstance(value, bool) else f"{option} {shlex.quote(str(value))}")
    return " ".join(words)


class InputError(HasFixes, ValueError):
    """Bad input whose remedy is an argument."""


class RankError(InputError):
    """The kernel has too few independent directions: a k-DPP needs k <= rank(L).

    k, rank: the batch size given, and the rank of the kernel.
    found: what there is instead of k independent directions, in words.
    rbf: whether an RBF kernel of the same items would have a higher rank.

    >>> import dmsgd
    >>> try:
    ...     dmsgd.diversify([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], k=3, kernel="linear")
    ... except dmsgd.RankError as error:
    ...     print(error.k, error.rank)
    3 2
    """

    def __init__(self, k: int, rank: int, found: str, rbf: bool = True) -> None:
        super().__init__(
            f"{found}; batches of {k:,} need {k:,}: lower k, add features, or draw stratified "
            f"batches",
            **({"k": rank} if rank > 0 else {}),
            **({"kernel": "rbf"} if rbf else {}),
        )
        self.k, self.rank, self.found, self.rbf = self.args = k, rank, found, rbf


class TargetError(ValueError):
    """No k-DPP over these features has the prescribed inclusion probabilities."""


class KernelWarning(HasFixes, UserWarning):
    """The kernel, or its approximation, is unlikely to be what was meant."""


def warn_kernel(problem: str, **fixes: object) -> None:
    """Warn with a KernelWarning that names the line outside this package that led to it."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "dmsgd":
        frame, level = frame.f_back, level + 1
    warnings.warn(KernelWarning(problem, **fixes), stacklevel=level)


class SamplingError(RuntimeError):
    """A batch could not be drawn, or no weights give the requested inclusion probabilities."""


class ClusterError(ConnectionError):
    """No Dask cluster answers at an address, or it was lost; batches on disk are kept."""


class DeviceError(RuntimeError):
    """A GPU or its driver is missing, or an operation on it failed."""
