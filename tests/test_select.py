"""`dmsgd select` writes what the design draws, with weights that estimate means, and a page."""

import csv
import re
import shlex

import numpy as np
import pytest

import dmsgd
from browser import browser
from command_line import CliRunner
from dmsgd.commands import app
from dmsgd.report import selection
from dmsgd.report.page import render
from dmsgd.report.selection import build_selection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 20)) * np.linspace(0.5, 2, 300)[:, None]
Y = np.repeat(["a", "b", "<i>c"], [200, 90, 10])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(Y))
    return tmp_path


def run(command):
    result = CliRunner().invoke(app, shlex.split(f"select {command}"), prog_name="dmsgd")
    assert result.exit_code == 0, result.output
    assert "warning" not in result.stderr  # the first draw of all says that it compiles
    return result.stdout


def fails(command, message):
    result = CliRunner().invoke(app, shlex.split(f"select {command}"), prog_name="dmsgd")
    assert result.exit_code == 2, result.output
    assert re.fullmatch(rf"error: .*{message}.*\n", result.stderr), result.stderr


def table(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


@pytest.mark.parametrize("ending", ["csv", "txt", "npy"])
def test_the_set_is_the_draw_of_the_design(folder, ending):
    said = run(f"x.npy --normalize -k 8 --seed 3 -o chosen.{ending}")
    design = dmsgd.diversify(X, 8, normalize=True)
    file = folder / f"chosen.{ending}"
    if ending == "csv":
        found = table(file)["item"]
    else:
        found = np.load(file) if ending == "npy" else np.loadtxt(file)
    assert list(found) == design.sample(1, seed=3)[0].tolist()
    assert "300 items x 20" in said
    assert "rank 20" in said


def test_columns_of_a_table_can_be_left_out(folder):
    rows = [f"{i},{row[0]},{row[1]}" for i, row in enumerate(X)]
    (folder / "table.csv").write_text("\n".join(["number,a,b", *rows]))
    run("table.csv --drop number -k 2 -o one.txt")
    run("table.csv --columns a,b -k 2 -o two.txt")
    expected = dmsgd.diversify(X[:, :2], 2).sample(1, seed=0)[0].tolist()
    assert np.loadtxt("one.txt").tolist() == np.loadtxt("two.txt").tolist() == expected


def test_given_items_come_first_and_the_others_are_drawn_with_them(folder):
    run("x.npy -k 5 -o first.csv")
    first = [int(item) for item in table("first.csv")["item"]]
    said = run("x.npy -k 9 --given first.csv -o second.csv")
    second = table("second.csv")
    assert second["item"][:5] == sorted(first)
    assert second["given"] == [1] * 5 + [0] * 4
    drawn = dmsgd.diversify(X, 9).given(first).sample(1, seed=0)[0].tolist()
    assert second["item"][5:] == [item for item in drawn if item not in first]
    assert "given     5 items, first in the set; 4 new" in said
    for given in (",".join(map(str, first)), "first.txt", "first.npy"):
        if not given[0].isdigit():
            run(f"x.npy -k 5 -o {given}")
        run(f"x.npy -k 9 --given {given} -o third.csv --force")
        assert table("third.csv") == second


def test_the_most_likely_set(folder):
    run("x.npy --most -k 8 -o chosen.txt")
    assert np.loadtxt("chosen.txt").tolist() == dmsgd.diversify(X, 8).greedy_map().tolist()
    run("x.npy --most -k 8 --given 7,3 -o more.txt")
    likely = dmsgd.diversify(X, 8).given([3, 7]).greedy_map()
    assert np.loadtxt("more.txt").tolist() == likely.tolist()


def test_weights_estimate_the_mean(folder):
    run("x.npy -k 8 --weights -o chosen.csv")
    found = table("chosen.csv")
    b = dmsgd.diversify(X, 8).inclusion()
    items = np.array(found["item"], int)
    np.testing.assert_array_equal(found["weight"], 1 / (300 * b[items]))
    run("x.npy -k 8 --weights --given 3,7 -o more.csv")
    more = table("more.csv")
    assert more["weight"][:2] == [1 / 300, 1 / 300]
    b = dmsgd.diversify(X, 8).given([3, 7]).inclusion()
    np.testing.assert_array_equal(more["weight"], 1 / (300 * b[np.array(more["item"], int)]))


def test_labels_are_counted(folder):
    said = run("x.npy --labels y.txt --target balanced -k 9 -o chosen.csv")
    counts = dict(re.findall(r"^(\S+) +\d+ +(\d+) +[\d.]+$", said, re.M))
    assert set(counts) == {"a", "b", "<i>c"}
    assert sum(map(int, counts.values())) == 9
    assert "did not count" not in said
    assert "did not count; -w" in run("x.npy --labels y.txt -k 9 -o other.csv")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("-k 21 -o c.csv", r"k=21 exceeds the kernel's rank 20 .*; use -k 20, or --kernel rbf"),
        ("-k 5 --weights --most -o c.csv", "--weights need a draw"),
        ("-k 5 --weights -o c.npy", r"--weights are a column of a table; write to c\.csv"),
        ("-k 5 --given 1,1 -o c.csv", "items must be distinct, but 1 is given more than once"),
        ("-k 2 --given 1,2 -o c.csv", "k=2 counts the 2 given items"),
        ("-k 5 --given 300 -o c.csv", r"--given 300 must lie in 0\.\.299"),
        ("-k 5 --given y.txt -o c.csv", r"--given y\.txt must hold item numbers"),
        ("-k 5 --given none.txt -o c.csv", r"no file none\.txt"),
        ("-k 5 --given '' -o c.csv", "--given '' is neither item numbers such as 3,7,12 nor"),
        ("-k 5 --given -1 -o c.csv", "--given '-1' is neither item numbers"),
        ("-k 5 -o c.parquet", r"must end in \.csv or \.txt or \.npy"),
        ("-k 5 -o there.csv", r"there\.csv exists; use --force"),
        ("-k 5 -o c.csv --page there.html", r"there\.html exists; use --force"),
        ("-k 5 -o c.csv --page c.txt", r"must end in \.html"),
        ("-k 5 --given there.csv -o there.csv --force", "is an input of this command"),
    ],
)
def test_what_cannot_be_is_one_line_and_writes_nothing(folder, command, message):
    (folder / "there.csv").write_text("item\n1\n")
    (folder / "there.html").write_text("mine")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    fails(f"x.npy {command}", message)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_copies_of_given_items_have_no_weights(folder):
    np.save("copies.npy", np.vstack([X[:30], X[:1]]))
    fails("copies.npy -k 5 --given 0 --weights -o c.csv", "1 item never drawn .* item 30")


def content(k=8, given=0, labels=Y):
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(X))
    chosen = dmsgd.KDPP(spectrum, k).greedy_map()
    return build_selection(spectrum, chosen, given, labels, {"kernel": "<b>linear"}), chosen


def test_the_page_measures_what_it_says():
    found, chosen = content()
    Q, _ = np.linalg.qr(X[chosen].T)
    centred = X - X.mean(axis=0)
    spread = np.sum((centred @ Q) ** 2) / np.sum(centred**2)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = units @ units[chosen].T
    nearest = cosines.max(axis=1)
    pairs = (cosines[chosen].sum() - 8) / 56
    shown = [row["chosen"] for row in found["figures"]]
    expected = np.median(nearest), np.quantile(nearest, 0.05), pairs
    assert shown == [f"{spread:.1%}", *(f"{each:.3f}" for each in expected)]
    first = found["farthest"][0]
    assert first["item"] == int(np.argmin(nearest))
    assert first["value"] == f"{nearest.min():.3f}"
    stands = np.bincount(cosines.argmax(axis=1)).max()
    assert found["stands_for"][0]["value"] == f"{stands / 300:.1%}"
    assert [each["chosen"] for each in found["classes"]] == [
        int(np.sum(Y[chosen] == name)) for name in ("a", "b", "<i>c")
    ]
    assert sum(each["random"] for each in found["classes"]) == pytest.approx(8)


def test_copies_in_a_set_add_nothing_to_what_it_spans():
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(np.repeat(np.eye(4), 5, axis=0)))
    for items, spread in (([0, 5, 10], "75.0%"), ([0, 1, 5], "50.0%")):
        found = build_selection(spectrum, np.array(items), 0, None, {})
        assert found["figures"][0]["chosen"] == spread
        assert found["classes"] == []


def test_of_very_many_items_a_sample_is_looked_at(monkeypatch):
    monkeypatch.setattr(selection, "NUMBERS", 1)
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(RNG.normal(size=(1500, 5))))
    found = build_selection(spectrum, np.array([3, 9]), 0, None, {})
    assert found["measured"] == 1000
    assert "random sample of 1,000 items" in render("selection.html", "chosen", found)


def test_users_text_is_text_on_the_page():
    page = render("selection.html", "<script>", content(given=2)[0])
    assert "<i>c" not in page
    assert "<b>linear" not in page
    assert "<title>&lt;script&gt;</title>" in page
    assert "src=" not in page


@pytest.mark.long
def test_the_page_of_a_command_opens_in_light_and_dark(folder):
    run("x.npy --labels y.txt -k 8 --given 3,7 -o chosen.csv --page chosen.html")
    for dark in (False, True):
        with browser(folder / f"profile{dark}", width=400, dark=dark) as driver:
            driver.get(f"file://{folder / 'chosen.html'}")
            assert driver.get_log("browser") == []
            assert driver.execute_script("return document.documentElement.scrollWidth") <= 400
            dots = "return document.querySelectorAll('.dots-{} circle').length"
            counts = [driver.execute_script(dots.format(n)) for n in ("plain", "chosen", "given")]
            assert counts == [300, 6, 2]
