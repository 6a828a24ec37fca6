"""Every example runs from start to end, in processes of its own, and prints sane results."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from nursery import Nursery

FOLDER = Path(__file__).parent.parent / "examples"
TORCHRUN = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--rdzv_backend=c10d"]
TORCHRUN += ["--rdzv_endpoint=localhost:0"]


#: What takes longest to import.
MODULES = ("sklearn.datasets", "dmsgd.torch", "torch._dynamo", "transformers.trainer")


@pytest.fixture(scope="module")
def run():
    """Return the function that runs an example, from its start, and returns what it prints."""
    with Nursery(*MODULES) as nursery:

        def run(name, processes=1):
            if processes == 1:
                return nursery.run(FOLDER / name)
            with socket.socket() as held:  # nobody else gets its port, and a rank may listen there
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                held.bind(("localhost", 0))
                world = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(held.getsockname()[1])}
                world["WORLD_SIZE"] = str(processes)
                ranks = [{"RANK": str(r), "LOCAL_RANK": str(r), **world} for r in range(processes)]
                return nursery.run(FOLDER / name, environments=ranks)

        yield run


def run_as_users_do(name, *args, start=()):
    """Return what an example prints that starts Python itself."""
    done = subprocess.run(
        [sys.executable, *start, FOLDER / name, *args],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def check_accuracies(output, at_least=0.8):
    """Diverse batches reach an accuracy of `at_least`, uniform ones less than diverse ones."""
    found = re.findall(r"^(\w+): balanced test accuracy (\d\.\d{3})", output, flags=re.M)
    accuracy = {name: float(value) for name, value in found}
    assert len(accuracy) == len(found) >= 2
    assert 0.4 < accuracy["uniform"] < accuracy["diverse"] < 0.97
    assert accuracy["diverse"] > at_least
    return accuracy


@pytest.mark.frameworks
def test_lightning():
    output = run_as_users_do("lightning_ddp.py", "2")
    check_accuracies(output)
    assert output.count("(2 processes)") == 2


@pytest.mark.frameworks
def test_ddp():
    output = run_as_users_do("pytorch_ddp.py", start=TORCHRUN)
    check_accuracies(output)
    assert output.count("(2 processes)") == 2


@pytest.mark.frameworks
def test_ddp_alone(run):
    assert run("pytorch_ddp.py").count("(1 processes)") == 2


@pytest.mark.frameworks
def test_accelerate(run):
    output = run("accelerate_run.py", processes=2)
    check_accuracies(output)
    assert output.count("(2 processes x 2 passes)") == 2


@pytest.mark.frameworks
def test_hugging_face_ddp(run):
    output = run("hugging_face.py", processes=2)
    check_accuracies(output)
    assert output.count("(2 processes)") == 2


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["pytorch", "stateful_dataloader", "hugging_face", "sklearn_partial_fit"]
)
def test_resumed_runs_end_with_the_same_weights(run, name):
    output = run(f"{name}.py")
    check_accuracies(output)
    assert re.search(r"^resumed.*, same weights: True$", output, flags=re.M)


@pytest.mark.long
def test_in_batch_negatives(run):
    output = run("in_batch_negatives.py")
    found = dict(re.findall(r"^(\w+): near-duplicates meet in (\d+) % of", output, flags=re.M))
    assert 0 < float(found["diverse"]) < float(found["random"]) / 2
    assert "resumed in epoch 1, same weights: True" in output


@pytest.mark.long
def test_changing_features(run):
    assert check_accuracies(run("changing_features.py"))["changing"] > 0.8


@pytest.mark.long
def test_weights_are_unbiased_and_less_noisy(run):
    output = run("weights.py")
    accuracy = check_accuracies(output)
    assert abs(accuracy["weighted"] - accuracy["uniform"]) < 0.1  # the same objective
    exact = float(re.search(r"^mean loss over the data: ([\d.]+)", output, flags=re.M)[1])
    lines = re.findall(r"^(\w+): mean ([\d.]+), standard deviation ([\d.]+)$", output, flags=re.M)
    mean, deviation = ({row[0]: float(row[i]) for row in lines} for i in (1, 2))
    # Means of 5000 batches, printed to three digits: four standard errors and the rounding.
    for name in ("uniform", "weighted"):
        assert abs(mean[name] - exact) < 4 * deviation[name] / 5000**0.5 + 0.001
    assert mean["diverse"] > exact + 0.1
    assert deviation["weighted"] < 0.7 * deviation["uniform"]


@pytest.mark.long
def test_schedule(run):
    output = run("schedule.py")
    for rate in ("0.1", "0.3", "1.0"):
        check_accuracies(output.replace(f", rate {rate}", ""), at_least=0.6)
    assert "same batches as the design draws: True" in output


@pytest.mark.long
def test_rare_topics_are_found(run):
    pattern = r"^(\w+): common topics found to ([\d.]+), rare topics to ([\d.]+) \(cosine\)$"
    lines = re.findall(pattern, run("lda_sklearn.py"), flags=re.M)
    common, rare = ({row[0]: float(row[i]) for row in lines} for i in (1, 2))
    assert 0.9 < min(common.values()) <= max(common.values()) <= 1
    assert 0.3 < rare["uniform"] < rare["diverse"] - 0.1 < 0.9


@pytest.mark.long
def test_select_for_labelling(run):
    output = run("select_for_labelling.py")
    pattern = r"^(.+): balanced test accuracy (\d\.\d{3}), ([\d.]+) of"
    found = re.findall(pattern, output, flags=re.M)
    accuracy = {name: float(value) for name, value, _ in found}
    classes = {name: float(count) for name, _, count in found}
    assert 0.5 < accuracy["at random"] < accuracy["diverse"] < accuracy["20 more at random"]
    assert accuracy["20 more at random"] < accuracy["20 uncertain and diverse"] < 0.9
    assert classes["at random"] < classes["diverse"] < classes["20 uncertain and diverse"]


@pytest.mark.long
def test_learn_kernel(run):
    output = run("learn_kernel.py")
    pattern = r"^(\w+): held-out log P (\S+) at the start, (\S+) learned, (\S+) true$"
    found = {name: list(map(float, logs)) for name, *logs in re.findall(pattern, output, re.M)}
    for start, learned, true in (found["planted"], found["slates"]):
        assert true - 0.3 < learned < true
        assert start < true - 1
    items = eval(re.search(r"; greedy: (.*)$", output, re.M)[1])
    assert len(set(items)) == 5


@pytest.mark.long
def test_notebook(run):
    output = run("notebook.py")
    assert "design = dmsgd.Stratified(y, k=20)" in output
    worth = float(re.search(r"variance of a uniform one of (\d+)", output)[1])
    assert worth > 20
    assert "<title>Long-tailed digits</title>" in Path(
        re.search(r"^open (.*)$", output, flags=re.M)[1]
    ).read_text(encoding="utf-8")


def test_every_example_is_tested_short_and_listed():
    tests, readme = Path(__file__).read_text(), (FOLDER / "README.md").read_text()
    for path in FOLDER.glob("*.py"):
        assert f"[{path.name}]({path.name})" in readme
        if path.name != "data.py":
            assert f'"{path.stem}"' in tests or f'"{path.name}"' in tests
            assert len(path.read_text().splitlines()) <= 60
            assert re.match(r'"""(?s:.*?)DDP.*[Rr]esume.*[Ww]orkers', path.read_text(), re.S)
