"""Nonsense for every option of every command: one line of error, never a traceback.

Options are taken from the app itself, so that new ones are covered; a new type needs values.
"""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
import pytest

from command_line import CliRunner
from dmsgd.commands import app

WORDS = ["", "none.npy", "x" * 5000 + ".npy", "x.npy/below.npy", "a\x00b.npy", "\ud800.npy", "/"]
#: By the name of click's type.
NONSENSE = {
    "integer": ["-1", "0", "1e3", "1.5", "x", "", f"{2**63}", f"-{10**30}", "9" * 5000],
    "float": ["nan", "inf", "-1", "1e-200", "1e200", "1e400", "5e-324", "x", ""],
    "choice": ["cubic", "", "LINEAR\x1b[31m"],
    "text": WORDS,
    "path": WORDS,
}

#: Arguments with which a command works; of those that work for long only the beginning is let run.
BASE = {
    "sample": ["x.npy", "-k", "3", "-n", "4", "-o", "out.npy", "--labels", "y.npy", "--force"],
    "select": ["x.npy", "-k", "3", "-o", "out.csv", "--labels", "y.npy", "--force"],
    "inspect": ["x.npy", "-k", "3", "--page", "out.html", "--labels", "y.npy", "--force"],
    "demo": ["--force"],
}
BEGINNINGS = {"demo": "dmsgd.commands.demo.compare_labelled"}
#: What an option needs beside it to mean anything.
WITH = {"scale": ["--kernel", "rbf"]}

COMMANDS = app.commands
SHARED = {each.name for each in COMMANDS["sample"].params}
RNG = np.random.default_rng(0)


def kind(parameter) -> str:
    """Return the name of an option's type; a range of numbers is one of numbers."""
    name = parameter.type.name.removesuffix(" range")
    return {"directory": "path", "file": "path"}.get(name, name)


def options():
    """Return the name of the command, and the option or argument, of all that take a value."""
    return [
        (command, each)
        for command, found in COMMANDS.items()
        for each in found.params
        if not getattr(each, "is_flag", False)
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", RNG.normal(size=(24, 6)))
    np.save("y.npy", np.arange(24) % 2)
    return tmp_path


def arguments(command, parameter, value):
    """Return the arguments of a call with this value; an option given twice has its last one."""
    if parameter.param_type_name == "argument":
        return [command, value, *BASE[command][1:]]
    return [command, *BASE[command], *WITH.get(parameter.name, []), parameter.opts[0], value]


@pytest.mark.parametrize(
    ("command", "parameter"), options(), ids=lambda each: getattr(each, "name", each)
)
def test_nonsense_is_one_line(folder, monkeypatch, command, parameter):
    if command in BEGINNINGS:
        module, _, name = BEGINNINGS[command].rpartition(".")
        __import__(module)
        monkeypatch.setattr(sys.modules[module], name, _begin)
    values = NONSENSE[kind(parameter)]
    if command != "sample" and parameter.name in {each.name for each in COMMANDS["sample"].params}:
        values = values[::3]  # the same code reads them in all commands
    for value in values:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is unlikely to be meant, for one
            result = CliRunner().invoke(app, arguments(command, parameter, value))
        told = f"{parameter.name} {value[:40]!r}: {result.exit_code} {result.stderr}"
        assert isinstance(result.exception, SystemExit | None), f"{told}{result.exception!r}"
        assert result.exit_code in (0, 1, 2), told
        if result.exit_code and "Usage: " not in result.stderr:
            assert re.fullmatch(r"error: [^\n]+\n", result.stderr), told
        assert "\x1b" not in result.stderr, told
        assert len(result.stderr) < 12_000, told
        if value in ("x", "", "nan"):
            assert result.exit_code, told


def _begin(*_):
    raise ValueError("accepted: the work begins")


def test_everything_is_covered():
    assert set(COMMANDS) == set(BASE)
    assert {kind(each) for _, each in options()} == set(NONSENSE)
    assert len(options()) > 40


def test_a_command_that_works_is_no_error(folder):
    """Else every case above might end for another reason than its nonsense."""
    for command in ("sample", "select", "inspect"):
        assert CliRunner().invoke(app, [command, *BASE[command]]).exit_code == 0


def test_designs_are_asked_for_in_the_same_words():
    """Each command that makes a design has all options of one, with the same help."""
    sample, inspect = (
        {each.name: getattr(each, "help", None) for each in COMMANDS[command].params}
        for command in ("sample", "inspect")
    )
    own = {"page", "table", "texts", "images", "gradients", "seed"}
    shared = set(inspect) - own
    assert {"k", "labels", "w", "kernel", "scale", "rho", "standardize", "target"} < shared
    assert {name: inspect[name] for name in shared} == {name: sample[name] for name in shared}
