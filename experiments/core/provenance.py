"""Where a result comes from: the machine, the versions and the commit that made it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import dmsgd

#: What a result records, in the order in which it is told.
FIELDS = ("machine", "processor", "gpu", "python", "numpy", "scipy", "numba", "scikit-learn",
          "torch", "dmsgd", "commit")  # fmt: skip


def record() -> dict[str, str]:
    """Return every one of FIELDS for this process; "" where there is none, as for torch unused."""
    versions = {name: version(name) for name in ("numpy", "scipy", "numba", "scikit-learn")}
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "processor": processor(),
        "gpu": gpu(),
        "python": platform.python_version(),
        **versions,
        "torch": version("torch") if "torch" in sys.modules else "",
        "dmsgd": dmsgd.__version__,
        "commit": commit(Path(dmsgd.__file__).parent),
    }


def processor() -> str:
    """Return the processor's name; on Linux from lscpu, which also names those of ARM."""
    lines = _output("lscpu").splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("Model name:")]
    return names[0] if names else platform.processor() or platform.machine()


def gpu() -> str:
    """Return the name of the GPU that torch computed on in this process, or "none"."""
    if "torch" not in sys.modules:
        return "none"
    from torch import cuda

    used = cuda.is_initialized()  # type: ignore[no-untyped-call]
    return cuda.get_device_name() if used else "none"


def commit(package: Path) -> str:
    """Return git's short hash of the checkout that `package` runs from, "" if it is none.

    "+changes" follows where files of the package differ from that commit. An installed package is
    no checkout, also where its environment lies inside one: git does not track its files.
    """
    git = ("git", "-C", str(package))
    if not _output(*git, "ls-files", "--", "__init__.py"):
        return ""
    changes = _output(*git, "status", "--porcelain", "--", ".")
    return _output(*git, "rev-parse", "--short", "HEAD") + ("+changes" if changes else "")


def told(recorded: Mapping[str, str]) -> str:
    """Return one line about what is recorded of a result, and what is not."""
    before = {"machine": "", "processor": "", "gpu": "GPU: "}
    known = [before.get(name, f"{name} ") + recorded[name] for name in FIELDS if recorded.get(name)]
    missing = [name for name in FIELDS if name not in recorded]
    return "; ".join([*known, *([f"not recorded: {', '.join(missing)}"] if missing else [])])


def _output(*command: str) -> str:
    """Return what a command prints, "" if it fails or is not there."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
