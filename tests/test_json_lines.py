"""JSON Lines: a table whose rows are objects, for features, labels and any other column."""

import json

import numpy as np
import pytest

import dmsgd
from dmsgd.features.convert import open_features
from dmsgd.files.tables import column_names, read_column, read_entries
from test_commands import fails, run

X = np.random.default_rng(0).normal(size=(60, 5))
Y = [f"kind {i % 3}" for i in range(60)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = zip(X[:, :4].tolist(), X[:, 4].tolist(), Y, strict=True)
    write("table.jsonl", [{"vector": v, "last": a, "kind": y} for v, a, y in rows])
    return tmp_path


def write(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write((row if isinstance(row, str) else json.dumps(row)) + "\n")


def test_lists_and_numbers_are_features(folder):
    assert column_names("table.jsonl") == ["vector", "last", "kind"]
    found = open_features("table.jsonl", {"kind"}, named=True)
    np.testing.assert_array_equal(found.unwrap(), X)
    with pytest.warns(dmsgd.KernelWarning, match="numbers beside them are left out: last"):
        found = open_features("table.jsonl", {"kind"})
    np.testing.assert_array_equal(found.unwrap(), X[:, :4])


def test_labels_are_a_column(folder):
    np.testing.assert_array_equal(read_column("table.jsonl:kind"), Y)
    command = "sample table.jsonl --columns vector,last --labels kind -w 0.5 -k 4 -n 5 -o b.npy"
    assert run(command).stderr == ""
    expected = dmsgd.diversify(X, 4, Y, 0.5).sample(5, 0)
    np.testing.assert_array_equal(np.load("b.npy"), expected)
    np.save("x.npy", X)
    assert run("sample x.npy --labels table.jsonl:kind -w 0.5 -k 4 -n 5 -o c.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("c.npy"), expected)


def test_blank_lines_a_byte_order_mark_and_windows_lines(folder):
    rows = [json.dumps({"a": i, "b": True, "c": -i}) for i in range(1, 4)]
    text = "\ufeff" + "\r\n\r\n".join(rows) + "\r\n  \r\n"
    (folder / "odd.jsonl").write_bytes(text.encode())
    expected = [[i, 1, -i] for i in range(1, 4)]
    np.testing.assert_array_equal(open_features("odd.jsonl").unwrap(), expected)


def test_fields_that_are_missing_or_null(folder):
    write("holes.jsonl", [{"a": None, "b": 2}, {"a": "x"}, {"a": "y", "note": "z", "b": 1}])
    assert read_entries("holes.jsonl:a", 3).tolist() == ["", "x", "y"]
    assert read_entries("holes.jsonl:b").tolist() == [2, "", 1]
    with pytest.raises(ValueError, match="missing"):
        read_column("holes.jsonl:b")
    with pytest.raises(ValueError, match="NaN"):
        open_features("holes.jsonl", {"a"})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"a": 1}', '{"a": 1'], "line 2 is not JSON"),
        (["[1, 2]"], r"line 1 is \[1, 2\], not an object"),
        (["[" * 100_000], "line 1 is not JSON"),
        (["", " "], "blank lines only"),
        ([{"a": [1, 2]}, {"a": [1, 2, 3]}], "'a' .* different lengths: line 2 has 3 .* --drop a"),
        ([{"a": [1, 2]}, {"b": 3}], "'a' .* different lengths: line 2 has 1 .* first line 2"),
        ([{"a": [1, 2]}, {"a": [1, None]}], r"'a' is \[1, null\] in line 2"),
        ([{"a": [1, 2]}, {"a": "12"}], "'a' is \"12\" in line 2"),
        ([{"a": 1}, {"a": "x"}], "'a' is \"x\" in line 2"),
        ([{"a": 1}, '{"a": 1' + "0" * 400 + "}"], "'a' is 1000.* in line 2"),
        ([{"a": 1}, {"a": 2, "b": [1, 2]}], "line 2 has a field 'b' that the first line lacks"),
        ([{"a": []}, {"a": []}], "'a' holds lists of other things"),
        ([{"a": {"b": 1}}], "'a' holds objects"),
        ([{"a": "x"}], "'a' holds text"),
        ([{"a": 1}, {"a": float("nan")}], "NaN"),
        ([{}], "no column of features"),
    ],
)
def test_what_is_no_table_is_named(folder, lines, message):
    write("bad.jsonl", lines)
    fails("sample bad.jsonl -k 1 -n 1 -o b.npy", message)


def test_bytes_that_are_no_text(folder):
    (folder / "bad.jsonl").write_bytes(b'{"a": "\xff"}\n')
    fails("sample bad.jsonl -k 1 -n 1 -o b.npy", "bad.jsonl is not UTF-8 text")
