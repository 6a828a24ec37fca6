"""Says how much memory a step will take before it takes it, and refuses what does not fit."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from dmsgd.inputs.messages import format_bytes

#: The variable that sets the limit.
SETTING = "DMSGD_MEMORY"

log = logging.getLogger("dmsgd")

#: From this size on, an allocation is announced in the log (level INFO).
ANNOUNCED = 2**30

#: Up to this size, only a limit that was set is looked at: to ask the system takes longer than a
#: few draws.
SMALL = 2**16

#: More than any machine has: nothing is refused.
UNKNOWN = 2**62

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def memory_limit() -> int:
    """Return how many bytes one step may take.

    DMSGD_MEMORY (for example "8GB") if set, otherwise what the system, or the container, has
    available now.
    """
    setting = os.environ.get(SETTING)
    if setting is None:
        return _available()
    parts = re.fullmatch(r"\s*(\d+\.?\d*)\s*([KMGT]?)i?B?\s*", setting, re.IGNORECASE)
    if not parts:
        raise ValueError(f"{SETTING} must be a size such as 8GB or 500MB, got {setting!r}")
    return int(float(parts[1]) * _UNITS[parts[2].upper()])


def _available() -> int:
    """Return what the machine has left, or what the container it runs in has, if that is less."""
    return min(_of_the_machine(), _of_the_container())


def _of_the_machine() -> int:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return UNKNOWN


def _of_the_container(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the limit of the control group less what is used and cannot be given back."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most, now = int((root / limit).read_text()), int((root / used).read_text())
            lines = (root / used).with_name("memory.stat").read_text().splitlines()
        except (OSError, ValueError):  # no such group, or "max": no limit
            continue
        idle = dict(line.split() for line in lines).get(cache, "0")
        return max(most - now + int(idle), 0)
    return UNKNOWN


def reserve(count: int, what: str, advice: str) -> None:
    """Raise MemoryError if `count` floats are more than the limit; announce them if many."""
    size = 8 * count
    if size <= SMALL and SETTING not in os.environ:
        return
    most = memory_limit()
    if size > most:
        raise MemoryError(
            f"{what} needs {format_bytes(size)} and {format_bytes(most)} may be used; {advice} "
            f"({SETTING} sets another limit)"
        )
    if size >= ANNOUNCED:
        log.info("%s takes %s", what, format_bytes(size))
