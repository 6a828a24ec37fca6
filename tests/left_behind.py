"""What a test must leave as it found it, because every other test of the process sees it."""

from __future__ import annotations

import logging
import os
import signal
import sys

SIGNALS = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGALRM")]
LOGS = [logging.getLogger(name) for name in (None, "dmsgd")]


def shared():
    """Return it, by name."""
    torch = sys.modules.get("torch")
    return {
        "folder": os.getcwd(),
        "arguments": list(sys.argv),
        "path": list(sys.path),
        "signals": [signal.getsignal(number) for number in SIGNALS],
        "logs": [(log.level, log.propagate, list(log.handlers), list(log.filters)) for log in LOGS],
        "torch": torch and (torch.get_default_dtype(), torch.distributed.is_initialized()),
    }


def differences(before, after):
    """Return what differs; of what was not loaded before, nothing is known."""
    return {
        name: (before[name], after[name])
        for name in before
        if before[name] is not None and before[name] != after[name]
    }


def put_back(environment):
    """Let the variables be as they were; many packages set some when they are imported."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name in environment:
        if os.environ.get(name) != environment[name]:
            os.environ[name] = environment[name]
