"""`dmsgd select` writes what dmsgd.select chooses, with ids and texts."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from browser import browser
from command_line import CliRunner
from dmsgd.commands import app

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 20)) * np.linspace(0.5, 2, 300)[:, None]
Y = np.repeat(["a", "b", "<i>c"], [200, 90, 10])
IDS = [f"@{i}" if i < 5 else f"doc {i}" for i in range(300)]
TEXTS = [f'The "text", number {i}\nof <b>300' for i in range(300)]
QUALITY = RNG.random(300)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()
    return tmp_path


def write_files():
    np.save("x.npy", X)
    Path("y.txt").write_text("\n".join(Y))
    with open("pool.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "body", "score", *(f"x{j}" for j in range(20))])
        rows = zip(IDS, TEXTS, QUALITY.tolist(), X.tolist(), strict=True)
        writer.writerows([*row[:3], *row[3]] for row in rows)


def write_pool(ending):
    """Write the table `pool` with the features in one column of lists, if it is no CSV file."""
    if ending == "csv":
        return
    columns = {"name": IDS, "body": TEXTS, "score": QUALITY.tolist(), "vector": X.tolist()}
    if ending == "parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.table(columns), "pool.parquet", row_group_size=70)
    else:
        rows = zip(*columns.values(), strict=True)
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
        Path("pool.jsonl").write_text("\n".join(lines))


def invoke(command):
    return CliRunner().invoke(app, shlex.split(f"select {command}"), prog_name="dmsgd")


def run(command):
    result = invoke(command)
    assert result.exit_code == 0, result.output
    assert "warning" not in result.stderr  # the first draw of all says that it compiles
    return result.stdout


def fails(command, message):
    result = invoke(command)
    assert result.exit_code == 2, result.output
    assert re.search(rf"^error: .*{message}.*\n\Z", result.stderr, re.M), result.stderr


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def items(path):
    return [int(row["item"]) for row in table(path)]


@pytest.mark.parametrize("how", ["greedy", "cover", "medoids"])
@pytest.mark.parametrize("ending", ["csv", "txt", "npy"])
def test_the_set_is_that_of_dmsgd_select(folder, ending, how):
    said = run(f"x.npy -k 8 --how {how} -o chosen.{ending}")
    file = folder / f"chosen.{ending}"
    if ending == "csv":
        found = items(file)
    else:
        found = np.load(file) if ending == "npy" else np.loadtxt(file)
    assert list(found) == dmsgd.select(X, 8, how=how).tolist()
    assert "300 items x 20" in said


def test_without_an_output_the_set_is_a_table_on_standard_output(folder):
    result = invoke("x.npy -k 8")
    chosen = dmsgd.select(X, 8)
    first, *rows = result.stdout.splitlines()
    assert first == "item,gain,covered,stands_for"
    assert [int(row.partition(",")[0]) for row in rows] == chosen.tolist()
    assert "8 items cover the pool as well as" in result.stderr


def test_medoids_are_described_as_covering_sets_are(folder):
    result, found = (
        invoke("x.npy -k 8 --how medoids"),
        dmsgd.select(X, 8, how="medoids", details=True),
    )
    first, *rows = result.stdout.splitlines()
    assert first == "item,gain,covered,stands_for"
    assert [float(row.split(",")[3]) for row in rows] == found.stands_for.tolist()
    assert "as medoids" in result.stderr
    assert "8 items cover the pool as well as" in result.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_ids_texts_and_quality_are_columns_that_are_no_features(folder, ending):
    write_pool(ending)
    options = "--id name --texts body --quality score --diversity 0.3 --how greedy"
    said = run(f"pool.{ending} {options} -k 8 -o chosen.csv --page chosen.html")
    chosen = dmsgd.select(X, 8, quality=QUALITY, diversity=0.3, how="greedy")
    rows = table("chosen.csv")
    assert list(rows[0]) == ["item", "name", "body", "score"]
    assert items("chosen.csv") == chosen.tolist()
    assert [float(row["score"]) for row in rows] == QUALITY[chosen].tolist()
    assert [row["name"].removeprefix("'") for row in rows] == [IDS[i] for i in chosen]
    assert rows[0]["body"] == TEXTS[chosen[0]].replace("\n", r"\n")
    assert f"quality   {QUALITY[chosen].mean():.3g} on average" in said
    page = (folder / "chosen.html").read_text()
    places = [page.index(f"<bdi>{IDS[i]}</bdi>") for i in chosen]
    assert places == sorted(places)
    assert f"number {chosen[0]} of &lt;b&gt;300" in page


def test_ids_texts_and_quality_may_be_files(folder):
    np.save("q.npy", QUALITY)
    (folder / "ids.txt").write_bytes("\r\n".join(IDS).encode())
    (folder / "texts.txt").write_text("\n" * 299 + "last\n")
    run("x.npy --id ids.txt --texts texts.txt --quality q.npy -k 8 -o chosen.csv")
    assert items("chosen.csv") == dmsgd.select(X, 8, quality=QUALITY).tolist()
    columns = ["item", "gain", "covered", "stands_for", "id", "quality", "text"]
    assert list(table("chosen.csv")[0]) == columns
    assert [row["id"].removeprefix("'") for row in table("chosen.csv")] == [
        IDS[item] for item in items("chosen.csv")
    ]
    assert {row["text"] for row in table("chosen.csv")} <= {"", "last"}


def test_features_are_prepared(folder):
    run("pool.csv --drop name,body,score --standardize --normalize -k 8 -o one.txt")
    wanted = ",".join(f"x{j}" for j in range(20))
    run(f"pool.csv --columns {wanted} --standardize --normalize -k 8 -o two.txt")
    prepared = dmsgd.features.normalize(dmsgd.features.standardize(X))
    expected = dmsgd.select(prepared, 8).tolist()
    assert np.loadtxt("one.txt").tolist() == np.loadtxt("two.txt").tolist() == expected
    np.save("counts.npy", np.abs(X))
    run("counts.npy --rho 0.5 -k 8 -o three.txt")
    assert np.loadtxt("three.txt").tolist() == dmsgd.select(np.abs(X) ** 0.5, 8).tolist()


def test_given_and_excluded_items_are_numbers_or_files_of_them(folder):
    run("x.npy -k 5 -o first.csv")
    first = items("first.csv")
    said = run("x.npy -k 4 --given first.csv --exclude 7,9 -o second.csv")
    expected = dmsgd.select(X, 4, given=first, exclude=[7, 9]).tolist()
    assert items("second.csv") == expected
    assert "given     5 items; excluded 2 items" in said
    np.save("first.npy", first)
    (folder / "first.txt").write_text("\n".join(map(str, first)))
    numbers = ",".join(map(str, first))
    for given in (numbers, "first.txt", "first.npy", f"{first[0]} --given first.csv"):
        run(f"x.npy -k 4 --given {given} --exclude 9 --exclude 7 -o third.csv --force")
        assert items("third.csv") == expected


def test_given_and_excluded_items_are_ids_where_there_are_ids(folder):
    options = "pool.csv --id name --drop body,score -k 4"
    expected = dmsgd.select(X, 4, given=[2, 7], exclude=[9]).tolist()
    run(f"{options} --given '@2,doc 7' --exclude 'doc 9' -o one.csv")
    assert items("one.csv") == expected
    # An earlier output, whose ids a spreadsheet takes for text; a table with the column --id.
    (folder / "output.csv").write_text("item,id\n2,'@2\n7,doc 7\n")
    (folder / "other.csv").write_text("name,grade\ndoc 9,3\n")
    run(f"{options} --given output.csv --exclude other.csv -o two.csv")
    assert items("two.csv") == expected
    fails(f"{options} --given '@2,no,none' -o c.csv", "2 ids that no item has: no, none")
    (folder / "output.csv").write_text("id\nno\n")
    fails(f"{options} --exclude output.csv -o c.csv", "output.csv names 1 id that no item has: no")


def test_an_id_that_two_items_have_is_refused(folder):
    (folder / "ids.txt").write_text("\n".join(str(i // 3) for i in range(300)))
    fails("x.npy --id ids.txt -k 4 -o c.csv", "--id ids.txt must tell.* '0' occurs 3 times")
    assert not (folder / "c.csv").exists()


@pytest.mark.filterwarnings("always::dmsgd.errors.KernelWarning")
def test_copies_are_chosen_last_with_a_warning(folder):
    np.save("copies.npy", np.repeat(X[:3], 4, axis=0))
    result = invoke("copies.npy -k 5 -o c.csv")
    assert result.exit_code == 0
    assert "warning: only 3 of 5 items are distinct" in result.stderr
    assert len({item // 4 for item in items("c.csv")}) == 3


def test_labels_are_counted_and_do_not_change_the_set(folder):
    said = run("x.npy --labels y.txt -k 9 --exclude 299 -o chosen.csv")
    counts = re.findall(r"^(\S+) +(\d+) +(\d+) +([\d.]+)$", said, re.M)
    assert {name: int(size) for name, size, *_ in counts} == {"a": 200, "b": 90, "<i>c": 9}
    assert sum(int(drawn) for *_, drawn, _ in counts) == 9
    assert items("chosen.csv") == dmsgd.select(X, 9, exclude=[299]).tolist()
    assert table("chosen.csv")[0]["label"] == Y[items("chosen.csv")[0]]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("-k 301 -o c.csv", "k=301 new items .*at most 300"),
        ("-k 5 --given 7,300,1e3 -o c.csv", "--given 7,300,1e3 names 2 numbers .*: 300, 1e3"),
        ("-k 5 --given y.txt -o c.csv", r"--given y\.txt names 300 numbers that no item has: a, "),
        ("-k 5 --exclude none.txt -o c.csv", r"no file none\.txt"),
        ("-k 5 --given '' -o c.csv", "--given .*names 1 number"),
        ("-k 5 --exclude -1 -o c.csv", "--exclude -1 names 1 number that no item has: -1"),
        ("-k 5 --quality y.txt -o c.csv", "--quality y.txt must hold a number per item: .*'a'"),
        ("-k 5 --quality short.txt -o c.csv", r"short\.txt has 2 entries for 300 items"),
        ("-k 5 --quality minus.txt -o c.csv", "quality must not be negative"),
        ("-k 5 -o c.xlsx", r"must end in \.csv or \.parquet or \.jsonl or \.txt or \.npy"),
        ("-k 5 -o there.csv", r"there\.csv exists; use --force"),
        ("-k 5 -o c.csv --page there.html", r"there\.html exists; use --force"),
        ("-k 5 -o c.csv --page c.txt", r"must end in \.html"),
        ("-k 5 --given there.csv -o there.csv --force", "is an input of this command"),
    ],
)
def test_what_cannot_be_is_one_line_and_writes_nothing(folder, command, message):
    (folder / "there.csv").write_text("item\n1\n")
    (folder / "there.html").write_text("mine")
    (folder / "short.txt").write_text("1\n2\n")
    (folder / "minus.txt").write_text("-1\n" * 300)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    fails(f"x.npy {command}", message)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_columns_are_named_where_there_is_none(folder):
    fails("pool.csv --id nobody -k 5", "no column 'nobody' for --id; it has name, body")
    fails("pool.csv -k 5", "'name', 'body' hold text: .*use .*--drop name,body")
    show = "'body' holds text, .*: encode .*use .*--texts body, or --drop body"
    fails("pool.csv --id name -k 5", show)
    fails("pool.csv --texts name -k 5", show)
    fails("pool.csv --columns body,score -k 5", show)


@pytest.mark.filterwarnings("always::dmsgd.errors.KernelWarning")
@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_numbers_beside_a_column_of_lists_are_no_features_unless_they_are_named(folder, ending):
    write_pool(ending)
    result = invoke(f"pool.{ending} -k 5 -o c.csv")
    assert items("c.csv") == dmsgd.select(X, 5).tolist()
    (line,) = (line for line in result.stderr.splitlines() if "left out" in line)
    assert re.search(
        "lists of numbers in vector.* left out: score; use --columns vector,score", line
    )
    for options in ("--columns vector", "--drop score", "--quality score --diversity 1"):
        run(f"pool.{ending} {options} -k 5 -o c.csv --force")  # which sees that there is no warning
        assert items("c.csv") == dmsgd.select(X, 5).tolist()
    run(f"pool.{ending} --columns vector,score -k 5 -o c.csv --force")
    both = np.column_stack([QUALITY, X])
    assert items("c.csv") == dmsgd.select(both, 5).tolist()


def test_sparse_features_have_a_page(folder):
    counts = RNG.poisson(0.1, size=(200, 400)).astype(float)
    counts[:, 0] = 1.0
    sparse.save_npz("counts.npz", sparse.csr_array(counts))
    run("counts.npz -k 6 -o c.csv --page c.html")
    assert items("c.csv") == dmsgd.select(sparse.csr_array(counts), 6).tolist()
    assert (folder / "c.html").read_text().count("</title></circle>") == 206


@pytest.mark.long
def test_the_page_of_a_command_opens_in_light_and_dark(folder):
    options = "--id name --texts body --quality score --labels y.txt"
    run(f"pool.csv {options} -k 8 --given 'doc 7,@3' -o chosen.csv --page chosen.html")
    for dark in (False, True):
        with browser(folder / f"profile{dark}", width=400, dark=dark) as driver:
            driver.get(f"file://{folder / 'chosen.html'}")
            assert driver.get_log("browser") == []
            assert driver.execute_script("return document.documentElement.scrollWidth") <= 400
            dots = "return document.querySelectorAll('g:is({}) circle').length"
            groups = (".near, .far, .farthest", ".chosen", ".given")
            counts = [driver.execute_script(dots.format(each)) for each in groups]
            assert counts == [300, 8, 2]
