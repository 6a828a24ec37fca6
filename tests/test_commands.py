import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import dmsgd
import documented_help
from command_line import CliRunner
from dmsgd.commands import app, files, one_line
from dmsgd.errors import InputError

COMMANDS = ("inspect", "sample", "select", "demo")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 80))
Y = RNG.integers(0, 3, size=300)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the files that the examples of the help name."""
    monkeypatch.chdir(tmp_path)
    np.save("features.npy", X)
    np.save("y.npy", Y)
    sparse.save_npz("tfidf.npz", sparse.csr_array(np.abs(X) * (np.abs(X) > 1)))
    rows = [f"{a:.5f},{b:.5f},{c:.5f},kind{y}" for a, b, c, y in zip(*X[:, :3].T, Y, strict=True)]
    (tmp_path / "iris.csv").write_text("\n".join(["a,b,c,species", *rows]))
    rows = [f"n{i},text {i},{i % 7},{a:.5f},{b:.5f}" for i, (a, b) in enumerate(X[:, :2])]
    (tmp_path / "pool.csv").write_text("\n".join(["name,body,score,a,b", *rows]))
    (tmp_path / "labelled.csv").write_text("item\n3\n5\n")
    return tmp_path


def run(command):
    return CliRunner().invoke(app, shlex.split(command), prog_name="dmsgd")


def fails(command, message):
    """Check that the command ends with exit code 2 and one line that matches `message`."""
    result = run(command)
    assert result.exit_code == 2, result.output
    assert re.fullmatch(rf"error: .*{message}.*\n", result.stderr), result.stderr
    return result


def console_script(*arguments, **options):
    # As from a terminal: whoever starts the tests in the background may have Ctrl-C ignored.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from dmsgd.commands import main; sys.argv[0] = 'dmsgd'; main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# The result


@pytest.mark.parametrize(
    ("options", "design"),
    [
        ("", lambda: dmsgd.diversify(X, 8)),
        ("--labels y.npy -w 0.7", lambda: dmsgd.diversify(X, 8, Y, 0.7)),
        ("--kernel rbf --scale 5", lambda: dmsgd.diversify(X, 8, kernel="rbf", scale=5)),
        ("--normalize", lambda: dmsgd.diversify(X, 8, normalize=True)),
        ("--batches weighted", lambda: dmsgd.Weighted.like(dmsgd.diversify(X, 8))),
        (
            "--batches weighted --kernel rbf --scale 5",
            lambda: dmsgd.Weighted.like(dmsgd.diversify(X, 8, kernel="rbf", scale=5)),
        ),
        ("--batches stratified --labels y.npy", lambda: dmsgd.Stratified(Y, 8)),
        ("--batches uniform", lambda: dmsgd.Uniform(300, 8)),
        ("--rho 2", lambda: dmsgd.diversify(dmsgd.features.anneal(X, 2), 8)),
    ],
)
def test_output_equals_the_api(folder, options, design):
    result = run(f"sample features.npy -k 8 -n 50 --seed 7 {options} -o out.npy")
    assert result.exit_code == 0, result.output
    batches = np.load("out.npy")
    assert batches.dtype == np.int64
    np.testing.assert_array_equal(batches, design().sample(50, seed=7))


def test_file_has_the_bytes_of_np_save(folder):
    run("sample features.npy -k 8 -n 50 -o out.npy")
    np.save("saved.npy", dmsgd.diversify(X, 8).sample(50, seed=0))
    assert (folder / "out.npy").read_bytes() == (folder / "saved.npy").read_bytes()


def test_seed_decides_the_bytes_and_workers_do_not(folder):
    def content(options):
        assert run(f"sample features.npy -k 8 -n 101 -o out.npy --force {options}").exit_code == 0
        return (folder / "out.npy").read_bytes()

    first = content("")
    assert content("--seed 0") == first
    assert content("--workers 1") == first
    assert content("--workers 3") == first
    assert content("--seed 1") != first


def test_csv_output(folder):
    run("sample features.npy -k 8 -n 50 -o out.npy")
    run("sample features.npy -k 8 -n 50 -o out.csv")
    lines = (folder / "out.csv").read_text().splitlines()
    np.testing.assert_array_equal(
        [[int(item) for item in line.split(",")] for line in lines], np.load("out.npy")
    )


def test_labels_from_a_column_are_no_feature(folder):
    result = run("sample iris.csv --labels species -w 0.5 -k 4 -n 20 -o out.npy")
    assert result.exit_code == 0, result.output
    table = np.loadtxt("iris.csv", delimiter=",", skiprows=1, usecols=(0, 1, 2))
    kinds = np.loadtxt("iris.csv", delimiter=",", skiprows=1, usecols=3, dtype=str)
    np.testing.assert_array_equal(
        np.load("out.npy"), dmsgd.diversify(table, 4, kinds, 0.5).sample(20, seed=0)
    )


def test_report_says_what_was_done(folder):
    result = run("sample features.npy --labels y.npy -w 0.5 -k 8 -n 50 -o out.npy")
    assert "features.npy: 300 items x 80" in result.stdout
    assert "83 dense features): rank 83 (dual), k 8" in result.stdout
    assert re.search(r"set-up +\d+\.\d\d s", result.stdout)
    assert re.search(r"50 in \d+\.\d\d s, .* ms per batch", result.stdout)
    assert result.stderr == ""  # no progress bar unless stderr is a terminal
    drawn = np.bincount(Y[np.load("out.npy")].ravel()) / 400
    for label, before, after in zip(range(3), np.bincount(Y) / 300, drawn, strict=True):
        assert re.search(rf"^{label} .* {before:.2%} +{after:.2%}$", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "hint"),
    [("", True), ("--batches weighted", True), ("--batches uniform", False)],
)
def test_a_weight_of_labels_is_proposed_where_it_has_an_effect(folder, options, hint):
    result = run(f"sample features.npy --labels y.npy -k 8 -n 5 -o out.npy {options}")
    assert "did not count" in result.stdout
    assert ("-w 0.7" in result.stdout) == hint


def test_many_classes_make_a_short_table(folder):
    np.save("many.npy", np.arange(300) // 3)
    result = run("sample features.npy --labels many.npy -k 8 -n 5 -o out.npy")
    assert "100, here the commonest and the rarest" in result.stdout
    assert result.stdout.count("%") == 2 * 12


# The output is whole or not there


def no_work(monkeypatch):
    monkeypatch.setattr(
        "dmsgd.features.convert.open_features", lambda *_: pytest.fail("work was done")
    )


def test_existing_output_is_refused_before_any_work(folder, monkeypatch):
    assert run("sample features.npy -k 8 -n 5 -o out.npy").exit_code == 0
    (folder / "out.csv").write_text("precious")
    before = (folder / "out.npy").read_bytes()
    no_work(monkeypatch)
    for suffix in ("npy", "csv"):  # the very same schedule is no loss, and another test's
        fails(f"sample features.npy -k 8 -n 6 -o out.{suffix}", f"out.{suffix} exists; use --force")
    assert (folder / "out.csv").read_text() == "precious"
    assert (folder / "out.npy").read_bytes() == before


@pytest.mark.parametrize("force", ["", "--force"])
@pytest.mark.parametrize("ending", ["npy", "json", "inclusion.npy", "part"])
def test_files_of_others_are_never_replaced(folder, monkeypatch, ending, force):
    (folder / f"out.{ending}").write_text("precious")
    no_work(monkeypatch)
    fails(f"sample features.npy -k 8 -n 5 -o out.npy {force}", rf"{ending} is not part of a sched")
    assert (folder / f"out.{ending}").read_text() == "precious"


def test_an_input_with_the_name_of_a_part_is_kept(folder, monkeypatch):
    """As for a schedule that has been there before, beside which everything looks like its own."""
    assert run("sample features.npy -k 8 -n 5 -o feat.npy").exit_code == 0
    b = "feat.inclusion.npy"
    np.save(b, X)
    no_work(monkeypatch)
    fails(f"sample {b} -k 8 -n 5 -o feat.npy --force", "is an input of this")
    fails(f"sample features.npy --labels {b} -k 8 -n 5 -o feat.npy --force", "input")
    fails(f"sample features.npy -k 8 -n 5 -o {b} --force", "path of a schedule")
    np.testing.assert_array_equal(np.load(b), X)


def test_a_quality_that_is_an_input_is_kept(folder):
    np.savetxt("worth.csv", np.arange(1.0, len(X) + 1))
    command = "sample features.npy --quality worth.csv -k 8 -n 5 -o worth.csv --force"
    fails(command, "worth.csv is an input of this command")
    assert np.loadtxt("worth.csv").size == len(X)


def test_a_table_whose_column_is_an_input_is_kept(folder):
    before = (folder / "iris.csv").read_text()
    fails(
        "sample features.npy --labels iris.csv:species -k 8 -n 5 -o iris.csv --force",
        "iris.csv is an input of this command",
    )
    assert (folder / "iris.csv").read_text() == before


def test_an_array_of_a_store(folder):
    zarr = pytest.importorskip("zarr")
    zarr.create_group("g.zarr").create_array("X", data=X)
    assert run("sample g.zarr:X -k 8 -n 50 -o out.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("out.npy"), dmsgd.diversify(X, 8).sample(50, seed=0))


def test_a_disk_that_is_too_small_is_told_before_any_work(folder, monkeypatch):
    no_work(monkeypatch)
    fails(
        f"sample features.npy -k 8 -n {10**15} -o out.npy", "batches of 8 need 56.8 PB, and .*free"
    )


def test_force_replaces(folder):
    for steps in (3, 5):
        assert run(f"sample features.npy -k 8 -n {steps} -o out.npy --force").exit_code == 0
        assert np.load("out.npy").shape == (steps, 8)


def test_failed_run_touches_no_finished_file(folder, monkeypatch):
    assert run("sample features.npy -k 8 -n 3 -o old.npy").exit_code == 0
    before = (folder / "old.npy").read_bytes()

    def chunks(*_):
        yield np.zeros((1, 8), dtype=np.int64)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dmsgd.schedules.presampling.draw_chunks", chunks)
    fails("sample features.npy -k 8 -n 5 -o new.npy", "No space left on device")
    fails("sample features.npy -k 8 -n 5 -o old.npy --force", "No space left on device")
    assert not (folder / "new.npy").exists()
    assert (folder / "old.npy").read_bytes() == before
    dmsgd.Schedule.load("old.npy")


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long)],
)
def test_interrupted_run_is_quiet_and_goes_on_later(folder, sent, code):
    command = ["sample", "features.npy", "-k", "40", "-n", "20000", "-o", "out.npy"]
    process = console_script(*command)
    while not list(folder.glob("*.part/batches.npy")):  # draws are being written
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == code
    said = r"stopped: ([\d,]+) of 20,000 batches are kept, and the same command goes on from there"
    kept = re.fullmatch(said, errors.rstrip())[1]
    assert not (folder / "out.npy").exists()
    result = run(" ".join(command))
    assert result.exit_code == 0
    assert ("resumes   after the" in result.stdout) == (kept != "0")
    np.testing.assert_array_equal(np.load("out.npy"), dmsgd.diversify(X, 40).sample(20_000, seed=0))
    assert not list(folder.glob("*.part*"))


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("before", "code"), [("SIG_DFL", 129), ("SIG_IGN", 0)])
def test_a_run_whose_terminal_is_closed_cleans_up_unless_it_is_to_go_on(before, code):
    script = (
        "import signal\nfrom dmsgd import commands\n"
        f"signal.signal(signal.SIGHUP, signal.{before})\n"
        "commands.app = lambda **_: signal.raise_signal(signal.SIGHUP)\n"
        "try:\n    commands.main()\nfinally:\n    print('cleaned up')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, "cleaned up\n", "")


def test_a_run_that_was_stopped_says_what_it_goes_on_from(folder):
    command = "sample features.npy -k 8 -n 5000 -o out.npy"
    design = dmsgd.diversify(X, 8)

    def stop(design, record, *_):
        yield design.sample(1000, record.seed)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dmsgd.schedules.presampling.draw_chunks", stop)
        patch.setattr("dmsgd.schedules.files.SAVE_SECONDS", 0.0)
        result = run(command)
    assert result.exit_code == 130
    line = "stopped: 1,000 of 5,000 batches are kept, and the same command goes on from there\n"
    assert result.stderr == line
    result = run(command)
    assert result.exit_code == 0, result.output
    assert "resumes   after the 1,000 batches of 5,000" in result.stdout
    assert "draws     4,000 in" in result.stdout
    np.testing.assert_array_equal(np.load("out.npy"), design.sample(5000, seed=0))


def test_a_finished_run_says_so_and_draws_nothing(folder):
    command = "sample features.npy -k 8 -n 50 -o out.npy"
    assert run(command).exit_code == 0
    before = [(file.name, file.stat().st_mtime_ns) for file in sorted(folder.glob("out*"))]
    result = run(command)
    assert result.exit_code == 0, result.output
    assert "finished  out.npy holds these 50 batches already: nothing is drawn" in result.stdout
    assert "written" not in result.stdout
    after = [(file.name, file.stat().st_mtime_ns) for file in sorted(folder.glob("out*"))]
    assert after == before
    fails("sample features.npy -k 8 -n 51 -o out.npy", "out.npy exists; use --force")
    fails("sample features.npy -k 8 -n 50 --no-normalize -o out.npy", "another schedule.*--force")
    (folder / "out.npy").write_bytes(b"damaged")
    fails(command, "out.npy")


# Errors of the user


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("none.npy -k 8 -n 5", "there is no file none.npy"),
        ("features.txt -k 8 -n 5", "cannot read files ending in '.txt'"),
        ("iris.csv -k 3 -n 5", "column 'species' holds .* --labels species"),
        ("iris.csv --labels kind -k 3 -n 5", "no column 'kind' for --labels; it has a, b, c"),
        ("iris.csv --labels a.b -k 3 -n 5", "no column 'a.b' for --labels"),
        ("iris.csv --labels kind.txt -k 3 -n 5", "column 'species' holds text"),
        ("features.npy --labels kind.txt -k 3 -n 5", "there is no file kind.txt"),
        ("features.npy --labels short.npy -k 8 -n 5", "3 entries for 300 items"),
        ("features.npy -w 0.5 -k 8 -n 5", "-w 0.5 needs labels; give them with --labels"),
        ("features.npy --batches stratified -k 8 -n 5", "stratified needs labels; give"),
        ("features.npy --labels y.npy -w 1.5 -k 8 -n 5", r"w must lie in \[0, 1\], got 1.5"),
        ("features.npy --labels y.npy -w 1 -k 8 -n 5", "3 classes, .* batches of 8 need 8"),
        ("features.npy -k 301 -n 5", "k=301 exceeds the number of items, 300"),
        ("features.npy -k 8 -n 5 --workers 0", "workers must be at least 1"),
        (
            "features.npy -k 8 -n 5 --scale 2",
            "scale is the length scale.*use --kernel rbf",
        ),
        ("features.npy -k 8 -n 5 --kernel rbf --scale 0", "scale must be positive"),
        ("features.npy -k 8 -n 5 --rho 0.5", "negative entries"),
    ],
)
def test_errors_are_one_line_and_no_file(folder, command, message):
    np.save("short.npy", Y[:3])
    fails(f"sample {command} -o out.npy", message)
    assert not (folder / "out.npy").exists()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("out.txt", "must end in .npy or .csv"),
        ("nowhere/out.npy", "there is no folder nowhere"),
        ("folder.npy", "folder.npy is a folder"),
        ("features.npy --force", "features.npy is an input of this command"),
        ("y.npy --force", "y.npy is an input of this command"),
        ("out.NPY", "'out.NPY' cannot be the path of a schedule"),
        ("link.csv", "there is no folder .*missing; create it first"),
        ("pipe.csv --force", "pipe.csv is a folder, a device or a pipe; give a file"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="links and pipes")
def test_outputs_that_are_refused(folder, output, message):
    (folder / "folder.npy").mkdir()
    (folder / "link.csv").symlink_to("missing/out.csv")
    os.mkfifo(folder / "pipe.csv")
    fails(f"sample features.npy --labels y.npy -k 8 -n 5 -o {output}", message)
    np.testing.assert_array_equal(np.load("features.npy"), X)


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_an_output_that_comes_meanwhile_is_not_replaced_unless_asked(folder, monkeypatch, links):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    out, before = folder / "out.csv", sorted(folder.iterdir())
    with files.atomic_write(out, force=False) as file:
        file.write(b"first")
    with (
        pytest.raises(FileExistsError, match=r"out\.csv was written by another program meanwhile"),
        files.atomic_write(out, force=False) as file,
    ):
        file.write(b"second")
    assert out.read_bytes() == b"first"
    with files.atomic_write(out, force=True) as file:
        file.write(b"third")
    assert out.read_bytes() == b"third"
    assert sorted(folder.iterdir()) == sorted([*before, out])


def test_a_disk_that_fills_up_is_told_with_the_name_of_the_file(folder):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**10, before[1]))
    try:
        fails(
            "sample features.npy -k 8 -n 500 -o out.csv",
            "cannot write out.csv: File too large; the old file, if any, is unchanged",
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(folder.glob("*out.csv*"))


def test_a_name_may_be_as_long_as_the_file_system_has_them(folder):
    name = "n" * 251 + ".csv"
    assert run(f"sample features.npy -k 8 -n 5 -o {name}").exit_code == 0
    assert len((folder / name).read_text().splitlines()) == 5


def test_folder_without_permission_is_refused(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    fails("sample features.npy -k 8 -n 5 -o out.npy", "folder .* cannot be written to")


@pytest.mark.parametrize(
    "options",
    [
        "-n 5 -o a.npy",
        "-k x -n 5 -o a.npy",
        "-k 0 -n 5 -o a.npy",
        "-k 8 -n 0 -o a.npy",
        "-k 8 -n 5 -o a.npy --seed -1",
        "--kernel cubic",
    ],
)
def test_usage_errors(folder, options):
    result = run(f"sample features.npy {options}")
    assert result.exit_code == 2
    assert "dmsgd sample --help" in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback(folder):
    result = run("--debug sample none.npy -k 8 -n 5 -o out.npy")
    assert isinstance(result.exception, FileNotFoundError)
    process = console_script("--debug", "sample", "none.npy", "-k", "8", "-n", "5", "-o", "a.npy")
    _, errors = process.communicate(timeout=100)
    assert errors.startswith("Traceback")
    assert process.returncode == 1


@pytest.mark.parametrize("bug", [KeyError("x"), RuntimeError("x"), dmsgd.SamplingError("x")])
def test_bugs_keep_their_traceback(folder, monkeypatch, bug):
    def broken(*_):
        raise bug

    monkeypatch.setattr("dmsgd.schedules.presampling.draw_chunks", broken)
    result = run("sample features.npy -k 8 -n 5 -o out.npy")
    assert result.exception is bug
    assert "error:" not in result.stderr


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("two\n  lines"), "two lines"),
        (ValueError(), "ValueError"),
        (PermissionError(13, "Permission denied", "a.npy"), "a.npy: Permission denied"),
        (FileNotFoundError("there is no file a"), "there is no file a"),
        (MemoryError(), "not enough memory"),
        (MemoryError("8 TiB"), "not enough memory: 8 TiB"),
        (
            InputError("bad", normalize=True, labels="a b"),
            "bad; use --normalize, or --labels 'a b'",
        ),
    ],
)
def test_one_line(error, line):
    assert one_line(error) == line


def test_a_path_that_reads_like_an_argument_is_printed_as_it_is(folder):
    path = "runs/normalize=True/x.npy"
    fails(f"sample {path} -k 8 -n 5 -o out.npy", f"there is no file {path}")


# Help


def test_help_lists_the_commands_and_imports_nothing_heavy():
    heavy = {"numba", "sklearn", "matplotlib", "torch", "scipy", "numpy"}
    code = (
        "import sys, dmsgd.commands as c\n"
        "try: c.app(['--help'], prog_name='dmsgd')\n"
        f"finally: print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.endswith("[]\n")
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_an_example(command):
    result = run(f"{command} --help")
    assert result.exit_code == 0
    assert re.search(rf"Examples?:\n +dmsgd {command}", result.stdout)


@pytest.mark.long
@pytest.mark.parametrize("command", ["", "inspect", "sample", "select"])
def test_examples_in_the_help_work(folder, command):
    pattern = r"^ +dmsgd ((?:inspect|sample|select) .*(?:-k|--until) .*)$"
    examples = re.findall(pattern, run(f"{command} --help").stdout, re.M)
    assert len(examples) > 1
    columns = {"embedding": np.vstack([X, -X])[:, :8].tolist(), "score": np.arange(600.0)}
    table = pa.table(columns | {"source": ["web", "books"] * 300})
    pq.write_table(table, "pool.parquet")
    for example in examples:
        result = run(f"{example} --force")
        assert result.exit_code == 0, (example, result.output)
        assert (result.stderr == "") == ("-o " in example or not example.startswith("select"))


def words_of(text):
    """Return a help text without what versions of click print differently."""
    return re.sub(r"<[a-z|]+>|\b(?:TEXT|INTEGER|FLOAT|PATH|DIRECTORY)\b|[{}]", "", text).split()


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_documented_help_is_what_is_printed(command):
    documented = documented_help.documented()[command]
    assert words_of(documented) == words_of(documented_help.help_of(command)), (
        "run: python tests/documented_help.py"
    )
    assert max(map(len, documented.splitlines())) <= 80


def test_shared_options_have_the_same_words():
    def options(command):
        found = re.findall(r"^  (-\S.*?)  +(\S.*)$", run(f"{command} --help").stdout, re.M)
        return {name.split()[0].strip(","): text.split(".")[0] for name, text in found}

    texts = {}
    for command in COMMANDS:
        for name, text in options(command).items():
            texts.setdefault(name, {}).setdefault(text[:12], []).append(command)
    # A page is another file than batches are, and a worker that trains is a process, one that draws
    # a thread; a set of k items is no batch; what describes a design has one word everywhere.
    different = {name for name, said in texts.items() if len(said) > 1}
    assert different <= {"-k", "-o", "--quick", "--force", "--out", "--workers"}, texts


def test_commands_that_describe_a_design_take_the_same_options():
    described = {"--labels", "-w", "--kernel", "--scale", "--rho", "--target", "-k"}
    described |= {"--standardize", "--normalize"}
    for command in ("inspect", "sample"):
        shown = set(re.findall(r"^  (-{1,2}\w[\w-]*)", run(f"{command} --help").stdout, re.M))
        assert described <= shown, command


# The other commands


def test_demo_never_replaces_files_unasked(folder, monkeypatch):
    (folder / "dmsgd-demo").mkdir()
    (folder / "dmsgd-demo" / "digits.html").write_text("precious")
    work = sys.modules["dmsgd.commands.demo"]
    monkeypatch.setattr(work, "compare_labelled", lambda *_: pytest.fail("work was done"))
    fails("demo", "digits.html exists; use --force to replace it, or --out")
    assert (folder / "dmsgd-demo" / "digits.html").read_text() == "precious"


def test_version():
    told = f"dmsgd {dmsgd.__version__}\n"
    assert run("--version").stdout == told
    module = [sys.executable, "-m", "dmsgd", "--version"]
    assert subprocess.check_output(module, text=True) == told


def test_versions_say_what_a_question_needs():
    told = dict(line.split(maxsplit=1) for line in run("--versions").stdout.splitlines())
    assert told["dmsgd"] == dmsgd.__version__
    assert told["numpy"] == np.__version__
    assert told["processor"].endswith(f", {os.cpu_count()} cores")
    assert re.search(r"\d threads", told["blas"])
    assert ("cuda" in told) == ("torch" in told)


LONG = "a" * 300


@pytest.mark.parametrize(
    "command",
    [
        f"sample features.npy -k 3 -n 3 -o {LONG}.npy",
        f"sample features.npy -k 3 -n 3 -o {'a' * 245}.npy",
        f"sample features.npy -k 3 -n 3 -o {LONG}.csv",
        f"sample {LONG}.npy -k 3 -n 3 -o b.npy",
        f"sample {LONG} -k 3 -n 3 -o b.npy",
        f"sample features.npy --labels {LONG}.npy -k 3 -n 3 -o b.npy",
        f"select features.npy -k 3 -o {LONG}.csv",
        f"select features.npy -k 3 -o b.csv --given {LONG}.csv",
        f"inspect features.npy -k 3 --page {LONG}.html",
        f"inspect features.npy -k 3 --csv {LONG}.csv",
        f"inspect {LONG}.npy -k 3",
        f"demo --out {LONG}",
    ],
)
def test_names_that_are_too_long_are_one_line(folder, command):
    assert len(fails(command, "too long").stderr) < 250
    assert not [each for each in os.listdir() if each.startswith("a")]
