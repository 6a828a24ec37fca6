"""What `make fuzz` counts: hostile calls, and those that are badly answered."""

import hostile
import pytest
from calls import Call
from kinds import FLAG
from test_calls import ALL

from dmsgd.inputs.scalars import as_flag


def indexed(size, flag):
    return [][0]


def silent(size, flag):
    return 0


def refusing(size, flag):
    return as_flag(flag, "flag")


@pytest.mark.parametrize(("run", "bad"), [(indexed, 50), (silent, 50), (refusing, 0)])
def test_bad_answers_are_counted(run, bad, monkeypatch, capsys):
    call = Call(run, {"flag": FLAG}, lambda *given: None)
    monkeypatch.setitem(ALL, "made up for this test", call)
    failed = hostile.main(["--calls", "50", "--only", "made up"])
    assert f"50 calls, {bad} badly answered" in capsys.readouterr().out
    assert failed == (bad > 0)


def test_some_hostile_calls(capsys):
    """A few of those of `make fuzz`, the same each time."""
    assert hostile.main(["--calls", "100", "--seed", "1"]) == 0
    assert "100 calls, 0 badly answered" in capsys.readouterr().out
