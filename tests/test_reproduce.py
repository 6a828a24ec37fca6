"""`dmsgd reproduce` and what all experiments share: storage, trials, intervals, claims."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dmsgd.commands import app
from dmsgd.commands.reproduce import EXPERIMENTS, claims_table, experiment
from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper import provenance, storage
from dmsgd.paper.halves import Halves, halved
from dmsgd.paper.intervals import holds, margin, paired, show, shown
from dmsgd.paper.protocol import Claim
from dmsgd.paper.synthetic_lda import result as synthetic_lda
from dmsgd.paper.trials import run_trials


@dataclass(frozen=True)
class Config:
    seeds: int = 5
    sizes: tuple[int, ...] = (1, 2)
    name: str = "x"
    scale: float | None = None


@dataclass(frozen=True, eq=False)
class Result:
    config: Config
    curve: dict[str, FloatArray]
    counts: IntArray
    pairs: tuple[tuple[str, float], ...]


def invoke(*arguments: str) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, ["reproduce", *arguments])
    return outcome.exit_code, outcome.output


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    result = Result(
        Config(sizes=(3,), scale=0.5),
        {"a b": np.array([[0.25, np.nan], [1e-12, 3.0]])},
        np.array([1, 2**40]),
        (("one", 1.0), ("two", 2.0)),
    )
    storage.save(result, tmp_path / "r.json")
    again = storage.load(Result, tmp_path / "r.json")
    assert again.config == result.config
    assert again.pairs == result.pairs
    np.testing.assert_array_equal(again.curve["a b"], result.curve["a b"])
    np.testing.assert_array_equal(again.counts, result.counts)
    assert again.counts.dtype == np.int64


def test_a_result_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "result.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        storage.save(1.0, tmp_path / "result.json")
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_other_files_are_refused_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="without --replot first"):
        storage.load(Result, tmp_path / "none.json")
    for content in ("{", "{}", json.dumps({"result": {"config": {"old": 1}}})):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(ValueError, match="run the experiment again"):
            storage.load(Result, tmp_path / "bad.json")


def test_results_say_what_made_them(tmp_path: Path) -> None:
    storage.save(Config(), tmp_path / "r.json")
    recorded = storage.recorded(tmp_path / "r.json")
    assert tuple(recorded) == provenance.FIELDS
    for name in ("machine", "processor", "gpu", "python", "numpy", "scipy", "scikit-learn"):
        assert recorded[name], name
    assert recorded["numpy"] == np.__version__
    line = provenance.told(recorded)
    assert f"numpy {np.__version__}" in line
    assert f"GPU: {recorded['gpu']}" in line
    assert "not recorded" not in line


def test_torch_and_gpu_are_told_only_where_they_were_used() -> None:
    code = (
        "from dmsgd.paper import provenance as p; before = p.record(); import torch;"
        "after = p.record(); print(before['torch'] == '', before['gpu'], after['torch'] != '')"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.split() == ["True", "none", "True"], answer.stderr


def test_older_results_load_and_tell_what_they_do_not_record(tmp_path: Path) -> None:
    content = {"result": {"seeds": 7, "sizes": [1], "name": "x", "scale": None}}
    content |= {"numpy": "1.0", "machine": "Linux, 2 cores"}
    (tmp_path / "old.json").write_text(json.dumps(content))
    assert storage.load(Config, tmp_path / "old.json").seeds == 7
    line = provenance.told(storage.recorded(tmp_path / "old.json"))
    assert line.startswith("Linux, 2 cores; numpy 1.0; not recorded: processor, gpu, python,")
    assert line.endswith("commit")


def test_the_commit_is_that_of_the_checkout(tmp_path: Path) -> None:
    package = tmp_path / "src"
    package.mkdir()
    (package / "__init__.py").write_text("")

    def git(*arguments: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", "-C", str(tmp_path), *settings, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert provenance.commit(package) == ""
    git("init")
    assert provenance.commit(package) == ""  # in a checkout, but no part of it
    git("add", ".")
    git("commit", "-m", "first")
    short = git("rev-parse", "--short", "HEAD")
    assert provenance.commit(package) == short
    (tmp_path / "notes.md").write_text("no part of the package")
    assert provenance.commit(package) == short
    (package / "new.py").write_text("")
    assert provenance.commit(package) == f"{short}+changes"


def power(base: int, exponent: int) -> int:
    return int(base**exponent)


@pytest.mark.parametrize("workers", [1, 2])
def test_trials_keep_their_order_and_tell_progress(workers: int) -> None:
    told: list[float] = []
    jobs = [(base, 2) for base in range(6)]
    assert run_trials(power, jobs, told.append, workers) == [0, 1, 4, 9, 16, 25]
    assert told == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1.0])


def test_intervals() -> None:
    values = np.array([0.86, 0.87, 0.88])
    assert margin(values) == pytest.approx(4.302653 * 0.01 / np.sqrt(3))
    assert np.isnan(margin(values[:1]))
    assert show(values) == "87.0 ± 2.5"
    assert show(values[:1]) == "86.0"
    assert shown(1.26, 0.5, sign=True) == "+1.3 ± 0.5"
    mean, half = paired(values + 0.1, values)
    assert mean == pytest.approx(0.1)
    assert half == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("lead", "half", "expected"),
    [
        (0.54, 0.53, True),
        (0.53, 0.54, False),
        (0.5, 0.5, False),  # touches 0
        (0.0, 0.0, False),
        (-0.6, 0.5, False),
        (1e-12, 0.0, True),
        (9.0, float("nan"), None),
    ],
)
def test_a_statement_holds_if_its_interval_lies_above_0(
    lead: float, half: float, expected: bool | None
) -> None:
    assert holds(lead, half) is expected


@pytest.mark.parametrize(("runs", "expected"), [(2, None), (4, None), (5, True), (None, True)])
def test_few_runs_give_no_verdict(runs: int | None, expected: bool | None) -> None:
    """A closed form has no runs and needs none."""
    assert holds(9.0, 0.1, runs) is expected


def test_halves_are_paired_and_add_up() -> None:
    uniform, same_b, kdpp = np.array([[70.0, 60, 80, 75, 65], [73, 64, 82, 79, 69], [74.5] * 5])
    half = Halves("Fig. 1", "accuracy, points", uniform, same_b, kdpp)
    whole, seen, meets = half.differences.values()
    assert seen == paired(same_b, uniform)
    assert seen[0] + meets[0] == pytest.approx(whole[0])
    alone = Halves("Fig. 1", "accuracy, points", uniform, same_b, kdpp, uniform + 1, digits=2)
    assert list(alone.differences.values())[3] == pytest.approx((1, 0))
    rows = halved([half, alone])
    assert [claim.holds for claim in rows] == [True, False, True, False, True]
    assert rows[0].statement == "accuracy, points: who is seen, same b minus uniform"
    assert rows[0].ours == "+3.4 ± 1.1"
    assert rows[2].ours == "+3.40 ± 1.11"


def test_halves_of_two_seeds_give_no_verdict() -> None:
    two = Halves("Fig. 1", "accuracy", np.zeros(2), np.ones(2), np.ones(2))
    assert [claim.holds for claim in halved([two])] == [None, None]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_follows_the_protocol(name: str) -> None:
    module = experiment(name)
    assert isinstance(module.TITLE, str)
    assert is_dataclass(module.Config)
    assert is_dataclass(module.Result)
    config, quick = module.Config(), module.QUICK
    assert isinstance(quick, module.Config)
    assert config.seeds >= 5
    assert quick != config
    assert fields(module.Result)[0].name == "config"
    for function in ("load", "run", "claims", "halves", "plot"):
        assert callable(getattr(module, function))


def test_reproduce_writes_prints_and_plots_again(tmp_path: Path) -> None:
    code, output = invoke("toy", "--quick", "--seeds", "2", "--out", str(tmp_path))
    assert code == 0, output
    assert "k-DPP restores the balance" in " ".join(output.split())
    toy = experiment("toy")
    found = toy.claims(storage.load(toy.Result, tmp_path / "toy.json"))
    assert all(claim.holds is None for claim in found)  # two seeds
    names = {"toy.json", "toy.png", "toy.svg"}
    assert {path.name for path in tmp_path.iterdir()} == names
    saved = (tmp_path / "toy.json").read_bytes()
    (tmp_path / "toy.png").unlink()
    code, output = invoke("toy", "--replot", "--out", str(tmp_path))
    assert code == 0, output
    assert (tmp_path / "toy.png").is_file()
    code, output = invoke("toy", "--quick", "--out", str(tmp_path))
    assert code == 2
    assert "--force" in output
    assert (tmp_path / "toy.json").read_bytes() == saved


def test_processes_share_the_runs_and_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic_lda, "QUICK", synthetic_lda.Config(steps=9))  # of 90
    found = []
    for workers in ("1", "2"):
        out = tmp_path / workers
        options = ("--quick", "--seeds", "2", "--workers", workers, "--out", str(out))
        code, output = invoke("synthetic-lda", *options)
        assert code == 0, output
        found.append(json.loads((out / "synthetic-lda.json").read_text())["result"])
        assert found[-1]["config"].pop("workers") == int(workers)
    assert found[0] == found[1]


def test_bad_requests_are_refused_before_any_work(tmp_path: Path) -> None:
    code, output = invoke("figure-2", "--out", str(tmp_path / "new"))
    assert code == 2
    assert "unknown experiment 'figure-2'" in output
    assert "synthetic-lda" in output
    assert not (tmp_path / "new").exists()
    assert invoke("toy", "--replot", "--quick")[0] == 2
    code, output = invoke("toy", "--workers", "0", "--out", str(tmp_path / "new"))
    assert code == 2
    assert "-1 for one a core" in output
    assert invoke("toy", "--replot", "--out", str(tmp_path))[0] == 2
    assert invoke("r8", "--quick", "--data-dir", str(tmp_path), "--out", str(tmp_path))[0] == 2


def test_claims_are_shown_as_text() -> None:
    from rich.console import Console

    console = Console(width=100, record=True, file=io.StringIO())
    console.print(claims_table("T", [Claim("Fig. 1", "[red]a", "1", "2 ± 1", False, "why [b]")]))
    text = console.export_text()
    for part in ("[red]a", "2 ± 1", "no", "why [b]"):
        assert part in text
