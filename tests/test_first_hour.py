"""What `make first-hour` types into an empty environment, in this one and this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dmsgd.commands import app

sys.path.insert(0, str(Path(__file__).parent / "first_hour"))
from files import write
from steps import BARE, STEPS, Step

#: Pages take seconds, and are tested elsewhere.
QUICK = [step for step in STEPS if step.where != BARE and "html" not in step.typed]


@pytest.mark.filterwarnings("always")  # they are printed, as for users
def test_every_answer_is_as_expected(tmp_path, monkeypatch, capsys):
    """One step after another: some find what others have written."""
    pytest.importorskip("pyarrow")  # writes the files
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    for step in QUICK:
        if step.is_python:
            exec(compile(step.typed, "step", "exec"), {})
            wrong = step.wrong(0, capsys.readouterr().out)
        else:
            answer = CliRunner().invoke(app, step.typed.split(), prog_name="dmsgd")
            wrong = step.wrong(answer.exit_code, answer.output)
        assert not wrong, step.typed


def test_wrong_answers_are_noticed():
    step = Step("demo", ("one", "two"), never=("three",))
    assert not step.wrong(0, "one\nand two")
    assert "exit code 1" in step.wrong(1, "one and two")
    assert "'one' was not" in step.wrong(0, "two")
    assert "'two' was not" in step.wrong(0, "two, one")
    assert "'three' was printed" in step.wrong(0, "one two three")
