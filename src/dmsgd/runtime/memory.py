"""Limits on memory: what one step may take, and which data are read whole."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dmsgd.inputs.messages import format_bytes

#: The environment variable that replaces the memory of the system, for example "8GB".
SETTING = "DMSGD_MEMORY"
#: Below this size only a limit that the user set counts: to ask the system takes longer.
SMALL = 2**24
#: Data of more bytes than this are read in blocks on every machine.
LARGE = 2**33
#: Returned where no limit is known.
UNKNOWN = 2**62

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
#: Names of a control group's limit, use and reclaimable cache: version 2, then version 1.
_CGROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def memory_limit() -> int:
    """Return how many bytes one step may take: DMSGD_MEMORY, or what is free now.

    What is free is known on Linux only. Elsewhere it is what `total_memory` returns.
    """
    return _setting() or min(_machine("MemAvailable:"), _cgroups(free=True))


def total_memory() -> int:
    """Return how many bytes this process could ever have: DMSGD_MEMORY, or the machine's memory.

    Limits of containers and batch systems count. Unlike `memory_limit` it does not change while
    other programs run, so that it may decide how data are read. On Windows, where the memory of the
    machine is not known, only DMSGD_MEMORY sets a limit.
    """
    return _setting() or min(_machine("MemTotal:"), _cgroups(free=False))


def fits_in_memory(size: float) -> bool:
    """Return whether data of this size (bytes as float64) are read whole, and not in blocks.

    They are up to a quarter of the memory, or 8 GB: eigenvectors take as much again, their tables
    up to half of that, and a copy as much.
    """
    return size <= min(total_memory() // 4, LARGE)


def reserve(count: int, what: str, advice: str) -> None:
    """Raise MemoryError if `count` floats exceed the limit."""
    size = 8 * count
    if size <= SMALL and SETTING not in os.environ:
        return
    if size > (most := memory_limit()):
        raise MemoryError(
            f"{what} needs {format_bytes(size)} and {format_bytes(most)} may be used; {advice} "
            f"({SETTING} sets another limit)"
        )


def _setting() -> int | None:
    setting = os.environ.get(SETTING)
    if setting is None:
        return None
    parts = re.fullmatch(r"\s*(\d+\.?\d*)\s*([KMGT]?)i?B?\s*", setting, re.IGNORECASE)
    if not parts:
        raise ValueError(f"{SETTING} must be a size such as 8GB or 500MB, got {setting!r}")
    return max(int(float(parts[1]) * _UNITS[parts[2].upper()]), 1)


def _machine(entry: str) -> int:
    """Return an entry of /proc/meminfo, the physical memory without that file, or UNKNOWN.

    Windows has neither the file nor os.sysconf.
    """
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith(entry):
            return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return UNKNOWN


def _cgroups(free: bool, root: Path = Path("/sys/fs/cgroup"), own: str | None = None) -> int:
    """Return the least limit of the control groups that this process is in, and those around them.

    free: less what each of them uses and cannot give back.
    own:  the text of /proc/self/cgroup, which says where this process is in the hierarchy.
    """
    groups, least = {root, root / "memory"}, UNKNOWN  # all that a container sees of its own
    for line in (_read(Path("/proc/self/cgroup")) if own is None else own).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or "memory" in controllers.split(","):
            top = root / "memory" if controllers else root
            inner = top / path.lstrip("/")
            groups.update(each for each in (inner, *inner.parents) if top in each.parents)
    for group in groups:
        for limit, used, cache in _CGROUP_FILES:
            most = _read(group / limit).strip()
            if most.isdigit():  # there is such a group, and it has a limit
                stat = dict(map(str.split, _read(group / "memory.stat").splitlines()))
                taken = int(_read(group / used) or 0) - int(stat.get(cache, 0)) if free else 0
                least = min(least, max(int(most) - taken, 0))
    return least


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
