"""What a new user's first draws do: a few wait for no compiler, and what is compiled is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAW = "import dmsgd; print(dmsgd.Uniform(9, 3).sample(1, seed=0).tolist())"
KDPP = "import dmsgd; print(dmsgd.diversify([[1, 0], [0, 1], [2, 1]], 2).sample(2000, 0).tolist())"
FEW = "import dmsgd, sys; dmsgd.diversify([[1, 0], [0, 1], [2, 1]], 2).sample(3, 0)\n"
SELECT = "import sys, numpy as np, dmsgd; X = np.random.default_rng(0).normal(size=(200, 32)); "
SEEN = "print(*(name in sys.modules for name in ('numba', 'scipy.linalg')))"
LINE = "dmsgd: compiling for this processor"

#: Both designs compile: one by functions of arrays, the other by callbacks.
TWO_THREADS = """
import threading, dmsgd
X = [[(i * j) % 7 + 1.0 for j in range(1, 7)] for i in range(60)]
chain = dmsgd.designs.SwapChain(dmsgd.kernels.Linear(X), 4)
designs = chain, dmsgd.diversify(X, 4), dmsgd.diversify(X, 3)
threads = [threading.Thread(target=design.sample, args=(2000, 0)) for design in designs]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("ended")
"""

#: One batch after the other until compiled loops make them; then all are made again by these.
LOOP = """
import sys, numpy as np, dmsgd
X = np.random.default_rng(0).normal(size=(300, 140))
design, drawn = dmsgd.diversify(X, 20, kernel="linear"), []
while "dmsgd.compiled.kdpp" not in sys.modules and len(drawn) < 1000:
    drawn.append(design.sample(1, seed=0, start=len(drawn))[0].tolist())
print(10 < len(drawn) < 1000, drawn == design.sample(len(drawn), seed=0).tolist())
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "code", [DRAW, pytest.param(KDPP, marks=pytest.mark.long)], ids=["arrays", "callbacks"]
)
def test_it_prints_a_line_and_compiles_once(code: str, tmp_path: Path) -> None:
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    again = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stderr.count(LINE) == 1
    assert again.stderr == ""
    assert first.stdout == again.stdout


def test_a_few_batches_need_no_compiler(tmp_path: Path) -> None:
    assert (
        run(FEW + "print('numba' in sys.modules)", NUMBA_CACHE_DIR=str(tmp_path)).stdout
        == "False\n"
    )


@pytest.mark.parametrize("how", ["cover", "medoids", "greedy"])
def test_a_small_set_needs_no_compiler(how: str, tmp_path: Path) -> None:
    code = f"{SELECT}dmsgd.select(X, 20, how={how!r}, quality=X[:, 0] ** 2 + 0.1); {SEEN}"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout == "False False\n"


@pytest.mark.long
def test_two_threads_that_compile_do_not_wait_for_each_other(tmp_path: Path) -> None:
    assert run(TWO_THREADS, NUMBA_CACHE_DIR=str(tmp_path)).stdout == "ended\n"


@pytest.mark.long
@pytest.mark.parametrize("code", [DRAW, KDPP], ids=["arrays", "callbacks"])
def test_where_no_folder_can_be_written_each_process_compiles(code: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = {
        "NUMBA_CACHE_DIR": str(tmp_path / "file" / "folder"),
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",  # and not beside the source
    }
    listening = "import logging; logging.basicConfig(level='INFO', format='%(message)s'); "
    found = run(listening + code, **nowhere)
    assert "NUMBA_CACHE_DIR" in found.stderr
    assert "[[" in found.stdout


def test_many_single_batches_are_compiled_and_the_same(tmp_path: Path) -> None:
    """The first process compiles, once and with a line; another finds everything in the cache."""
    first, again = (run(LOOP, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert (first.stdout, first.stderr.count(LINE)) == ("True True\n", 1)
    assert (again.stdout, again.stderr) == ("True True\n", "")


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_draws_the_same() -> None:
    code = (
        "import os, warnings\nwarnings.simplefilter('ignore')\n"
        "process = os.fork()\n"
        f"{LOOP}\n"
        "print('child' if not process else os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))"
    )
    assert sorted(run(code).stdout.split()) == ["0", *4 * ["True"], "child"]


@pytest.mark.long
def test_several_processes_at_once_draw_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOOP + "print(drawn)"]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    several = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for _ in range(3)]
    found = {each.communicate(timeout=300)[0] for each in several}
    assert len(found) == 1
    assert found.pop().startswith(b"True True")
