"""What a new user's first draw does: compile once, say so, and find a folder to keep the result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAW = "import dmsgd; print(dmsgd.Uniform(9, 3).sample(1, seed=0).tolist())"
LINE = "dmsgd: compiling for this processor"

#: As on a machine where neither the package's folder nor the user's can be written.
READ_ONLY = """
from dmsgd.compiled import kept
for locator in (kept._Chosen, kept._InPackage, kept._OfUser):
    locator.from_function = classmethod(lambda cls, *arguments: None)
"""

#: Both designs compile: one through numba alone, the other by signatures of ours.
TWO_THREADS = """
import threading, dmsgd
X = [[(i * j) % 7 + 1.0 for j in range(1, 7)] for i in range(60)]
designs = dmsgd.SwapChain(dmsgd.Linear(X), 4), dmsgd.diversify(X, 4)
threads = [threading.Thread(target=design.sample, args=(3, 0)) for design in designs]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("ended")
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


def test_it_says_that_it_compiles_and_compiles_once(tmp_path: Path) -> None:
    first = run(DRAW, NUMBA_CACHE_DIR=str(tmp_path))
    again = run(DRAW, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stderr.count(LINE) == 1
    assert again.stderr == ""
    assert first.stdout == again.stdout


@pytest.mark.long
def test_two_threads_that_compile_do_not_wait_for_each_other(tmp_path: Path) -> None:
    assert run(TWO_THREADS, NUMBA_CACHE_DIR=str(tmp_path)).stdout == "ended\n"


@pytest.mark.long
def test_where_nothing_can_be_written_a_temporary_folder_will_do(tmp_path: Path) -> None:
    first = run(READ_ONLY + DRAW, TMPDIR=str(tmp_path))
    again = run(READ_ONLY + DRAW, TMPDIR=str(tmp_path))
    assert LINE in first.stderr
    assert again.stderr == ""
    (folder,) = tmp_path.glob("dmsgd-*")
    assert list(folder.glob("*.nbc"))
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_a_temporary_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / f"dmsgd-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert "[[" in run(READ_ONLY + DRAW, TMPDIR=str(tmp_path)).stdout
    assert not list(folder.iterdir())


def test_what_is_kept_belongs_to_the_text_of_all_compiled_files(monkeypatch) -> None:
    from dmsgd.compiled import kept, philox

    stamp = philox.fill_uniform._cache._impl.locator.get_source_stamp()
    assert stamp == kept._sources()
    monkeypatch.setattr(kept.Path, "read_bytes", lambda path: b"other")
    assert kept._sources.__wrapped__() != stamp
