"""Runs the tests of draws on a GPU with the Python that runs this: `make test-gpu`.

It prints which code is tested, and where. It fails where torch finds no GPU: nothing was tested.

    python tests/gpu.py                   needs torch for CUDA, cuda-bindings and pytest
    COMMIT=4f8bb68 python tests/gpu.py    names the commit of a copy without git
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: Distributions, sets of `select`, loaders in threads, a training run, set-up, stored draws, and
#: log-probabilities with gradients.
FILES = [
    "cuda",
    "cuda_threads",
    "cuda_program",
    "cuda_selection",
    "device_math",
    "learning",
    "stored_draws",
]


def commit(root: Path = ROOT) -> str:
    """Return the commit of a checkout, "+changes" if files differ; what COMMIT says without git."""
    command = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}", "describe", "--always"]
    command += ["--abbrev=12", "--exclude=*", "--dirty=+changes"]
    try:
        found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:  # git is not installed
        found = ""
    return found or os.environ.get("COMMIT", "unknown")


def sources(root: Path = ROOT) -> str:
    """Return a hash of the package's files, which is the same in any copy of a commit."""
    digest = hashlib.sha256()
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".py", ".cu", ".cuh"):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def gpus() -> list[str]:
    """Return the names of the GPUs that torch finds."""
    try:
        from torch import cuda
    except ImportError:
        return []
    return [cuda.get_device_name(number) for number in range(cuda.device_count())]


def main() -> int:
    """Print what is tested, run the tests and return their exit status."""
    found = gpus()
    print(f"commit {commit()}, sources {sources()}, GPU: {', '.join(found) or 'none'}", flush=True)
    if not found:
        print(f"{sys.executable} has no torch that finds a CUDA device; nothing was tested")
        return 1
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    files = [f"tests/test_{name}.py" for name in FILES]
    command = [sys.executable, "-m", "pytest", "-rs", *files, *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main())
