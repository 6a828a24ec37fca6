"""Locks of open files, which vanish with the process that holds them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO


def lock(file: IO[bytes]) -> bool:
    """Wait for the lock of `file`; return False where there are no locks."""
    if sys.platform == "win32":
        import msvcrt

        while True:
            with suppress(OSError):  # Windows gives up after ten seconds
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # some network file systems
        return False
    return True


def is_locked(path: Path) -> bool | None:
    """Return whether another open file has the lock of this one; None if that cannot be told."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError:  # it may not be read, or there are no locks
        return None
    return False


def has_name(path: Path, file: IO[bytes]) -> bool:
    """Return whether an open file still has this name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
