"""A process that has imported what scripts need, and forks one for each that is to be run.

Imports of torch and of the frameworks take longer than most examples. Each script still runs as
`__main__` of a process of its own, with its own arguments and environment.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import numpy as np

import dmsgd

#: No script may take longer.
SECONDS = 240


class Nursery:
    """Used in a `with`: `run` returns what a script prints."""

    def __init__(self, *modules):
        self._process = subprocess.Popen(
            [sys.executable, __file__, *modules],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.communicate()

    def run(self, path, *arguments, environments=({},)):
        """Run a script in one process for each environment; return what the first one prints."""
        with tempfile.TemporaryDirectory() as folder:
            asked = {
                "arguments": [str(path), *arguments],
                "environments": environments,
                "folder": folder,
            }
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            codes = json.loads(self._process.stdout.readline())
            errors = [Path(folder, f"{number}.err").read_text() for number in range(len(codes))]
            printed = Path(folder, "0.out").read_text()
        assert codes == [0] * len(codes), f"{codes}\n" + "\n".join(text[-3000:] for text in errors)
        return printed


def script(arguments, environment, output):
    """Become the script, and end with it.

    Its variables are never freed: torch waits for ever where a model over several processes is
    freed before a thread of its process group has had its turn.
    """
    for descriptor, path in enumerate((os.devnull, f"{output}.out", f"{output}.err")):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), descriptor)
    os.environ.update(environment)
    sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent)
    signal.alarm(SECONDS)
    sys.modules["__main__"] = types.ModuleType("__main__")
    variables = vars(sys.modules["__main__"])
    variables["__file__"] = arguments[0]
    exec(compile(Path(arguments[0]).read_text(), arguments[0], "exec"), variables)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main():
    for name in sys.argv[1:]:
        importlib.import_module(name)
    dmsgd.diversify(np.eye(4), 2).sample(1)  # loads what is compiled
    gc.freeze()
    for line in sys.stdin:
        asked, children = json.loads(line), []
        for number, environment in enumerate(asked["environments"]):
            children.append(os.fork())
            if children[-1] == 0:
                script(asked["arguments"], environment, f"{asked['folder']}/{number}")
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main()
