"""The soaks in small: each runs for some seconds, and fails where it should."""

import gc
import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))
import ddp  # noqa: E402
import loaders  # noqa: E402
from watch import NOISE, SHARE, Memory, finish, memory  # noqa: E402

import draws  # noqa: E402


@pytest.fixture
def frozen():
    """Let no look at memory go through all that other tests have left."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize(
    ("soak", "options"),
    [
        (draws, "--draws 40000 --n 300 --lot 2000"),
        (loaders, "--loaders 15 --steps 20 --n 200"),
    ],
)
def test_soaks_of_one_process(soak, options, capsys):
    with pytest.raises(SystemExit) as ended:
        soak.main(options.split())
    told = capsys.readouterr()
    assert ended.value.code == 0, told.out
    assert told.out.startswith(f"{soak.__name__}: holds (")
    assert "; takes " in told.err


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("ddp", "--steps 300 --kills 1"),
        ("workers", "--kills 1 --every 0.5 --steps 300 --workers 2"),
    ],
)
def test_soaks_with_kills(script, options):
    if script == "workers":
        pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", FOLDER / f"{script}.py", *options.split()],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.startswith(f"{script}: holds (")


def test_a_leak_is_seen():
    watched = Memory()
    watched.look()
    watched.look()
    assert watched.flat
    size = int(4 * NOISE + 4 * SHARE * memory())
    with mmap.mmap(-1, size) as leak:  # new pages, whatever other tests have left to use again
        leak.write(bytes(size))
        watched.look()
    assert not watched.flat


def test_steps_that_are_missing_twice_or_wrong_are_seen(tmp_path):
    draws, width = ddp.design().sample(20, seed=0), ddp.K // ddp.RANKS

    def noted(rows):
        for rank in range(ddp.RANKS):
            part = np.ascontiguousarray(rows[:, rank * width : (rank + 1) * width])
            (tmp_path / f"rank{rank}").write_bytes(part.tobytes())
        return ddp.wrong_steps(tmp_path, 20)

    assert noted(draws) == []
    assert "not their draw, the first 7" in noted(np.vstack([draws[:7], draws[6:-1]]))[0]  # twice
    assert "19 of 20 steps" in noted(np.delete(draws, 7, axis=0))[0]  # missing
    draws[7, 0] = (draws[7, 0] + 1) % ddp.N
    assert noted(draws) == ["1 steps are not their draw, the first 7"]


def test_failures_end_in_1(capsys):
    with pytest.raises(SystemExit) as ended:
        finish("draws", ["memory grows"], "10 draws")
    assert ended.value.code == 1
    assert capsys.readouterr().out == "draws: FAILED: memory grows (10 draws)\n"
