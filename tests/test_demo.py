"""`dmsgd demo`: its data, the direction of its numbers, and what it prints and writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import CliRunner
from dmsgd.commands import app
from dmsgd.commands.demo import compare_batches, documents


def test_documents_have_common_topics_a_rare_one_and_odd_ones() -> None:
    counts, topic = documents(0)
    assert counts.shape == (1000, 200)
    assert np.all(counts.sum(axis=1) == 150)
    assert np.bincount(topic).tolist() == [196] * 5 + [10] + [1] * 10


def test_rare_documents_are_drawn_as_the_front_page_says() -> None:
    seeds = [compare_batches(seed) for seed in range(3)]
    held = {name: np.mean([each[name][0] for each in seeds]) for name in seeds[0]}
    assert held["shuffled"] < 25 < 50 < held["frequency-matched"] < held["k-DPP"] < 75
    for each in seeds:
        assert each["shuffled"][1] == pytest.approx(1)
        assert each["k-DPP"][1] == pytest.approx(each["frequency-matched"][1])
        assert each["k-DPP"][1].min() > 4
    assert seeds[0]["k-DPP"][0] == compare_batches(0)["k-DPP"][0] != seeds[1]["k-DPP"][0]


def test_demo_prints_a_table_and_writes_a_page(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    answer = CliRunner().invoke(app, ["demo", "--seeds", "2", "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    for name in ("shuffled", "frequency-matched", "k-DPP"):
        assert f"{name}  " in answer.output
    assert str(out / "report.html") in answer.output
    assert "rare topic" in (out / "report.html").read_text(encoding="utf-8")
    assert "\x1b" not in answer.output  # no progress bars outside a terminal
    assert max(map(len, answer.output.splitlines())) <= max(80, len(str(out)) + 40)


def test_demo_refuses_a_file_as_folder_and_a_single_seed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file")]).exit_code == 2
    assert CliRunner().invoke(app, ["demo", "--seeds", "1"]).exit_code == 2
