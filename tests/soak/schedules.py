"""Hundreds of SIGKILLs of `presample`: the same bytes in the end, and nothing else ever accepted.

python tests/soak/schedules.py [--kills 500]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from watch import announce, finish, options

CRASHES = Path(__file__).parent.parent / "schedule_crashes.py"


def main(arguments=None):
    given = options(arguments, kills=500)
    announce(f"{given.kills} kills of presample", "2 to 5 minutes by default")
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, CRASHES, folder, "kills", str(given.kills)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        while True:
            try:
                told, _ = child.communicate(timeout=5)
                break
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - began
                print(f"  killing for {seconds:.0f} s", file=sys.stderr, flush=True)
    failures = [f"{CRASHES.name} exited with {child.returncode}"] if child.returncode else []
    finish("schedules", failures, " ".join(told.split()))


if __name__ == "__main__":
    main()
