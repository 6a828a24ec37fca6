"""Errors that users may want to catch by name; plain bad input raises ValueError or TypeError."""

from __future__ import annotations

import inspect
import shlex
import warnings
from collections.abc import Callable, Mapping

#: Options of the command line that are not their argument with dashes.
OPTIONS = {"k": "-k", "w": "-w", "overwrite": "--force"}
#: Fixes that are options of the command line and no arguments.
COMMAND_LINE = frozenset({"drop"})


class HasFixes(Exception):
    """A problem in plain words, and arguments that would each solve it.

    >>> error = InputError("labels are ignored at w=0", w=0.7, target="balanced")
    >>> str(error)
    "labels are ignored at w=0; pass w=0.7, or target='balanced'"
    >>> error.message("use", as_options)
    'labels are ignored at w=0; use -w 0.7, or --target balanced'
    """

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
    """Return arguments as options of the command line.

    >>> as_options({"w": 0.7, "normalize": True, "labels": "my class"})
    "-w 0.7 --normalize --labels 'my class'"
    """
    words = []
    for name, value in arguments.items():
        option = OPTIONS.get(name, "--" + name.replace("_", "-"))
        words.append(option if value is True else f"{option} {shlex.quote(str(value))}")
    return " ".join(words)


class InputError(HasFixes, ValueError):
    """Bad input whose remedy is an argument."""


class RankError(InputError):
    """The kernel has too few independent directions for a batch of size k.

    A k-DPP needs k <= rank(L): every set of more items has determinant zero. `cut` says which
    eigenvalues were taken for zero, because a computed rank depends on that.

    >>> import dmsgd
    >>> try:
    ...     dmsgd.diversify([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], k=3)
    ... except dmsgd.RankError as error:
    ...     print(error.k, error.rank)
    3 2
    """

    def __init__(self, k: int, rank: int, cut: str) -> None:
        super().__init__(
            f"k={k} exceeds the kernel's rank {rank} ({cut}): lower k, add features, or draw "
            f"stratified batches",
            k=rank,
            kernel="rbf",
        )
        self.k = k
        self.rank = rank
        self.cut = cut

    def __reduce__(self) -> tuple[type[RankError], tuple[int, int, str]]:
        return RankError, (self.k, self.rank, self.cut)


class TargetError(ValueError):
    """No k-DPP over these features has the prescribed inclusion probabilities.

    >>> import dmsgd
    >>> try:
    ...     dmsgd.diversify([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], k=2, target="uniform")
    ... except dmsgd.TargetError:
    ...     print("items 0 and 1 never meet, so that item 2 is in every batch")
    items 0 and 1 never meet, so that item 2 is in every batch
    """


class KernelWarning(HasFixes, UserWarning):
    """The kernel, or its approximation, is unlikely to be what was meant.

    >>> import dmsgd, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = dmsgd.diversify([[1000.0, 0.1], [2000.0, 0.3], [3000.0, 0.2]], k=2)
    >>> issubclass(caught[0].category, dmsgd.KernelWarning), "standardize" in str(caught[0].message)
    (True, True)
    """


def warn_kernel(problem: str | KernelWarning, **fixes: object) -> None:
    """Warn with a KernelWarning that names the line outside this package that led to it."""
    warning = problem if isinstance(problem, KernelWarning) else KernelWarning(problem, **fixes)
    frame, level = inspect.currentframe(), 1
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "dmsgd":
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


class SamplingError(RuntimeError):
    """A draw could not be completed, or no weights give the inclusion probabilities asked for.

    Rounding can do that where the eigenvalues of a kernel span too much for `KDPP.given`.

    >>> import dmsgd
    >>> try:
    ...     batch = dmsgd.Uniform(9, 3).sample(1, seed=0)
    ... except dmsgd.SamplingError as error:
    ...     print(error)  # which draw, and why
    """


class ClusterError(ConnectionError):
    """No Dask cluster answers at an address, or it was lost; batches on disk are kept.

    >>> issubclass(ClusterError, ConnectionError)
    True
    """


class DeviceError(RuntimeError):
    """A GPU or its driver is missing, or an operation on it failed.

    >>> issubclass(DeviceError, RuntimeError)
    True
    """
