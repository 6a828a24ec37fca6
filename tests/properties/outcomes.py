"""How a call may end: in a result, or in one clear error that the package itself has raised."""

from __future__ import annotations

import re
import signal
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import dmsgd
from dmsgd.errors import InputError

#: Errors that users are told of, exactly: a subclass such as LinAlgError is somebody else's.
DOCUMENTED = (
    ValueError, TypeError, OSError, FileNotFoundError, MemoryError,
    InputError, dmsgd.RankError, dmsgd.TargetError, dmsgd.SamplingError,
)  # fmt: skip

#: What messages may speak of instead of an argument's name.
WORDS = {"features", "items", "kernel", "batch", "labels", "classes", "design", "array", "schedule"}

SOURCE = str(Path(dmsgd.__file__).parent)

#: No case of a few items may take longer, in seconds, and the first of all compiles.
LIMIT = 300


class Fault(AssertionError):
    """A call ended in a way that it must not."""


@contextmanager
def limited():
    """Fail instead of hanging."""

    def stop(number, frame):
        raise Fault(f"the call did not end within {LIMIT} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(call, names, frameworks=()):
    """Return (result, error) of call(), one of which is None.

    names:      of the arguments, one of which an error must speak of.
    frameworks: whose own checks may raise, because they come first, as parts of their paths.
    """
    result = error = None
    with limited(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as raised:
            error = raised
    foreign = [str(each.message) for each in said if each.category is not dmsgd.KernelWarning]
    if foreign:
        raise Fault(f"leaked warning: {foreign[0]}")
    if error is not None:
        _judge(error, names, frameworks)
    return result, error


def _judge(error, names, frameworks):
    told = f"{type(error).__name__}: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    if any(f"/{each}/" in place for each in frameworks):
        return
    if type(error) not in DOCUMENTED:
        raise Fault(f"undocumented {told}") from error
    if not place.startswith(SOURCE):
        raise Fault(f"raised by {place}: {told}") from error
    spoken = set(re.findall(r"\w+", str(error)))
    spoken |= {word.lower() for word in spoken}
    if not spoken & (set(names) | WORDS):
        raise Fault(f"names no argument of {sorted(names)}: {told}") from error
