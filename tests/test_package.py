"""What is published agrees with itself; `make release-check` builds and installs it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import dmsgd
import gpu
import processors

ROOT = Path(__file__).parent.parent


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_everywhere() -> None:
    cited = re.search(r"^version: (.*)$", text("CITATION.cff"), re.M)[1]
    newest, state = re.search(r"^## ([\d.]+) \((.*)\)$", text("CHANGELOG.md"), re.M).groups()
    assert cited == dmsgd.__version__
    assert dmsgd.__version__ == (f"{newest}.dev0" if state == "unreleased" else newest)


#: The names at the top level; a new one belongs into a module, unless most users need it.
PUBLIC = {
    "ClusterError", "DPP", "Design", "DeviceError", "KDPP", "KernelWarning", "Partition",
    "RankError", "SamplingError", "Schedule", "Selection", "Stratified", "TargetError",
    "Uniform", "Weighted", "cells", "diversify", "near_duplicates", "presample", "select",
    "unbiased_weights", "uncertainty",
}  # fmt: skip


def test_the_public_names_stay_few() -> None:
    assert set(dmsgd.__all__) == PUBLIC


def test_every_error_is_public() -> None:
    known = {name for name in vars(dmsgd.errors) if name.endswith(("Error", "Warning"))}
    assert known - {"InputError"} <= PUBLIC  # a ValueError whose message names arguments


def test_every_make_target_is_listed_for_contributors() -> None:
    targets = set(re.search(r"^\.PHONY: (.*)$", text("Makefile"), re.M)[1].split())
    listed = set(re.findall(r"^    make ([\w-]+) ", text("CONTRIBUTING.md"), re.M))
    assert targets - {"browser", "clean"} == listed


def test_a_forge_runs_targets_that_exist() -> None:
    targets = re.findall(r"^([\w-]+):", text("Makefile"), re.M)
    asked = re.findall(r"\bmake ([\w-]+)", text(".github/workflows/test.yml"))
    assert set(asked) <= set(targets)
    assert {
        "check",
        "test",
        "test-long",
        "test-frameworks",
        "test-outside",
        "release-check",
    } <= set(asked)


def test_what_runs_as_on_other_processors_exists() -> None:
    named = processors.NUMERICAL
    assert [name for name in named if not (ROOT / "tests" / f"test_{name}.py").exists()] == []


def test_all_tests_that_need_a_gpu_run_there() -> None:
    found = {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_cuda*.py")}
    assert found | {"device_math", "learning", "stored_draws"} == set(gpu.FILES)
    assert (ROOT / "tests" / "test_device_math.py").exists()


def test_a_run_on_a_gpu_says_of_which_commit_it_is(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("COMMIT", raising=False)
    assert gpu.commit(tmp_path) == "unknown"
    monkeypatch.setenv("COMMIT", "4f8bb68")
    assert gpu.commit(tmp_path) == "4f8bb68"
    tracked()  # skips where this is no clone
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    head = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert gpu.commit().removesuffix("+changes") == head[:12]


def test_a_run_without_a_gpu_fails(monkeypatch, capsys) -> None:
    monkeypatch.setattr(gpu, "gpus", list)
    assert gpu.main() == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"commit {gpu.commit()}, sources {gpu.sources()}, GPU: none"
    assert "nothing was tested" in second


def test_every_folder_is_on_the_map() -> None:
    rows = re.findall(r"^\| (`.*?) \|", text("CONTRIBUTING.md"), re.M)
    mapped = {name for row in rows for name in re.findall(r"`src/dmsgd/(\w+)`", row)}
    folders = {path.parent.name for path in (ROOT / "src" / "dmsgd").glob("*/__init__.py")}
    assert folders == mapped


#: Where measurements and pictures lie, which may be larger.
LARGE = ("docs/images/", "experiments/results/")


def tracked(*options: str) -> list[str]:
    """Return the files that git knows, as `git ls-files` with options."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a clone")
    return done.stdout.split("\0")[:-1]


def test_no_large_file_is_tracked() -> None:
    sizes = {name: (ROOT / name).stat().st_size for name in tracked() if (ROOT / name).is_file()}
    large = {name for name, size in sizes.items() if size > 500_000}
    assert {name for name in large if not name.startswith(LARGE)} == set()


def test_nothing_is_tracked_that_a_command_makes() -> None:
    """What commands make is in .gitignore, or is a table, a lock or a page that a test compares."""
    assert tracked("--cached", "--ignored", "--exclude-standard") == []
    made = re.compile(r"\.(whl|egg|gz|zip|pyc|so|log|html|svg|journal|tmp)$|(^|/)(build|dist)/")
    templates = "src/dmsgd/report/"
    found = {name for name in tracked() if made.search(name)}
    assert {name for name in found if not name.startswith(templates)} == set()
