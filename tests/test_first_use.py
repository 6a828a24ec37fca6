"""What a new user's first draws do: they wait for no compiler, and what is compiled is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dmsgd.samplers import first_use

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
import time, numpy as np, dmsgd
from dmsgd.samplers import first_use
X = np.random.default_rng(0).normal(size=(300, 140))
design, drawn = dmsgd.diversify(X, 20, kernel="linear"), []
def draw_until(done, seconds=200):
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        drawn.append(design.sample(1, seed=0, start=len(drawn))[0].tolist())
"""
UNTIL_READY = """
draw_until(lambda: first_use.loops.ready)
assert first_use.loops.ready
print(drawn == design.sample(len(drawn), seed=0).tolist())
"""
UNTIL_COMPILING = "draw_until(lambda: first_use.loops._compiler is not None)\n"


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


def almost_all(folder: Path) -> str:
    """Return a cache of the loops of a draw that lacks one of them, which takes a second."""
    first_use.compile_loops()
    shutil.copytree(os.environ["NUMBA_CACHE_DIR"], folder)
    missing = [each for each in folder.rglob("*.nb?") if each.name.startswith("philox.uniforms")]
    assert missing
    for each in missing:
        each.unlink()
    return str(folder)


@pytest.mark.parametrize("cache", [almost_all, pytest.param(str, marks=pytest.mark.long)])
def test_single_batches_go_on_while_another_process_compiles(
    cache: Callable[[Path], str], tmp_path: Path
) -> None:
    """Their process compiles nothing; another one later finds everything in the cache."""
    folder = cache(tmp_path / "cache")
    code = LOOP + UNTIL_READY + "print(first_use.loops._compiler is None)"
    done = run(code, NUMBA_CACHE_DIR=folder)
    assert (done.stdout, done.stderr) == ("True\nFalse\n", "")
    again = run(code, NUMBA_CACHE_DIR=folder)
    assert (again.stdout, again.stderr) == ("True\nTrue\n", "")


def test_all_loops_of_a_draw_are_loaded() -> None:
    """A draw of compiled loops, also with the sieve, needs none that `load_now` left out."""
    code = """
import gc
first_use.loops.load_now()
from dmsgd.compiled.jit import Callback
def loaded():
    return sum(isinstance(each, Callback) and each._address > 0 for each in gc.get_objects())
before = loaded()
design.sample(2000, seed=0)
print(before == loaded() == len(first_use.callbacks()))
"""
    assert run(LOOP + code).stdout == "True\n"


def test_few_draws_start_nothing() -> None:
    loops = first_use.CompiledLoops()
    assert not loops.use(first_use.LIMIT / 2)
    assert loops._loading is None


@pytest.mark.long
@pytest.mark.parametrize(
    "trouble",
    [
        "first_use.start_compiler = lambda: None",
        "sys.frozen = True",
        "sys.executable = 'nothing/python'",
        "first_use.__name__ = 'nothing'",  # the other process ends with an error
    ],
)
def test_without_another_process_the_thread_compiles(trouble: str, tmp_path: Path) -> None:
    done = run(f"import sys\n{LOOP}{trouble}\n{UNTIL_READY}", NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout == "True\n"
    assert done.stderr.count(LINE) == 1


@pytest.mark.long
def test_a_large_call_waits_for_the_other_process(tmp_path: Path) -> None:
    code = "print(design.sample(3000, seed=0)[: len(drawn)].tolist() == drawn)"
    done = run(LOOP + UNTIL_COMPILING + code, NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.long
def test_a_program_may_end_while_another_process_compiles(tmp_path: Path) -> None:
    """It does not wait or warn, and what is compiled is there for the next."""

    def compiled() -> list[Path]:
        return list(tmp_path.rglob("kdpp.draw*.nbc"))  # the last

    done = run(LOOP + UNTIL_COMPILING, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stderr == ""
    assert not compiled()
    end = time.monotonic() + 200
    while not compiled() and time.monotonic() < end:
        time.sleep(0.1)
    assert compiled()


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("when", ["_loading", "_compiler"])
def test_a_forked_process_begins_again(when: str, tmp_path: Path) -> None:
    """Also one that is forked while the thread loads, or while another process compiles."""
    code = (
        f"{LOOP}\nimport os, warnings\nwarnings.simplefilter('ignore')\n"
        f"draw_until(lambda: first_use.loops.{when} is not None)\n"
        "process = os.fork()\n"
        f"{UNTIL_READY}\n"
        "print('child' if not process else os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))"
    )
    done = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert sorted(done.stdout.split()) == ["0", "True", "True", "child"]
    assert done.stderr == ""


@pytest.mark.long
def test_a_script_is_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"print('main'){LOOP}{UNTIL_READY}")
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = subprocess.check_output([sys.executable, str(script)], env=env, text=True, timeout=300)
    assert found == "main\nTrue\n"


@pytest.mark.long
def test_several_processes_at_once_draw_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOOP + UNTIL_READY + "print(drawn[:50])"]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    several = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for _ in range(3)]
    found = {each.communicate(timeout=300)[0] for each in several}
    assert len(found) == 1
    assert found.pop().startswith(b"True")
