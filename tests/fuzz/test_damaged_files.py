"""Some damage to a file of every kind: a documented error that names it, or the truth."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import run
from mutations import damaged
from targets import MAKERS, made, quiet

#: Of each kind of file; `make fuzz` tries thousands.
CASES = 40


@pytest.mark.parametrize("name", MAKERS)
def test_damaged_files_are_refused_or_read_truly(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "parquet" in name or "zarr" in name:
        pytest.importorskip("pyarrow" if "parquet" in name else "zarr")
    if "state" in name:
        pytest.importorskip("torch")
    monkeypatch.setenv("DMSGD_MEMORY", "200MB")
    target = made(name, tmp_path)
    with quiet():
        assert target.try_out(target.content)
        accepted = sum(target.try_out(content) for content in damaged(target.content, CASES, 0))
    assert accepted < CASES or name.startswith("unfinished")  # whose draws are made again


def test_fuzzing_says_that_atheris_is_missing_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["run.py", "--cases", "2", "--only", "txt"])
    assert run.main() == 0
    printed = capfd.readouterr().out
    assert "atheris is not installed" in printed
    assert "2 cases, findings in: none" in printed
