"""What commands say, in real processes: text of users as text, and no work lost to the streams."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import dmsgd.commands
from dmsgd.inputs.messages import cell, visible
from test_commands import run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="redirections of a POSIX shell")

RNG = np.random.default_rng(0)
SAMPLE = "sample x.npy --labels y.npy -k 5 -n 20 -o out.npy"
PAGE = "inspect x.npy --labels y.npy -k 5 --page out.html"
INSPECT = "inspect x.npy --labels y.npy -k 5"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", RNG.normal(size=(60, 12)))
    np.save("y.npy", np.repeat(["naïve", "plain", "\u202e[red]:a:\x1b[31m"], 20))
    return tmp_path


def shell(command, redirection="", **environment):
    """Run `dmsgd COMMAND` with a redirection of the shell; PIPESTATUS is its exit code."""
    code = "import sys; from dmsgd.commands import main; sys.argv[0] = 'dmsgd'; main()"
    line = f'"$0" -c "{code}" {command} {redirection}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(
        ["bash", "-c", line, sys.executable],
        capture_output=True,
        env={**os.environ, **environment},
        timeout=120,
    )


def assert_quiet(errors):
    """Check that there is no error; that a first run compiles may be said."""
    assert not re.search(rb"Traceback|[Ee]rror|Exception", errors), errors


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "redirection", "written"),
    [
        (SAMPLE, "| true", "out.npy"),
        (SAMPLE, ">&- 2>&- <&-", "out.npy"),
        (PAGE, "2>&-", "out.html"),
        (INSPECT, "| true", None),
    ],
)
def test_the_work_is_done_when_nobody_listens(folder, command, redirection, written):
    done = shell(command, redirection)
    assert done.returncode == 0
    assert_quiet(done.stderr)
    if written is None:
        return
    if written == "out.npy":
        assert np.load(written).shape == (20, 5)
    else:
        assert (folder / written).read_text().endswith("</html>")


def test_errors_keep_their_exit_code_when_nobody_listens(folder):
    for redirection in ("2>/dev/full", ">&- 2>&-"):
        assert shell("inspect none.npy -k 5", redirection).returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_lost_output_is_one_error(folder):
    done = shell(PAGE, ">/dev/full")
    assert done.returncode == 2
    assert done.stderr.endswith(b"error: No space left on device\n")
    assert b"Traceback" not in done.stderr


def test_a_terminal_that_knows_ascii_only(folder):
    done = shell(INSPECT, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0
    assert_quiet(done.stderr)
    assert rb"na\xefve" in done.stdout
    assert done.stdout.isascii()


def test_all_commands_speak_through_one_module():
    """`terminal.py` escapes control characters and survives closed streams."""
    folder = Path(dmsgd.commands.__file__).parent
    for path in sorted(set(folder.glob("*.py")) - {folder / "terminal.py"}):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bprint\(|click\.echo\(", text), path.name


@pytest.mark.parametrize("name", ["x.npz:a:", ":smile:[red]\x1b[31m\u202e.npy"])
def test_names_of_files_are_shown_as_they_are(folder, name):
    if name.endswith(".npy"):
        np.save(name, np.load("x.npy"))
        quoted = f"'{name}'"
    else:
        np.savez("x.npz", **{"a:": np.load("x.npy")})
        quoted = name
    for command in ("inspect {} -k 5 --page a.html", "sample {} -k 5 -n 2 -o a.npy"):
        result = run(command.format(quoted))
        assert result.exit_code == 0, result.output
        assert visible(name) in result.stdout
        assert not set("\x1b\u202e") & set(result.stdout)


def test_names_of_classes_are_shown_as_they_are(folder):
    for command in (SAMPLE, INSPECT):
        result = run(command)
        assert result.exit_code == 0, result.output
        assert r"\u202e[red]:a:" in result.stdout
        assert not set("\x1b\u202e") & set(result.stdout)


def test_long_names_of_classes_are_cut(folder):
    np.save("y.npy", np.repeat(["a" * 200_000, "b", "c"], 20))
    for command in (SAMPLE, INSPECT):
        assert len(run(command).stdout) < 10_000


def test_errors_show_what_was_given_as_text(folder):
    result = run("inspect '\x1b[31m\u202e.npy' -k 5")
    assert result.stderr == "error: there is no file \\x1b[31m\\u202e.npy\n"


@pytest.mark.parametrize(
    ("text", "length", "shown"),
    [
        ("plain", None, "plain"),
        ("naïve 日本 😀", None, "naïve 日本 😀"),
        ("a\nb\tc\x00\x7f\x9b", None, r"a\nb\tc\x00\x7f\x9b"),
        ("\u200fa\u202eb\u2066c\u2028", None, r"\u200fa\u202eb\u2066c\u2028"),
        ("\ud800\udcff", None, r"\ud800\udcff"),
        (
            "\u0645\u06cc\u200c\u062e",
            None,
            "\u0645\u06cc\u200c\u062e",
        ),  # a joiner belongs to a word
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        (b"bytes", None, "b'bytes'"),
        (3, None, "3"),
    ],
)
def test_visible(text, length, shown):
    assert visible(text, length) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1+1", "'+1+1"),
        ("-2+3", "'-2+3"),
        ("-", "'-"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\uff1d1", "'\uff1d1"),
        ("-inf", "'-inf"),
        ("-1_0", "'-1_0"),
        ("\t=1", r"\t=1"),
        ("\r=1", r"\r=1"),
        ("a\x1b[31m", r"a\x1b[31m"),
        ("-3.5", "-3.5"),
        ("+1e-9", "+1e-9"),
        ("-.5", "-.5"),
        (-3.5, "-3.5"),
        (-1e300, "-1e+300"),
        (float("-inf"), "-inf"),
        (np.float32("-inf"), "-inf"),
        (Decimal("-Infinity"), "-Infinity"),
        (7, "7"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_cell(value, shown):
    assert cell(value) == shown


def on_a_terminal(code, folder):
    """Return what a Python process prints to a terminal, and its exit code."""
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=follower, stdout=subprocess.DEVNULL, cwd=folder
    )
    os.close(follower)
    shown = b""
    with suppress(OSError):  # the other end is closed
        while part := os.read(leader, 4096):
            shown += part
    os.close(leader)
    return shown.decode(), process.wait(timeout=60)


@pytest.mark.long
@pytest.mark.parametrize("command", [SAMPLE, f"{INSPECT} -w 0.5"])
def test_how_far_long_work_is_shows_above_the_bar(folder, command):
    code = (
        "import sys, time\n"
        "from dmsgd.commands import main\n"
        "from dmsgd.runtime import progress\n"
        "from dmsgd.spectra import decompose\n"
        "def slow(A):\n"
        "    tell = progress.Progress('this eigendecomposition')\n"
        "    time.sleep(0.3)\n"
        "    tell(0.5)\n"
        "    time.sleep(0.3)\n"
        "    return right(A)\n"
        "progress.EVERY, right, decompose.eigh = 0.1, decompose.eigh, slow\n"
        f"sys.argv = 'dmsgd {command}'.split(); main()\n"
    )
    shown, returned = on_a_terminal(code, folder)
    assert returned == 0, shown
    assert re.search(r"this eigendecomposition: \d+ seconds", shown)
