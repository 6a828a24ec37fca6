"""Tables and columns of pandas, polars, Arrow and Hugging Face datasets, as features and labels."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dmsgd
from dmsgd.features import as_features

X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
Y = np.arange(12) % 3


def tables():
    """Return tables of an embedding, two columns of numbers and a label, by library."""
    columns = {"e": X.tolist(), "a": X[:, 0], "b": X[:, 1], "label": Y.astype(str).tolist()}
    twice = {name: [column[0], *column] for name, column in columns.items()}
    hugging_face = datasets.Dataset.from_dict(columns)
    return {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "polars, arrays": pl.DataFrame({**columns, "e": X}),
        "polars, lazy": pl.LazyFrame(columns),
        "Arrow": pa.table(columns),
        "Arrow, one batch": pa.record_batch(columns),
        "Hugging Face": hugging_face,
        "Hugging Face, torch": hugging_face.with_format("torch"),
        "Hugging Face, selected": datasets.Dataset.from_dict(twice).select(range(1, 13)),
    }


@pytest.mark.parametrize("name", tables())
def test_a_table_of_any_library_is_its_numbers(name, monkeypatch):
    """A column of rows is so many columns; labels name a column; one column is a matrix, too."""
    monkeypatch.setattr("dmsgd.inputs.arrays.ROWS_READ", 5)
    table, plain = tables()[name], {"kernel": "linear", "normalize": False}
    design = dmsgd.diversify(table, 3, labels="label", w=0.5, **plain)
    expected = dmsgd.diversify(np.column_stack([X, X[:, :2]]), 3, Y.astype(str), 0.5, **plain)
    assert design.fingerprint() == expected.fingerprint()
    with pytest.raises(TypeError, match="'label'"):
        dmsgd.diversify(table, 3)
    with pytest.raises(ValueError, match="e, a, b, label"):
        dmsgd.diversify(table, 3, labels="class", w=0.5)
    if name != "polars, lazy":
        assert as_features(table["e"]).fingerprint() == as_features(X).fingerprint()
        assert dmsgd.Stratified(table["label"], 3).strata.tolist() == ["0", "1", "2"]


def test_rows_in_a_column_must_fit():
    for rows in ([[1.0, 2.0], [3.0]], [[1.0], None], [["a"], ["b"]]):
        for make in (pl.Series, pa.array, lambda rows: pd.DataFrame({"e": rows})):
            with pytest.raises(
                (TypeError, ValueError), match=r"lengths|missing|text|numbers|dimensions"
            ):
                dmsgd.diversify(make(rows), 1)


def test_the_labels_of_a_hugging_face_dataset():
    torch = pytest.importorskip("torch")
    data = datasets.Dataset.from_dict({"x": X.tolist(), "label": Y, "kind": Y.astype(str)})
    assert dmsgd.torch.labels(data).tolist() == Y.tolist()
    assert dmsgd.torch.labels(data, "kind").tolist() == Y.astype(str).tolist()
    part = torch.utils.data.Subset(data.with_format("torch"), [4, 2])
    assert dmsgd.torch.labels(part).tolist() == [1, 2]
    with pytest.raises(ValueError, match="field= one of x, kind"):
        dmsgd.torch.labels(data.remove_columns("label"))
