"""Tables as people have them: columns with names, in frames, .csv, .tsv and .parquet files."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

import dmsgd
from dmsgd.diagnostics import inspect
from dmsgd.files import parquet_tables, text_tables
from test_commands import fails, run

WINE = load_wine(as_frame=True)
CULTIVAR = WINE.target_names[WINE.target]
ASKED = {"k": 8, "w": 0.7, "standardize": True, "normalize": True}


def frame():
    return WINE.data.assign(cultivar=CULTIVAR)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("wine.csv", index=False)
    frame().to_csv("wine.tsv", index=False, sep="\t")
    frame().to_parquet("wine.parquet", index=False)
    return tmp_path


# The column of the labels


@pytest.mark.parametrize("kind", ["wine.csv", "wine.tsv", "wine.parquet", "pandas", "polars"])
def test_labels_are_a_column_of_a_table(folder, kind):
    if kind == "polars":
        X = pytest.importorskip("polars").from_pandas(frame())
    else:
        X = frame() if kind == "pandas" else kind
    expected = dmsgd.diversify(WINE.data.to_numpy(), labels=CULTIVAR, **ASKED)
    design = dmsgd.diversify(X, labels="cultivar", **ASKED)
    np.testing.assert_allclose(design.inclusion(), expected.inclusion(), atol=1e-12)
    np.testing.assert_array_equal(design.sample(20, 0), expected.sample(20, 0))


@pytest.mark.filterwarnings("ignore:column 12 of X")
def test_everyone_takes_a_column_of_labels(folder):
    found = inspect("wine.csv", 8, "cultivar")
    assert found.data.classes == {"class_0": 59, "class_1": 71, "class_2": 48}
    assert found.data.d == 13
    advised = found.advice.design("wine.csv", "cultivar")
    assert (advised.n, advised.k) == (178, 8)
    assert all(name in found.html() for name in found.data.classes)


@pytest.mark.parametrize(
    ("X", "labels", "message"),
    [
        (WINE.data, "cultivar", "must name one column of X, which has 0 of that name; it has alc"),
        (WINE.data.to_numpy(), "cultivar", "names a column, but X is a ndarray without names"),
        ("wine.csv", "grape", "has the columns alcohol, .* and no column 'grape'"),
        ("wine.npy", "grape", "names a column, but wine.npy is no table"),
        (frame(), None, "text in its column 'cultivar'; pass labels='cultivar' if .*, encode"),
        (
            frame().assign(grape="red"),
            None,
            "text in its columns 'cultivar', 'grape'; .*get_dummies.*drop them",
        ),
        ("wine.csv", None, "'cultivar' holds .*; pass labels='cultivar'"),
        ("wine.parquet", None, "'cultivar' holds .*; pass labels='cultivar'"),
    ],
)
def test_what_is_no_column_of_labels_or_features_is_named(folder, X, labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        dmsgd.diversify(X, 8, labels)


@pytest.mark.parametrize("X", [frame(), pl.from_pandas(frame()), "wine.csv", "wine.parquet"])
@pytest.mark.parametrize(
    "take", [dmsgd.kernels.RBF, partial(dmsgd.select, k=8), partial(dmsgd.cells, k=8)]
)
def test_what_takes_no_labels_does_not_name_them(folder, X, take):
    with pytest.raises((ValueError, TypeError), match=r"'cultivar'.* encode") as raised:
        take(X)
    assert "labels=" not in str(raised.value)


def test_labels_of_one_column():
    y = CULTIVAR[:, None]
    expected = dmsgd.diversify(WINE.data, labels=CULTIVAR, **ASKED).fingerprint()
    for labels in (y, pd.DataFrame({"cultivar": CULTIVAR})):
        assert dmsgd.diversify(WINE.data, labels=labels, **ASKED).fingerprint() == expected
    with pytest.raises(ValueError, match="1-D array"):
        dmsgd.diversify(WINE.data, labels=np.hstack([y, y]), **ASKED)


# Columns that are no features


def test_a_column_that_counts_rows_is_named(folder):
    numbered = frame().drop(columns="cultivar").set_index(1_000_000 + 7 * np.arange(178))
    numbered.rename_axis("bottle").to_csv("numbered.csv")
    with pytest.warns(dmsgd.KernelWarning) as said:
        design = dmsgd.diversify("numbered.csv", 2, kernel="linear", normalize=False)
    assert "'bottle' counts upwards, as row numbers and ids do" in str(said[0].message)
    assert "column 0 of X (from 0) is 100.00% of the kernel" in str(said[1].message)
    assert design.n == 178
    assert run("sample numbered.csv -k 8 -n 5 --standardize --drop bottle -o b.npy").exit_code == 0
    expected = dmsgd.diversify(WINE.data, 8, standardize=True)
    np.testing.assert_array_equal(np.load("b.npy"), expected.sample(5, 0))


def test_an_index_of_pandas_is_left_out_of_parquet(folder):
    indexed = WINE.data.set_index(pd.Index(np.arange(178) ** 2, name="bottle"))
    indexed.to_parquet("named.parquet")
    design = dmsgd.diversify("named.parquet", 8, standardize=True)
    expected = dmsgd.diversify(WINE.data, 8, standardize=True)
    assert design.fingerprint() == expected.fingerprint()
    indexed.rename_axis(None).to_parquet("unnamed.parquet")
    unnamed = dmsgd.diversify("unnamed.parquet", 8, standardize=True)
    assert unnamed.fingerprint() == expected.fingerprint()
    assert run("sample named.parquet -k 8 -n 5 --standardize --drop bottle -o b.npy").exit_code == 0


@pytest.mark.parametrize("file", ["wine.csv", "wine.tsv", "wine.parquet"])
def test_columns_are_chosen_on_the_command_line(folder, file):
    chosen = ["alcohol", "hue", "ash"]
    drop = ",".join(name for name in WINE.data if name not in chosen)
    expected = dmsgd.diversify(WINE.data[["alcohol", "ash", "hue"]], 3, standardize=True)
    for options in (f"--columns {','.join(chosen)}", f"--drop {drop} --labels cultivar"):
        result = run(f"sample {file} -k 3 -n 5 --standardize {options} -o b.npy --force")
        assert result.exit_code == 0, result.output
        np.testing.assert_array_equal(np.load("b.npy"), expected.sample(5, 0))
    given = "--standardize --target uniform --columns alcohol,ash,hue"
    printed = run(f"inspect {file} -k 3 {given}").stdout
    assert "178 items x 3" in printed
    assert "--columns alcohol,ash,hue -o batches.npy" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("file", "read"),
    [("x.csv", text_tables.CsvTable), ("x.parquet", parquet_tables.ParquetTable)],
)
def test_a_header_is_not_read_again_for_each_column(tmp_path, monkeypatch, file, read):
    monkeypatch.chdir(tmp_path)
    original, reads = read.__init__, []
    monkeypatch.setattr(
        read, "__init__", lambda self, file: reads.append(file) or original(self, file)
    )
    counts = []
    for width in (5, 300):
        table = pd.DataFrame(np.random.default_rng(0).normal(size=(9, width)))
        table = table.rename(columns="c{}".format).assign(y=np.arange(9) % 3)
        table.to_csv(file, index=False) if file == "x.csv" else table.to_parquet(file)
        reads.clear()
        result = run(f"sample {file} -k 2 -n 3 --columns c0,c1,c2 --labels y -o b.npy --force")
        assert result.exit_code == 0, result.output
        counts.append(len(reads))
    assert counts[0] == counts[1] <= 4


def test_columns_that_are_not_there_are_named(folder):
    np.save("x.npy", WINE.data)
    for command, message in {
        "inspect wine.csv -k 3 --columns alcohol,colour": "no column 'colour' for --columns; it",
        "inspect wine.csv -k 3 --drop colour": "no column 'colour' for --drop; it has alcohol, ",
        "inspect wine.csv -k 3 --drop ash --columns hue": "give one of them",
        "inspect x.npy -k 3 --drop ash": "--drop is for tables; x.npy has no named columns",
        "inspect wine.csv -k 3": "use --labels cultivar, .*or --drop cultivar",
    }.items():
        fails(command, message)


# Embeddings in one column


@pytest.mark.parametrize("fixed", [True, False])
def test_lists_of_numbers_are_features(folder, fixed):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    kind = pa.list_(pa.float32(), 64) if fixed else pa.list_(pa.float32())
    lists = pa.array(X.tolist(), type=kind)
    length = np.linalg.norm(X, axis=1)
    table = pa.table({"embedding": lists, "length": length, "name": ["x"] * 300, "digit": y})
    parquet.write_table(table, "digits.parquet", row_group_size=70)
    asked = {"k": 6, "w": 0.7, "normalize": True}
    expected = dmsgd.diversify(X, labels=y, **asked)
    with pytest.warns(dmsgd.KernelWarning, match="numbers beside them are left out: length"):
        found = dmsgd.diversify("digits.parquet", labels="digit", **asked)
    assert found.fingerprint() == expected.fingerprint()
    command = "sample digits.parquet --labels digit -k 6 -n 5 -w 0.7 --normalize -o b.npy"
    assert run(f"{command} --drop length").stderr == ""
    np.testing.assert_array_equal(np.load("b.npy"), expected.sample(5, 0))
    expected = dmsgd.diversify(np.column_stack([X, length]), labels=y, **asked)
    assert run(f"{command} --columns embedding,length --force").stderr == ""
    np.testing.assert_array_equal(np.load("b.npy"), expected.sample(5, 0))


def test_lists_of_different_lengths_are_refused(folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"v": [[1.0, 2.0], [3.0, 4.0], [5.0]]}), "ragged.parquet")
    parquet.write_table(pa.table({"v": [[1.0, 2.0], None, [5.0, 1.0]]}), "holes.parquet")
    parquet.write_table(pa.table({"v": [["a"], ["b"]]}), "words.parquet")
    for file, message in {
        "ragged": r"'v' holds lists of different lengths, or none \(2, 1\)",
        "holes": r"'v' holds lists of different lengths, or none \(2, None\)",
        "words": "column 'v' holds lists",
    }.items():
        fails(f"inspect {file}.parquet -k 1", message)
        with pytest.raises(ValueError, match=message):
            dmsgd.diversify(f"{file}.parquet", 1).sample(1)


# What else people have


def test_images_and_archives_get_a_word_that_helps(folder):
    digits = load_digits()
    np.save("images.npy", digits.images)
    np.savez("blobs.npz", data=digits.data, target=digits.target)
    shape = r"shape \(1797, 8, 8\).* X.reshape\(len\(X\), -1\)"
    for X in (digits.images, "images.npy"):
        with pytest.raises(ValueError, match=shape):
            dmsgd.diversify(X, 8)
    fails("inspect images.npy -k 8", shape)
    fails("inspect blobs.npz -k 8", r"arrays data, target; select one as blobs.npz:NAME")
    command = "sample blobs.npz:data --labels blobs.npz:target -k 8 -n 2 --normalize -o b.npy"
    assert run(command).exit_code == 0


def test_iris_of_a_frame_that_is_written_and_read_again(folder):
    iris = load_iris(as_frame=True)
    iris.frame.to_csv("iris.csv", index=False)
    design = dmsgd.diversify("iris.csv", 3, labels="target", w=0.5, target="uniform")
    expected = dmsgd.diversify(iris.data, 3, labels=iris.target, w=0.5, target="uniform")
    np.testing.assert_array_equal(design.sample(9, 0), expected.sample(9, 0))


def test_dropped_columns_are_a_set():
    """Of 20,000 columns a list would be searched 20,000 times."""
    from dmsgd.commands.files import DataFiles

    names = [f"c{i}" for i in range(20_000)]
    files = DataFiles("x.csv", "c0,c1", None, {"labels": "c5"})
    vars(files)["names"] = names  # which are read from the file at first use
    assert files.dropped == frozenset(names[2:])
    assert isinstance(files.dropped, frozenset)
