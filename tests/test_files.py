import os
import sys
import zipfile
from decimal import Decimal

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.errors import InputError
from dmsgd.features import as_features
from dmsgd.features.convert import open_features
from dmsgd.files.arrays import load_npy, load_npz
from dmsgd.files.tables import column_names, find_table, read_column

X = np.array([[1.0, 2.5], [3.0, -4.0], [5.0, 0.0]])
IRIS = "length,width,species\n1,2.5,setosa\n3,-4,virginica\n5,0,setosa\n"


def load_features(*args, **kwargs):
    """The matrix behind what was loaded."""
    return open_features(*args, **kwargs).to_memory().matrix


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def parquet(path, **columns):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path)
    return path


# Features


def test_small_files_are_read_into_memory_and_large_ones_in_blocks(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(X))
    parquet(tmp_path / "x.parquet", a=X[:, 0], b=X[:, 1])
    pytest.importorskip("zarr").save(str(tmp_path / "x.zarr"), X)
    names = ["x.npy", "columns.npy", "x.npz", "x.parquet", "x.zarr"]
    assert [open_features(tmp_path / name).kind == "dense" for name in names].count(False) == 1
    known = {name: open_features(tmp_path / name).fingerprint() for name in names}
    assert len(set(known.values())) == 1
    monkeypatch.setattr("dmsgd.runtime.memory.LARGE", 0)
    for name in set(names) - {"columns.npy"}:
        assert "streamed" in open_features(tmp_path / name).kind
        assert open_features(tmp_path / name).fingerprint() == known[name]


def test_npy_of_other_types_becomes_float64(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    assert load_features(str(tmp_path / "x.npy")).dtype == np.float64


@pytest.mark.parametrize("name", ["X", "features", "x"])
def test_npz_with_a_usual_name(tmp_path, name):
    np.savez(tmp_path / "a.npz", **{name: X, "other": np.ones(3)})
    np.testing.assert_array_equal(load_features(tmp_path / "a.npz"), X)


def test_npz_with_one_array_and_with_a_selected_one(tmp_path):
    np.savez(tmp_path / "one.npz", whatever=X)
    np.testing.assert_array_equal(load_features(tmp_path / "one.npz"), X)
    np.savez(tmp_path / "two.npz", a=X, b=2 * X)
    np.testing.assert_array_equal(load_features(f"{tmp_path}/two.npz:b"), 2 * X)
    np.savez(tmp_path / "both.npz", X=X, y=[3, 1, 3])
    np.testing.assert_array_equal(read_column(tmp_path / "both.npz"), [3, 1, 3])


@pytest.mark.parametrize("suffix", ["", ":c"])
def test_npz_that_does_not_say_which_array(tmp_path, suffix):
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(ValueError, match=r"holds the arrays a, b; select one as two.npz:NAME"):
        load_features(f"{tmp_path}/two.npz{suffix}")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_npz_becomes_csr(tmp_path, kind):
    sparse.save_npz(tmp_path / "s.npz", sparse.coo_array(X).asformat(kind))
    loaded = load_features(tmp_path / "s.npz")
    assert loaded.format == "csr"
    np.testing.assert_array_equal(loaded.toarray(), X)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("index", [10**8, -(10**8)])
def test_sparse_npz_with_indices_out_of_range(tmp_path, kind, index):
    matrix = sparse.coo_array(X).asformat(kind)
    (matrix.row if kind == "coo" else matrix.indices)[0] = index
    sparse.save_npz(tmp_path / "s.npz", matrix)
    with pytest.raises(ValueError, match=r"s\.npz is (a )?damaged"):
        load_features(tmp_path / "s.npz")


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2.5\n3,-4\n5,0\n",
        "1,2.5\n3,-4\n5,0",
        '\ufeff"a","b"\r\n"1","2.5"\r\n3,-4\r\n\r\n5,0\r\n',
        "a;b\n1;2.5\n3;-4\n5;0\n",
        "a\tb\n1\t2.5\n3\t-4\n5\t0\n",
        "label,0\n1,2.5\n3,-4\n5,0\n",
        "\na;b\n1;2.5\n3;-4\n5;0\n",
        '"a, in m";"b"\n1;2.5\n3;-4\n5;0\n',
    ],
)
def test_csv(tmp_path, text):
    path = written(tmp_path, "x.csv", text)
    np.testing.assert_array_equal(load_features(path), X)


def test_csv_with_the_column_numbers_of_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    values = np.arange(12.0).reshape(4, 3)[::-1]
    pandas.DataFrame(values).to_csv(tmp_path / "x.csv", index=False)
    np.testing.assert_array_equal(load_features(tmp_path / "x.csv"), values)
    pandas.DataFrame(values, columns=["a", "b", "c"]).to_csv(tmp_path / "index.csv")
    with pytest.raises(ValueError, match=r"column 1 has no name.*index=False"):
        load_features(tmp_path / "index.csv")


def test_csv_without_the_column_of_labels(tmp_path):
    path = written(tmp_path, "iris.csv", IRIS)
    assert column_names(path) == ["length", "width", "species"]
    np.testing.assert_array_equal(load_features(path, drop=("species",)), X)
    assert read_column(f"{path}:species").tolist() == ["setosa", "virginica", "setosa"]


def test_csv_without_header_numbers_its_columns(tmp_path):
    path = written(tmp_path, "iris.csv", IRIS.split("\n", 1)[1])
    assert column_names(path) == ["1", "2", "3"]
    with pytest.raises(ValueError, match=r"column '3' holds .*labels='3'"):
        load_features(path)
    np.testing.assert_array_equal(load_features(path, drop=("3",)), X)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            IRIS,
            r"x\.csv: column 'species' holds .*has 'setosa'.*labels='species'",
        ),
        ("a,b\n1,2\n3,\n", r"x\.csv: column 'b' has an empty cell in line 3.*impute"),
        ('a\n1\n" "\n', r"x\.csv: column 'a' has an empty cell in line 3"),
        ('a,b\n"1\n",2\n\n3,NA\n', r"x\.csv: column 'b' has 'NA' in line 5"),
        ("a,b\n1,2\n3\n", r"x\.csv: line 3 has 1 cell, the first line 2"),
        ("a,b\n1,2,3\n3,4,5\n", r"x\.csv has 2 names and 3 columns"),
        ("a,b\n", r"has a header \(a, b\) but no rows"),
        ("\n\n", r"blank lines only"),
        ("a,b\n1,nan\n", r"x\.csv has 1 NaN or infinite value"),
        ("a;b\n1;2\n3;4,5\n", r"x\.csv: column 'b' has '4,5' in line 3"),
        ("a,b\n1,2\n3,4_0\n", r"x\.csv: column 'b' has '4_0' in line 3"),
        (f"a,b\n1,{'2' * 2**18}\n", r"field larger than field limit .*; save \.parq"),
    ],
)
def test_csv_errors(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        load_features(written(tmp_path, "x.csv", text))


def test_a_column_with_an_empty_cell_can_be_dropped(tmp_path):
    path = written(tmp_path, "x.csv", "id,a,b\nu,1,2\nv,3,\n")
    with pytest.raises(InputError) as caught:
        load_features(path, drop=("id",))
    assert caught.value.fixes == {"drop": "b"}
    with pytest.raises(InputError) as caught:
        load_features(path, drop=("id", "a"))
    assert caught.value.fixes == {}


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_a_file_is_read_once_more_where_python_fails(tmp_path, monkeypatch, ending):
    (np.save if ending == "npy" else np.savez)(tmp_path / f"x.{ending}", X)
    load, failed = np.load, []

    def fails_once(*arguments, **options):
        if not failed:
            failed.append(True)
            raise SystemError("AST constructor recursion depth mismatch")
        return load(*arguments, **options)

    monkeypatch.setattr(np, "load", fails_once)
    np.testing.assert_array_equal(load_features(tmp_path / f"x.{ending}"), X)
    assert failed


def test_booleans_of_a_csv_file_are_numbers(tmp_path):
    path = written(tmp_path, "x.csv", "a,is_new,city\n1,True,Rome\n2,false,Oslo\n3,1,Rome\n")
    assert load_features(path, drop=("city",)).tolist() == [[1, 1], [2, 0], [3, 1]]
    for text in ("a,is_new\n1,True\n2,yes\n", "a,b\n1,2\n2,True\n"):
        with pytest.raises(ValueError, match="line 3"):
            load_features(written(tmp_path, "x.csv", text))


@pytest.mark.parametrize("content", [b"a,b\n\xff\xfe,1\n", b"\x93\xfa\x00"])
def test_csv_that_is_no_text(tmp_path, content):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.csv is not UTF-8 text"):
        load_features(tmp_path / "x.csv")


def test_csv_with_a_cell_too_many_among_columns_that_are_dropped(tmp_path):
    path = written(tmp_path, "x.csv", "id,a,b\nu,1,2\nv,3,4,5\n")
    with pytest.raises(ValueError, match=r"x\.csv: line 3 has 4 cells, the first line 3"):
        load_features(path, drop=("id",))


def test_a_column_to_drop_must_exist(tmp_path):
    path = written(tmp_path, "iris.csv", IRIS)
    with pytest.raises(ValueError, match=r"columns length, width, species and no column 'kind'"):
        load_features(path, drop=("kind",))
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="no columns to drop"):
        load_features(tmp_path / "x.npy", drop=("kind",))
    with pytest.raises(ValueError, match="give the file alone"):
        load_features(f"{path}:length")


def test_parquet(tmp_path):
    path = parquet(
        tmp_path / "x.parquet",
        a=[1, 3, 5],
        b=[2.5, -4.0, 0.0],
        kind=["u", "v", "u"],
        __index_level_0__=["p", "q", "r"],
    )
    np.testing.assert_array_equal(load_features(path, drop=("kind",)), X)
    assert read_column(f"{path}:kind").tolist() == ["u", "v", "u"]
    with pytest.raises(ValueError, match=r"column 'kind' holds .*labels='kind'"):
        load_features(path)
    with pytest.raises(ValueError, match=r"has the columns a, b, kind.*x\.parquet:NAME"):
        read_column(path)


def test_parquet_with_views_of_text(tmp_path):
    pa = pytest.importorskip("pyarrow")
    if not hasattr(pa, "string_view"):
        pytest.skip("this pyarrow has no views")
    kind = pa.array(["u", "v"], pa.string_view())
    path = parquet(tmp_path / "x.parquet", a=[1, 3], kind=kind)
    with pytest.raises(InputError) as caught:
        load_features(path)
    assert caught.value.fixes == {"labels": "kind", "texts": "kind", "drop": "kind"}
    assert read_column(f"{path}:kind").tolist() == ["u", "v"]
    ((name, column),), n = find_table(path).rows(np.array([1, 0]), {"a"}, verbatim=False)
    assert (name, column.to_pylist(), n) == ("kind", ["v", "u"], 2)


def test_parquet_with_numbers_that_no_float_equals(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    whole = np.array([2**63 - 1, 2**53 + 1, -(2**62) - 3])
    prices = [Decimal("424533.559245"), Decimal("-7.99"), Decimal("534771.852898")]
    table = pa.table({"a": whole, "b": whole.reshape(-1, 1).tolist(), "price": prices})
    parquet.write_table(table, tmp_path / "x.parquet")
    expected = np.column_stack([whole, whole, [424533.559245, -7.99, 534771.852898]])
    np.testing.assert_array_equal(load_features(tmp_path / "x.parquet", named=True), expected)


def test_parquet_with_missing_values(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = parquet(tmp_path / "x.parquet", a=[1, None], b=[True, False])
    with pytest.raises(ValueError, match="1 NaN or infinite"):
        load_features(path)
    labels = pa.array(["u", None, "u"]).dictionary_encode()
    with pytest.raises(ValueError, match="1 missing"):
        read_column(parquet(tmp_path / "y.parquet", y=labels))


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = written(tmp_path, "x.parquet", "not read")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for load in (load_features, read_column):
        with pytest.raises(ImportError, match=r'pip install "dmsgd\[parquet\]"'):
            load(path)


# Labels


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("y.txt", "1\n2\n1\n", [1, 2, 1]),
        ("y.txt", "cat\r\ndog\r\ncat\r\n", ["cat", "dog", "cat"]),
        ("y.txt", "1\n2\n1\n\n \n", [1, 2, 1]),
        ("y.txt", "07\n7\n7", ["07", "7", "7"]),
        ("y.csv", "1\n2\n1\n", [1, 2, 1]),
        ("y.csv", "class\n1\n2\n1\n", [1, 2, 1]),
        ("y.csv", "pet\ncat\ndog\ncat\n", ["cat", "dog", "cat"]),
        ("y.csv", "cat\ncat\ndog\ncat\n", ["cat", "dog", "cat"]),
    ],
)
def test_text_labels(tmp_path, name, text, expected):
    labels = read_column(written(tmp_path, name, text))
    assert labels.tolist() == expected


def test_npy_labels(tmp_path):
    np.save(tmp_path / "y.npy", np.array(["b", "a"]))
    assert read_column(tmp_path / "y.npy").tolist() == ["b", "a"]
    np.save(tmp_path / "y.npy", np.array([[3], [1]]))
    assert read_column(tmp_path / "y.npy").tolist() == [3, 1]
    np.save(tmp_path / "y.npy", np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"y\.npy must be a 1-D array"):
        read_column(tmp_path / "y.npy")


@pytest.mark.parametrize("text", ["a\n\nb\n", "a\nnan\nb\n"])
def test_missing_labels(tmp_path, text):
    with pytest.raises(ValueError, match="1 missing"):
        read_column(written(tmp_path, "y.txt", text))


def test_labels_of_a_table_need_a_column(tmp_path):
    path = written(tmp_path, "iris.csv", IRIS)
    with pytest.raises(
        ValueError, match=r"columns length, width, species; select one as iris\.csv"
    ):
        read_column(path)
    with pytest.raises(ValueError, match="no column 'kind'"):
        read_column(f"{path}:kind")


def test_labels_of_a_name_that_two_columns_have(tmp_path):
    path = written(tmp_path, "iris.csv", IRIS.replace("length", "species"))
    with pytest.raises(ValueError, match=r"iris\.csv has 2 columns 'species'; name them apart"):
        read_column(f"{path}:species")
    np.testing.assert_array_equal(load_features(path, drop=("species",)), X[:, 1:])


def test_names_may_hold_line_breaks(tmp_path):
    path = written(tmp_path, "a\nb.csv", IRIS.replace("species", '"the\nspecies"'))
    assert read_column(f"{path}:the\nspecies").tolist() == ["setosa", "virginica", "setosa"]


# What cannot be read


@pytest.mark.parametrize("load", [load_features, read_column])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet"])
def test_missing_empty_and_folder(tmp_path, load, suffix):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(tmp_path / f"none{suffix}")
    with pytest.raises(ValueError, match=r"empty \(0 bytes\)"):
        load(written(tmp_path, f"empty{suffix}", ""))
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        load(tmp_path / f"folder{suffix}")


def test_unknown_suffix(tmp_path):
    with pytest.raises(ValueError, match=r"cannot read files ending in '\.h5'; use \.npy, \.npz"):
        load_features(written(tmp_path, "x.h5", "x"))


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_pickled_objects_are_not_loaded(tmp_path, suffix):
    objects = np.array([1, "a", None], dtype=object)
    path = tmp_path / f"x.{suffix}"
    np.save(path, objects) if suffix == "npy" else np.savez(path, X=objects)
    with pytest.raises(ValueError, match=r"holds Python objects.*save numbers"):
        load_features(path)


@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet"])
def test_truncated_files(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    rows = np.random.default_rng(0).normal(size=(50, 4))
    if suffix == "parquet":
        parquet(path, a=rows[:, 0])
    else:
        np.save(path, rows) if suffix == "npy" else np.savez_compressed(path, X=rows)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=rf"x\.{suffix} is damaged, cut short"):
        load_features(path)


def test_npz_with_flipped_bytes(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(50, 4)))
    content = bytearray(path.read_bytes())
    content[300:310] = bytes(10)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.npz is damaged"):
        load_features(path)


def test_wrong_names_of_numpy_files(tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"rename it to x\.npy"):
        load_features(tmp_path / "x.npz")
    with zipfile.ZipFile(tmp_path / "y.npy", "w"):
        pass
    with pytest.raises(ValueError, match=r"rename it to y\.npz"):
        load_features(tmp_path / "y.npy")


@pytest.mark.parametrize("array", [np.ones(3), np.ones((0, 2)), np.ones((2, 2, 2))])
def test_features_of_wrong_shape(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ValueError, match=r"x\.npy (has shape|is empty|must have two dimensions)"):
        load_features(tmp_path / "x.npy")


# Sizes that are declared, and contents that are not what they say


def header(text, version=1):
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 99), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3000000000, 3000000000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, -2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 60 + "), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
        "{'descr': '<f8', 'fortran_order': False, }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<U99999999999999', 'fortran_order': False, 'shape': (2, 3), }",
        "(" * 5000,
        "'''{",
        "{'descr': \"\\d\", 'fortran_order': False, 'shape': (2, 3), }",
    ],
)
def test_npy_headers_are_matched_and_never_believed(tmp_path, text):
    path = tmp_path / "x.npy"
    for version in (1, 2, 3):
        path.write_bytes(header(text, version) + bytes(48))
        for load in (load_features, read_column, open_features):
            with pytest.raises((ValueError, TypeError, MemoryError), match=r"x\.npy"):
                load(path)


def test_npy_with_a_header_of_gigabytes(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\2\0" + b"\xff" * 40)
    with pytest.raises(ValueError, match=r"x\.npy is damaged"):
        load_features(tmp_path / "x.npy")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("array", [X, np.asfortranarray(X), X.astype(">i2"), X > 0, X[:0], X[0]])
def test_npy_headers_of_numpy_are_all_understood(tmp_path, version, array):
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, array, version)
    loaded = load_npy(tmp_path / "x.npy")
    np.testing.assert_array_equal(loaded, array)
    assert (loaded.dtype, loaded.flags.f_contiguous) == (array.dtype, array.flags.f_contiguous)
    np.savez(tmp_path / "x.npz", array)
    np.testing.assert_array_equal(load_npz(tmp_path / "x.npz", None, ()), array)


def test_npz_of_texts(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X", "some text")
    for load in (load_features, read_column):
        with pytest.raises(ValueError, match=r"x\.npz holds the arrays \(none\)"):
            load(tmp_path / "x.npz")


def test_npz_that_unpacks_to_more_than_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("DMSGD_MEMORY", "10MB")
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((2000, 1000)))
    assert (tmp_path / "x.npz").stat().st_size < 20_000
    with pytest.raises(MemoryError, match=r"X of .*x\.npz needs 15\.3 MB and 10 MB may be used"):
        load_features(tmp_path / "x.npz")


@pytest.mark.parametrize("declared", [16 + 128, 2**31, 10**12])
def test_npz_that_declares_another_size_than_it_has(tmp_path, declared):
    path = tmp_path / "x.npz"
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({declared - 128}, 1), }}"
    start = header(text.ljust(117) + "\n")
    assert len(start) == 128
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", start + bytes(7))
        archive.getinfo("X.npy").file_size = declared  # what the directory at the end will say
    with pytest.raises((ValueError, MemoryError), match=r"x\.npz"):
        load_features(path)


def test_sparse_npz_of_declared_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("DMSGD_MEMORY", "1GB")
    matrix = sparse.coo_array(X)
    parts = {"row": matrix.row, "col": matrix.col, "data": matrix.data, "format": b"coo"}
    np.savez(tmp_path / "x.npz", shape=[10**15, 2], **parts)
    with pytest.raises(MemoryError, match=r"row and column of .*x\.npz"):
        load_features(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", shape=[-3, 2], **parts)
    with pytest.raises(ValueError, match=r"its shape is \(-3, 2\)"):
        load_features(tmp_path / "x.npz")


def test_one_long_label_does_not_take_all_the_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("DMSGD_MEMORY", "100MB")
    path = written(tmp_path, "y.txt", "a\n" * 3000 + "b" * 100_000)
    with pytest.raises(MemoryError, match="shorten the longest, of 100,000 characters"):
        read_column(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes to wait for")
def test_a_pipe_is_not_waited_for(tmp_path):
    for suffix in ("npy", "npz", "csv", "parquet", "zarr"):
        os.mkfifo(tmp_path / f"x.{suffix}")
        with pytest.raises(ValueError, match="is a device or a pipe"):
            load_features(tmp_path / f"x.{suffix}")
        with pytest.raises(ValueError, match="is a device or a pipe"):
            as_features(tmp_path / f"x.{suffix}")


def test_zarr_features_and_labels_from_one_group(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.create_group(str(tmp_path / "g.zarr"))
    group.create_array("X", data=X)
    group.create_array("y", data=np.array([1, 0, 1]))
    np.testing.assert_array_equal(load_features(tmp_path / "g.zarr"), X)
    np.testing.assert_array_equal(load_features(f"{tmp_path}/g.zarr:X"), X)
    for name in ("g.zarr", "g.zarr:y"):
        np.testing.assert_array_equal(read_column(f"{tmp_path}/{name}"), [1, 0, 1])


def test_parquet_with_two_columns_of_one_name(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], ["a", "a"])
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="2 columns 'a'"):
        load_features(tmp_path / "x.parquet")


def signalling(dtype):
    """An array whose last number is a NaN that casts raise a flag about."""
    made = X.astype(dtype)
    made.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[made.itemsize])[-1, -1] = {
        2: 0x7D00, 4: 0x7FA00000, 8: 0x7FF4000000000000,
    }[made.itemsize]  # fmt: skip
    return made


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize(
    "made",
    [
        lambda: X.astype(np.longdouble) * np.longdouble("1e400"),
        lambda: signalling(np.float16),
        lambda: signalling(np.float32),
        lambda: signalling(np.float64),
    ],
)
def test_numbers_that_are_none_in_float64_are_refused_without_warnings_of_numpy(
    tmp_path, made, suffix
):
    path = tmp_path / f"X{suffix}"
    (np.save if suffix == ".npy" else np.savez)(path, made())
    for read in (load_features, lambda path: dmsgd.diversify(path, 1)):
        with pytest.raises(ValueError, match="infinite"):
            read(path)


@pytest.mark.parametrize("name", ["a" * 300, "/".join(["a" * 200] * 30), "a\0"])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".npz:X", ".csv", ".parquet", ".zarr", ""])
def test_names_that_no_file_can_have(name, suffix):
    for read in (as_features, open_features, read_column):
        if read is read_column and not suffix:
            continue
        with pytest.raises(ValueError, match="path") as said:
            read(name + suffix)
        assert len(str(said.value)) < 200


def test_the_name_of_an_array_may_be_long(tmp_path):
    np.savez(tmp_path / "all.npz", **{"x" * 300: X, "y": X})
    np.testing.assert_array_equal(load_features(f"{tmp_path / 'all.npz'}:{'x' * 300}"), X)
