"""`dmsgd demo`: the direction of its figures, and what it prints and writes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from command_line import CliRunner
from dmsgd.commands import app
from dmsgd.commands.demo import compare_labelled


def test_chosen_digits_train_better_than_random_ones() -> None:
    X, y = load_digits(return_X_y=True)
    found = [compare_labelled(X / 16, y, seed) for seed in range(2)]
    random, select = (
        np.mean([each[name] for each in found], axis=0) for name in ("random", "select")
    )
    assert np.all(select > random + 1)
    assert 75 < select[0] < select[-1] < 98
    assert found[0] == compare_labelled(X / 16, y, 0) != found[1]


def test_demo_prints_one_screen_and_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["dmsgd.commands.demo"], "SEEDS", 2)
    out = tmp_path / "new" / "folder"
    answer = CliRunner().invoke(app, ["demo", "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    for words in ("labelled", "random", "k-means", "select", "±"):
        assert words in answer.output
    assert str(out / "digits.html") in answer.output
    assert "Digits" in (out / "digits.html").read_text(encoding="utf-8")
    assert "\x1b" not in answer.output  # no colours or progress bars outside a terminal
    lines = answer.output.splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= max(80, len(str(out)) + 70)


def test_demo_refuses_a_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file")]).exit_code == 2
