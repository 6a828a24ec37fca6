"""`dmsgd select` with groups, costs and other wishes, and tables from round to round."""

import json
import re
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

import dmsgd
from test_select import (
    IDS,
    QUALITY,
    TEXTS,
    X,
    fails,
    invoke,
    items,
    run,
    table,
    write_files,
    write_pool,
)

SOURCE = np.array(["web", "books", "web=old"])[np.arange(300) % 3]
TOKENS = np.arange(300) % 17 + 1


@pytest.fixture
def pool(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()
    (tmp_path / "source.txt").write_text("\n".join(SOURCE))
    np.save("tokens.npy", TOKENS)
    np.save("other.npy", X[:40] + 0.5)
    return tmp_path


def read(path):
    """Return the rows of an output as dicts."""
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


# Wishes


@pytest.mark.parametrize(
    ("options", "wishes"),
    [
        ("-k 8 --metric cosine", {"k": 8, "metric": "cosine"}),
        ("-k 8 --cover other.npy", {"k": 8, "cover": X[:40] + 0.5}),
        ("-k 9 --groups source.txt --at-most 4", {"k": 9, "groups": SOURCE, "at_most": 4}),
        (
            "-k 9 --groups source.txt --at-most web=1 --at-least web=old=3 --at-least books=2",
            {
                "k": 9,
                "groups": SOURCE,
                "at_most": {"web": 1},
                "at_least": {"web=old": 3, "books": 2},
            },
        ),
        ("--costs tokens.npy --budget 40", {"costs": TOKENS, "budget": 40}),
        ("--until 0.6", {"until": 0.6}),
        ("-k 20 --until 0.6", {"k": 20, "until": 0.6}),
        ("-k 8 --duplicates 0.7", {"k": 8, "duplicates": 0.7}),
        ("-k 8 --m 1.5", {"k": 8, "m": 1.5}),
        ("-k 8 --workers 2", {"k": 8, "workers": 2}),
    ],
)
def test_wishes_are_those_of_dmsgd_select(pool, options, wishes):
    run(f"x.npy {options} --given 3 --exclude 7 -o chosen.csv")
    expected = dmsgd.select(X, given=[3], exclude=[7], details=True, **wishes)
    assert items("chosen.csv") == expected.items.tolist()
    rows = table("chosen.csv")
    for name, values in {
        "gain": expected.gains,
        "covered": expected.coverage[1:],
        "stands_for": expected.stands_for,
    }.items():
        np.testing.assert_allclose([float(row[name]) for row in rows], values, rtol=1e-5)


@pytest.mark.parametrize("factor", [1e-3, 1, 3e4])
def test_the_m_that_is_printed_is_taken(pool, factor):
    np.save("x.npy", X * factor)
    printed = re.search(r"\(m = (.*)\)", run("x.npy -k 6 -o first.csv"))[1]
    first = dmsgd.select(X * factor, 6, details=True)
    assert float(printed) == pytest.approx(first.m, rel=1e-5)
    said = run(f"x.npy -k 3 --given first.csv --m {printed} -o rest.csv")
    assert f"(m = {printed})" in said
    rounds = [*first.items, *items("rest.csv")]
    assert rounds == dmsgd.select(X * factor, 9).tolist()


def test_what_was_spent_and_chosen_of_each_group_is_printed(pool):
    options = "--costs tokens.npy --budget 40 --groups source.txt --at-most 2"
    said = run(f"x.npy {options} -o chosen.csv")
    rows = table("chosen.csv")
    spent = sum(float(row["cost"]) for row in rows)
    assert f"spent     {spent:g} of 40" in said
    counts = {name: sum(row["group"] == name for row in rows) for name in set(SOURCE)}
    assert max(counts.values()) <= 2
    line = re.search(r"^groups    (.*)$", said, re.M)[1]
    assert dict(each.rsplit(" ", 1) for each in line.split(", ")) == {
        name: str(count) for name, count in counts.items() if count
    }


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_similarities_may_be_given(pool, ending):
    D = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    S = np.exp(-D / np.median(D))
    if ending == "npz":
        S = sparse.csr_array(np.where(S > 0.6, S, 0))
        sparse.save_npz("s.npz", S)
    else:
        np.save("s.npy", S)
    said = run(f"s.{ending} --metric precomputed -k 6 -o c.csv")
    assert items("c.csv") == dmsgd.select(S, 6, metric="precomputed").tolist()
    assert "6 items cover the pool as well as" in said
    fails(f"s.{ending} --metric precomputed -k 6 --rho 2", "--rho 2.0 needs features")
    fails(f"s.{ending} --metric precomputed -k 6 --page p.html", "--page p.html needs features")


def test_another_set_is_standardized_as_the_pool_is(pool):
    scaled = X * np.linspace(1, 50, 20)
    np.save("scaled.npy", scaled)
    np.save("there.npy", scaled[:40] + 3)
    run("scaled.npy --cover there.npy --standardize -k 6 -o c.csv --page c.html")
    candidates, other = (rows / scaled.std(axis=0) for rows in (scaled, scaled[:40] + 3))
    assert items("c.csv") == dmsgd.select(candidates, 6, cover=other).tolist()
    page = (pool / "c.html").read_text()
    assert "cover there.npy as well as" in page
    assert "Rows of there.npy, with their similarity" in page


def test_another_set_in_a_table_has_the_same_columns(pool):
    write_pool("parquet")
    rows = [{"note": "x", "vector": row} for row in (X[:40] + 0.5).tolist()]
    (pool / "other.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run("pool.parquet --columns vector --cover other.jsonl -k 6 -o c.csv")
    assert items("c.csv") == dmsgd.select(X, 6, cover=X[:40] + 0.5).tolist()
    (pool / "b.csv").write_text("x1,x0\n1,2\n2,3\n")
    fails("pool.csv --columns x0,x1 --cover b.csv -k 2", "the same ones, in this order")
    fails("x.npy --cover b.csv -k 2", r"--cover b.csv has 2 features and x.npy has 20")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "how many items\\? give k, budget or until"),
        ("-k 5 --how greedy --m 2", "m needs how='cover', .*; use --how cover"),
        ("-k 5 --how greedy --until 0.5", "until needs how='cover', .*; use --how cover"),
        ("-k 5 --how greedy --groups source.txt --at-most 2", "needs how='cover'"),
        ("--budget 5", "budget is given without costs"),
        ("-k 5 --costs tokens.npy", "costs is given without budget"),
        ("-k 5 --at-most 3", "at_most is given without groups"),
        ("-k 5 --groups source.txt", "groups are given without at_most or at_least"),
        ("--until 0.5 --groups source.txt --at-least 3", "at_least reserves places of k"),
        ("-k 5 --groups source.txt --at-least 2", "at_least asks for 6 items .*, but k=5"),
        ("-k 5 --groups source.txt --at-most 1", "k=5 .* at_most leaves 3 items"),
        ("-k 5 --groups source.txt --at-most w=1", "at_most names the group 'w'"),
        ("-k 5 --groups source.txt --at-most many", "--at-most many is no number of items"),
        ("-k 5 --groups source.txt --at-most -1", "--at-most -1 is no number"),
        ("-k 5 --groups source.txt --at-most 1 --at-most 2", "--at-most is given twice"),
        (
            "-k 5 --groups source.txt --at-most 1 --at-most web=2",
            "--at-most is given twice .*one number for all",
        ),
        ("-k 5 --groups nowhere.txt --at-most 1", "no file nowhere.txt"),
        ("--costs tokens.npy --budget 0.5", "budget=0.5 buys no item: .* costs 1"),
        ("--costs source.txt --budget 5", "--costs source.txt must hold a number per item"),
        ("-k 5 --cover narrow.npy", "--cover narrow.npy has 3 features and x.npy has 20"),
        ("-k 5 --cover nowhere.npy", "no file nowhere.npy"),
        ("-k 5 --workers 0", "workers must be at least 1"),
        ("-k 5 --cover other.npy -o other.npy --force", "other.npy is an input of this command"),
    ],
)
def test_impossible_wishes_are_one_line(pool, options, message):
    np.save("narrow.npy", X[:, :3])
    before = sorted(pool.iterdir())
    fails(f"x.npy {options}" + " -o c.csv" * ("-o" not in options), message)
    assert sorted(pool.iterdir()) == before


def test_what_cannot_be_wished_is_refused_before_features_are_read(pool, monkeypatch):
    monkeypatch.setattr(
        "dmsgd.features.convert.open_features", lambda *_, **__: pytest.fail("work was done")
    )
    fails("x.npy --budget 5", "budget is given without costs")
    fails("x.npy -k 5 --workers 0", "workers")
    fails("x.npy -k 5 --groups source.txt --at-most x", "--at-most x is no number")


# Tables, in and out


@pytest.mark.parametrize("before", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("after", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("options", ["--drop name,body,score", "--id name --drop body,score"])
def test_the_next_round_takes_the_file_of_the_last_one(pool, before, after, options):
    write_pool(before)
    run(f"pool.{before} {options} -k 5 -o first.{after}")
    first = dmsgd.select(X, 5)
    rows = table("first.csv") if after == "csv" else read(pool / f"first.{after}")
    assert list(rows[0]) == ["item", "gain", "covered", "stands_for", "name", "body", "score"]
    assert [int(row["item"]) for row in rows] == first.tolist()
    if after != "csv":  # spreadsheets would take some texts for formulas
        assert [row["name"] for row in rows] == [IDS[i] for i in first]
        assert [row["body"] for row in rows] == [TEXTS[i] for i in first]
        assert [row["score"] for row in rows] == [QUALITY[i] for i in first]
    said = run(f"pool.{before} {options} -k 4 --given first.{after} -o second.{after}")
    rows = table("second.csv") if after == "csv" else read(pool / f"second.{after}")
    expected = dmsgd.select(X, 4, given=first).tolist()
    assert [int(row["item"]) for row in rows] == expected
    assert "given     5 items" in said


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize(
    ("columns", "id", "options"),
    [
        ("item", "item", ""),
        ("gain", "gain", ""),
        ("item,gain", "item", "--how greedy"),
        ("item,input_item", "item", ""),
        ("item,input_item", "input_item", ""),
        ("input_item,item", "item", ""),
        ("label", "label", "--labels y.txt"),
        ("name,input_name", "name", ""),
    ],
)
def test_ids_are_found_in_an_output_whose_own_columns_have_their_name(
    pool, ending, columns, id, options
):
    ids = {name: 299 - np.roll(np.arange(300), j) for j, name in enumerate(columns.split(","))}
    text = np.column_stack([*ids.values(), X[:, :3]])
    np.savetxt("named.csv", text, "%.8g", ",", header=f"{columns},a,b,c", comments="")
    command = f"named.csv --columns a,b,c --id {id} {options}"
    run(f"{command} -k 5 -o first.{ending}")
    run(f"{command} -k 4 --given first.{ending} -o second.csv")
    numbers = read(pool / f"first.{ending}") if ending != "csv" else table("first.csv")
    given = ",".join(str(ids[id][int(row["item"])]) for row in numbers)
    run(f"{command} -k 4 --given {given} -o third.csv")
    assert items("second.csv") == items("third.csv")
    first = "\n".join((pool / "named.csv").read_text().splitlines()[:4])
    (pool / "some.csv").write_text(first)  # not an output, but rows of the pool
    run(f"{command} -k 4 --given some.csv -o fourth.csv")
    run(f"{command} -k 4 --given {','.join(map(str, ids[id][:3]))} -o fifth.csv")
    assert items("fourth.csv") == items("fifth.csv")


def test_all_tables_of_a_set_hold_the_same(pool):
    write_pool("parquet")
    np.savetxt("worth.txt", QUALITY)
    for ending in ("csv", "parquet", "jsonl"):
        run(f"pool.parquet --columns vector --labels y.txt --quality worth.txt -k 5 -o c.{ending}")
    rows, others = read(pool / "c.jsonl"), read(pool / "c.parquet")
    assert rows == others
    numbers = ["item", "gain", "covered", "stands_for", "label", "quality"]
    assert list(rows[0]) == [*numbers, "name", "body", "score"] == list(table("c.csv")[0])
    for row, cells in zip(rows, table("c.csv"), strict=True):
        assert [str(row[name]) for name in numbers] == [cells[name] for name in numbers]


def test_a_set_may_be_chosen_from_a_chosen_set(pool):
    write_pool("parquet")
    run("pool.parquet --columns vector -k 60 -o first.parquet")
    vectors = parquet.read_table("pool.parquet")["vector"]
    chosen = parquet.read_table("first.parquet")
    places = chosen["item"].to_numpy()
    parquet.write_table(chosen.append_column("vector", vectors.take(places)), "again.parquet")
    run("again.parquet --columns vector -k 5 -o second.jsonl")
    for row in read(pool / "second.jsonl"):
        assert row["input_item"] == places[row["item"]]
        assert row["name"] == IDS[row["input_item"]]


def test_columns_of_a_csv_file_keep_what_they_are(pool):
    rows = ["zip,count,share,note,a,b"]
    for i in range(40):
        note = "" if i % 2 else "7"
        rows.append(f"{i:03},{i},{i / 8:.3f},{note or '-'},{X[i, 0]},{X[i, 1]}")
    (pool / "few.csv").write_text("\n".join(rows))
    for ending in ("jsonl", "parquet"):
        run(f"few.csv --columns a,b -k 4 -o c.{ending}")
        for row in read(pool / f"c.{ending}"):
            i = row["item"]
            assert (row["zip"], row["count"], row["share"]) == (f"{i:03}", i, i / 8)
            assert row["note"] == ("-" if i % 2 else "7")
    run("few.csv --columns a,b -k 4 -o c.csv")
    assert [row["share"] for row in table("c.csv")] == [f"{i / 8:.3f}" for i in items("c.csv")]


def test_entries_of_any_type_are_written_everywhere(pool):
    odd = [1, "one", None, {"a": [1.5]}, [1, 2]]
    lines = [
        {"odd": odd[i % 5], "half": "\ud800", "nan": float("nan"), "vector": X[i].tolist()}
        for i in range(40)
    ]
    lines[5]["late"] = "only here"
    (pool / "odd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("odd.jsonl --columns vector -k 40 -o c.jsonl")
    for row in read(pool / "c.jsonl"):
        assert row["odd"] == odd[row["item"] % 5]
        assert (row["half"], row["nan"]) == ("\ud800", None)
        assert row["late"] == ("only here" if row["item"] == 5 else None)
    run("odd.jsonl --columns vector -k 40 -o c.parquet")
    texts = ["1", "one", None, '{"a": [1.5]}', "[1, 2]"]
    for row in read(pool / "c.parquet"):
        assert row["odd"] == texts[row["item"] % 5]
        assert row["half"] == r"\ud800"
    run("odd.jsonl --columns vector -k 40 -o c.csv")
    for row in table("c.csv"):
        assert row["odd"] == (texts[int(row["item"]) % 5] or "")


@pytest.mark.filterwarnings("always::dmsgd.errors.KernelWarning")
def test_a_set_may_be_empty(pool):
    write_pool("parquet")
    options = "--columns vector --given 3 --duplicates 0.00001 -k 5 --labels y.txt --page c.html"
    for ending in ("csv", "jsonl", "parquet"):
        result = invoke(f"pool.parquet {options} -o c.{ending} --force")
        assert result.exit_code == 0, result.output
        assert "nothing is chosen" in result.stdout
    assert (pool / "c.csv").read_text() == "item,gain,covered,stands_for,label,name,body,score\n"
    assert (pool / "c.jsonl").read_text() == ""
    kinds = {each.name: each.type for each in parquet.read_schema("c.parquet")}
    assert (kinds["item"], kinds["gain"], kinds["name"]) == (pa.int64(), pa.float64(), pa.string())


def test_an_empty_set_is_described_by_what_it_was_to_cover(pool):
    other = X[:20] + 0.1
    np.save("all.npy", X)
    np.save("other.npy", other)
    said = invoke("all.npy --cover other.npy --given 1,2,3 --until 0.01 -o c.csv --page c.html")
    found = dmsgd.select(X, until=0.01, given=[1, 2, 3], cover=other, details=True)
    assert f"{found.coverage[-1]:.3g} of other.npy is covered already" in said.stdout
    least = (pool / "c.html").read_text().split("Least covered")[1]
    assert f"item {found.similarity.argmin()}<" in least
    assert len(found.similarity) == 20


def test_types_of_a_parquet_file_stay(pool):
    when = pa.array(np.arange(300), type=pa.timestamp("s"))
    kind = pa.array(SOURCE).dictionary_encode()
    columns = {"when": when, "kind": kind, "tags": [["a", "b"]] * 300, "vector": X.tolist()}
    parquet.write_table(pa.table(columns), "typed.parquet", row_group_size=1)
    run("typed.parquet -k 7 -o c.parquet")
    found = parquet.read_table("c.parquet")
    chosen = dmsgd.select(X, 7)
    assert found.column_names[4:] == ["when", "kind", "tags"]
    assert found["when"].type == when.type or found["when"].type == pa.timestamp("ms")
    assert found["kind"].to_pylist() == SOURCE[chosen].tolist()
    run("typed.parquet -k 7 -o c.jsonl")
    rows = read(pool / "c.jsonl")
    assert rows[0]["when"].startswith("1970-01-01 00:")
    assert rows[0]["tags"] == ["a", "b"]


def test_a_table_that_changes_meanwhile_is_told_and_nothing_is_written(pool, monkeypatch):
    write_pool("jsonl")
    choose = dmsgd.select

    def and_change(*given, **more):
        with open("pool.jsonl", "a") as file:
            file.write("\n" + json.dumps({"name": "late"}))
        return choose(*given, **more)

    monkeypatch.setattr("dmsgd.selection.select.select", and_change)
    fails("pool.jsonl --columns vector -k 5 -o c.csv --page c.html", "has 301 rows and had 300")
    assert not (pool / "c.csv").exists()
    assert not (pool / "c.html").exists()


def test_large_files_are_passed_on_in_blocks(pool, monkeypatch):
    """`select` decides what it reads; the command does not read all rows before."""
    monkeypatch.setattr("dmsgd.features.convert.fits_in_memory", lambda size: False)
    kinds = []
    choose = dmsgd.select
    monkeypatch.setattr(
        "dmsgd.selection.select.select",
        lambda F, *given, **more: kinds.append(F.kind) or choose(F, *given, **more),
    )
    run("x.npy -k 5 -o c.csv --page c.html")
    assert kinds == ["streamed"]
    assert items("c.csv") == choose(X, 5).tolist()


def test_parquet_without_pyarrow_is_told_before_any_work(pool, monkeypatch):
    monkeypatch.setattr("dmsgd.inputs.messages._installed", lambda module: module != "pyarrow")
    result = invoke("x.npy -k 5 -o c.parquet")
    assert result.exit_code == 2
    assert 'c.parquet: writing Parquet needs pyarrow; pip install "dmsgd[parquet]"' in result.stderr
    assert "features" not in result.output


def test_a_column_that_makes_all_distances_is_named(pool):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(200, 3)), rng.integers(20, 2000, 200)])
    header = "a,b,c,tokens"
    np.savetxt("tokens.csv", rows, delimiter=",", header=header, comments="")
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # shown, not raised
        said = invoke("tokens.csv -k 5 -o out.csv").stderr
    assert "'tokens' makes 100.00% of all squared distances" in said
    assert "--standardize" in said
    run("tokens.csv -k 5 -o dropped.csv --drop tokens")
    run("tokens.csv -k 5 -o even.csv --standardize")
