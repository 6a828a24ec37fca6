"""What all soaks share: the memory of this process, progress, and one line of result."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")

#: Memory is flat if after warm-up it grows by at most this share, and the few pages of noise.
SHARE, NOISE = 0.02, 2**20


def memory():
    """The bytes of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


class Memory:
    """Looks at memory from the end of warm-up on."""

    def __init__(self):
        self.first = self.most = self.last = None

    def look(self):
        self.last = now = memory()
        self.first = now if self.first is None else self.first
        self.most = now if self.most is None else max(self.most, now)

    @property
    def flat(self):
        return self.most - self.first <= SHARE * self.first + NOISE

    def __str__(self):
        most, last = (size / self.first - 1 for size in (self.most, self.last))
        size = f"memory {self.first / 2**20:.0f} MB"
        return f"{size}, after warm-up {most:+.2%} at most, {last:+.2%} at the end"


class Progress:
    """A line on stderr every few seconds."""

    def __init__(self, total, unit, seconds=5.0):
        self.total, self.unit, self.seconds = total, unit, seconds
        self.began = self.shown = time.monotonic()
        self.last = 0

    def show(self, done, more=""):
        now = time.monotonic()
        if now - self.shown > self.seconds or done >= self.total > self.last:
            self.shown, self.last = now, done
            text = f"  {done:,} of {self.total:,} {self.unit}, {now - self.began:.0f} s"
            print(text + (f", {more}" if more else ""), file=sys.stderr, flush=True)


def options(arguments, **defaults):
    """What the command line says: an option for each default, of its type."""
    parser = argparse.ArgumentParser()
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args(arguments)


def announce(what, minutes):
    """Say what begins, and how long it takes."""
    print(f"{what}; takes {minutes}", file=sys.stderr, flush=True)


def finish(name, failures, facts):
    """Print the line of result and exit, with 1 if anything failed."""
    verdict = "FAILED: " + "; ".join(failures) if failures else "holds"
    print(f"{name}: {verdict} ({facts})", flush=True)
    sys.exit(bool(failures))
