"""Two processes with gloo: every global batch is one draw, under each framework's own sharding."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "distributed"
sys.path.insert(0, str(FOLDER))
from common import EPOCHS, STEPS, K, design  # noqa: E402


def run(tmp_path, script, *args, torchrun=2):
    """Run a script in two processes and return what each rank saw."""
    start = [sys.executable]
    if torchrun:
        start += ["-m", "torch.distributed.run", "--nproc_per_node", str(torchrun)]
        start += ["--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(FOLDER)}
    done = subprocess.run(
        [*start, FOLDER / script, tmp_path, *args],
        env=environment, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(path.read_text()) for path in sorted(tmp_path.glob("rank*.json"))]


def check_global_steps(ranks, passes_per_step=1):
    """Over ranks and accumulation, step t of epoch e is draw e * STEPS + t."""
    assert len({len(rank["batches"]) for rank in ranks}) == 1
    steps = []
    for first in range(0, len(ranks[0]["batches"]), passes_per_step):
        parts = [rank["batches"][first : first + passes_per_step] for rank in ranks]
        steps.append(sorted(np.array(parts).ravel().tolist()))
    expected = np.sort(design().sample(EPOCHS * STEPS, seed=0), axis=1).tolist()
    assert steps == expected
    assert expected[:STEPS] != expected[STEPS:]  # the epoch changes the draws


def test_plain_ddp(tmp_path):
    ranks = run(tmp_path, "plain_ddp.py")
    assert len(ranks) == 2
    assert ranks[0]["length"] == STEPS
    check_global_steps(ranks)


@pytest.mark.parametrize("mode", ["default", "split", "accumulation"])
def test_accelerate(tmp_path, mode):
    ranks = run(tmp_path, "accelerate_ddp.py", mode)
    assert len(ranks) == 2
    check_global_steps(ranks, passes_per_step=2 if mode == "accumulation" else 1)


def test_lightning_ddp(tmp_path):
    ranks = run(tmp_path, "lightning_ddp.py", "2", "0", torchrun=0)
    assert len(ranks) == 2
    check_global_steps(ranks)


@pytest.mark.parametrize("stop_at", [3, STEPS, STEPS + 2])
def test_lightning_resumes_in_the_middle(tmp_path, stop_at):
    ranks = run(tmp_path, "lightning_ddp.py", "1", str(stop_at), torchrun=0)
    check_global_steps(ranks)


def test_draws_are_of_the_size_that_ranks_share():
    assert design().k == K
