"""What users may pass, good and bad, by the kind of argument: the makers of all cases.

A maker takes a `Size` and returns a value. Those named under GOOD must be accepted, those under BAD
refused, and those under ODD may be either: accepted with a result that holds, or refused.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch
from scipy import sparse

import dmsgd
from dmsgd.features import as_features


@dataclass(frozen=True)
class Size:
    """How large the data of a case is, and what its random numbers come from."""

    n: int
    d: int
    k: int
    seed: int

    @property
    def rng(self):
        return np.random.default_rng(self.seed)

    @property
    def X(self):
        """Features that every float type holds exactly: eighths between -4 and 4, and no 0."""
        eighths = self.rng.integers(1, 33, size=(self.n, self.d))
        return eighths * self.rng.choice([-1, 1], size=(self.n, self.d)) / 8.0

    @property
    def counts(self):
        """Whole numbers from 1 to 32."""
        return self.rng.integers(1, 33, size=(self.n, self.d))

    @property
    def y(self):
        """Three classes, each of which is there."""
        return self.rng.permutation(np.arange(self.n) % 3)

    @property
    def weights(self):
        """A number for each item, no two far apart."""
        return np.linspace(1.0, 1.4, self.n)

    def with_second(self, value, others):
        """Return `others`, one number for each item, with another one for the second item."""
        return np.where(np.arange(self.n) == 1, value, others)

    def with_column(self, value):
        """Return the features with all of their second column `value`."""
        return np.where(np.arange(self.d) == 1, value, self.X)

    @property
    def kernel(self):
        return dmsgd.kernels.Linear(self.X)

    @property
    def spectrum(self):
        return dmsgd.kernels.exact(self.kernel)

    @property
    def design(self):
        return dmsgd.KDPP(self.spectrum, self.k)


class Gram(Size):
    """The same, with a square matrix that is a kernel for features."""

    def __init__(self, size):
        super().__init__(size.n, size.n, size.k, size.seed)

    @property
    def X(self):
        whole = self.rng.integers(-2, 3, size=(self.n, self.n)) + 2 * np.eye(self.n)
        return whole @ whole.T / 8.0


class Broken:
    """Promises an array and has none."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def with_entry(array, entry):
    """Return an object array whose first entry is another one."""
    out = np.asarray(array).astype(object)
    out.flat[0] = entry
    return out


def nullable(size):
    return pd.DataFrame(size.X).astype("Float64")


def with_null(frame):
    frame.iloc[0, 0] = pd.NA
    return frame


def unsorted(size):
    X = sparse.csr_array(size.X)
    X.indices, X.data = X.indices.copy(), X.data.copy()
    for first, last in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[first:last] = X.indices[first:last][::-1]
        X.data[first:last] = X.data[first:last][::-1]
    return X


def duplicated(size):
    """Every entry as two halves."""
    X = sparse.coo_array(size.X)
    data = np.r_[X.data, X.data] / 2
    return sparse.coo_array((data, (np.r_[X.row, X.row], np.r_[X.col, X.col])), shape=X.shape)


def repeated_in_rows(size):
    X = sparse.csr_array(size.X)
    parts = np.repeat(X.data, 2) / 2, np.repeat(X.indices, 2), 2 * X.indptr
    return sparse.csr_array(parts, shape=X.shape)


def long_indices(size):
    X = sparse.csr_array(size.X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def damaged(matrix, part, place, value):
    """Return a sparse matrix one of whose arrays was written to."""
    array = getattr(matrix, part).copy()
    array[place] = value
    setattr(matrix, part, array)
    return matrix


def orthonormal(size, columns):
    """Return a matrix with this many orthonormal columns, none of whose entries is 0."""
    return np.linalg.qr(size.rng.normal(size=(size.n, columns)))[0]


def by_hand(*values):
    """Return the maker of a spectrum with these eigenvalues."""
    return lambda s: dmsgd.spectra.Spectrum(values, orthonormal(s, len(values)))


def near_deficient(size, gap):
    """Return features whose last column is the first but for `gap`."""
    last = size.X[:, :1] + gap * size.rng.normal(size=(size.n, 1))
    return np.hstack([size.X[:, :-1], last])


def low_rank(size, gap):
    """Return features of rank 2, each of which is off by `gap`."""
    return size.X[:, :2] @ size.X[:2] + gap * size.rng.normal(size=(size.n, size.d))


def signalling(size):
    """Return features one of which is a NaN that processors raise a flag about."""
    X = size.X.astype(np.float32)
    X.view(np.uint32)[0, 0] = 0x7FA00000
    return X


def damaged_coo(size, value):
    X = sparse.coo_array(size.X)
    X.coords[0][0] = value
    return X


FEATURES_GOOD = {
    "array": lambda s: s.X,
    "Fortran order": lambda s: np.asfortranarray(s.X),
    "strided": lambda s: np.repeat(s.X, 2, axis=1)[:, ::2],
    "reversed": lambda s: s.X[::-1, ::-1][::-1, ::-1],
    "broadcast": lambda s: np.broadcast_to(s.X, (2, s.n, s.d))[1],
    "read-only": lambda s: np.frombuffer(s.X.tobytes()).reshape(s.n, s.d),
    "other byte order": lambda s: s.X.astype(">f8"),
    "float16": lambda s: s.X.astype(np.float16),
    "float32": lambda s: s.X.astype(np.float32),
    "longdouble": lambda s: s.X.astype(np.longdouble),
    "objects": lambda s: s.X.astype(object),
    "list": lambda s: s.X.tolist(),
    "tuple": lambda s: tuple(map(tuple, s.X.tolist())),
    "list of arrays": lambda s: list(s.X),
    "fractions": lambda s: [[Fraction(x) for x in row] for row in s.X.tolist()],
    "decimals": lambda s: [[Decimal(x) for x in row] for row in s.X.tolist()],
    "np.matrix": lambda s: np.asarray(s.X).view(np.matrix),
    "masked nowhere": lambda s: np.ma.masked_array(s.X, mask=False),
    "frame": lambda s: pd.DataFrame(s.X),
    "frame of objects": lambda s: pd.DataFrame(s.X).astype(object),
    "nullable frame": nullable,
    "categorical frame": lambda s: pd.DataFrame(s.X).astype("category"),
    "polars": lambda s: pl.DataFrame(s.X),
    "polars query": lambda s: pl.LazyFrame(s.X),
    "column of arrays": lambda s: pl.DataFrame({"x": s.X}),
    "series of rows": lambda s: pd.Series(list(s.X)),
    "Arrow table": lambda s: pa.table(list(s.X.T), names=list(map(str, range(s.d)))),
    "Arrow column": lambda s: pa.chunked_array([s.X[:2].tolist(), s.X[2:].tolist()]),
    "tensor": lambda s: torch.tensor(s.X),
    "tensor with gradient": lambda s: torch.tensor(s.X, requires_grad=True),
    "tensor of bfloat16": lambda s: torch.tensor(s.X).to(torch.bfloat16),
    "tensor transposed": lambda s: torch.tensor(s.X.T.copy()).T,
    "features": lambda s: as_features(s.X),
}  # fmt: skip

#: The same numbers, sparse: their fingerprint is that of sparse data.
FEATURES_SPARSE = {
    "csr_array": lambda s: sparse.csr_array(s.X),
    "csr_matrix": lambda s: sparse.csr_matrix(s.X),
    "csc": lambda s: sparse.csc_array(s.X),
    "coo": lambda s: sparse.coo_array(s.X),
    "lil": lambda s: sparse.lil_array(s.X),
    "dok": lambda s: sparse.dok_array(s.X),
    "dia": lambda s: sparse.dia_array(s.X),
    "bsr": lambda s: sparse.bsr_array(s.X),
    "duplicates": duplicated,
    "duplicates in rows": repeated_in_rows,
    "unsorted": unsorted,
    "long indices": long_indices,
    "sparse float32": lambda s: sparse.csr_array(s.X.astype(np.float32)),
}  # fmt: skip

NOTHING_LIKE_IT = {
    "None": lambda s: None,
    "number": lambda s: 3.5,
    "bool": lambda s: True,
    "object": lambda s: object(),
    "function": lambda s: lambda: None,
    "class": lambda s: dmsgd.KDPP,
    "dict": lambda s: {"a": 1},
    "set": lambda s: {1, 2},
    "generator": lambda s: (row for row in s.X),
    "iterator": lambda s: iter(s.X.tolist()),
    "broken array": lambda s: Broken(),
    "bytes": lambda s: b"abc",
    "structured": lambda s: np.zeros(s.n, dtype=[("a", float), ("b", int)]),
    "sets in an array": lambda s: np.array([{1}] * s.n, dtype=object),
}  # fmt: skip


def nothing_like_it_but(left_out):
    return {name: make for name, make in NOTHING_LIKE_IT.items() if name != left_out}


FEATURES_BAD = {
    **NOTHING_LIKE_IT,
    "empty": lambda s: [],
    "no columns": lambda s: [[]] * s.n,
    "no rows": lambda s: s.X[:0],
    "1-D": lambda s: s.X[0],
    "3-D": lambda s: s.X[None],
    "0-D": lambda s: np.array(1.0),
    "ragged": lambda s: [[1.0], [1.0, 2.0]] * s.n,
    "NaN": lambda s: s.with_column(np.nan),
    "infinite": lambda s: s.with_column(-np.inf),
    "text": lambda s: s.X.astype(str),
    "bytes inside": lambda s: s.X.astype("S"),
    "numbers as text": lambda s: with_entry(s.X, "1.0"),
    "dates": lambda s: np.full((s.n, s.d), np.datetime64("2020-01-01")),
    "times": lambda s: np.full((s.n, s.d), np.timedelta64(3, "s")),
    "complex": lambda s: s.X + 1j,
    "complex objects": lambda s: with_entry(s.X, 1j),
    "None inside": lambda s: with_entry(s.X, None),
    "NA inside": lambda s: with_entry(s.X, pd.NA),
    "NaT inside": lambda s: with_entry(s.X, pd.NaT),
    "a date inside": lambda s: with_entry(s.X, datetime.date(2020, 1, 1)),
    "an array inside": lambda s: with_entry(s.X, np.ones(2)),
    "huge integer": lambda s: with_entry(s.X, 10**400),
    "beyond float64": lambda s: s.X.astype(np.longdouble) * np.longdouble("1e400"),
    "1e300": lambda s: s.X * 1e300,
    "signalling NaN": signalling,
    "masked": lambda s: np.ma.masked_array(s.X, mask=s.X[0, 0] == s.X),
    "frame with text": lambda s: pd.DataFrame(s.X).assign(name="a"),
    "frame with dates": lambda s: pd.DataFrame(s.X).assign(day=pd.Timestamp("2020-01-01")),
    "frame with NA": lambda s: with_null(nullable(s)),
    "frame with text classes": lambda s: pd.DataFrame(s.X).assign(c=pd.Categorical(["a"] * s.n)),
    "polars with null": lambda s: pl.DataFrame(s.X).with_columns(more=None),
    "polars with text": lambda s: pl.DataFrame(s.X).with_columns(more=pl.lit("a")),
    "series": lambda s: pd.Series(s.X[:, 0]),
    "complex tensor": lambda s: torch.tensor(s.X) * 1j,
    "sparse tensor": lambda s: torch.tensor(s.X).to_sparse(),
    "meta tensor": lambda s: torch.tensor(s.X).to("meta"),
    "sparse NaN": lambda s: sparse.csr_array(s.with_column(np.nan)),
    "sparse complex": lambda s: sparse.csr_array(s.X + 1j),
    "sparse 1-D": lambda s: sparse.coo_array(s.X[0]),
    "sparse empty": lambda s: sparse.csr_array((s.n, 0)),
    "column out of range": lambda s: damaged(sparse.csr_array(s.X), "indices", 0, s.d + 7),
    "negative column": lambda s: damaged(sparse.csr_array(s.X), "indices", 0, -2),
    "row out of range": lambda s: damaged(sparse.csc_array(s.X), "indices", 0, s.n + 10**6),
    "block out of range": lambda s: damaged(sparse.bsr_array(s.X), "indices", 0, 10**6),
    "coo out of range": lambda s: damaged_coo(s, s.n + 10**6),
    "coo negative": lambda s: damaged_coo(s, -3),
    "pointers that fall": lambda s: damaged(sparse.csr_array(s.X), "indptr", 1, 10**6),
    "a path to nothing": lambda s: "no-such-features.npy",
    "a path too long": lambda s: f"features-{'a' * 300}.npy",
    "path without a kind": lambda s: "features",
    "design": lambda s: dmsgd.Uniform(s.n, 2),
    "kernel": lambda s: s.kernel,
}  # fmt: skip

FEATURES_ODD = {
    "zeros": lambda s: np.zeros((s.n, s.d)),
    "one row of zeros": lambda s: s.X * (np.arange(s.n) > 0)[:, None],
    "equal rows": lambda s: np.repeat(s.X[:1], s.n, axis=0),
    "one column": lambda s: s.X[:, :1],
    "one row": lambda s: s.X[:1],
    "two rows": lambda s: s.X[:2],
    "wide": lambda s: np.tile(s.X, 3) + np.arange(3 * s.d),
    "booleans": lambda s: s.X > 0,
    "int8": lambda s: (8 * s.X).astype(np.int8),
    "uint64": lambda s: s.counts.astype(np.uint64) * 2**57,
    "1e150": lambda s: s.X * 1e150,
    "1e-120": lambda s: s.X * 1e-120,
    "1e-170": lambda s: s.X * 1e-170,
    "1e-320": lambda s: s.X * 1e-320,
    "one row of 1e-320": lambda s: s.X * np.where(np.arange(s.n) > 0, 1.0, 1e-320)[:, None],
    "one row of 1e150": lambda s: s.X * np.where(np.arange(s.n) > 0, 1.0, 1e150)[:, None],
    "rows from 1e-100 to 1e100": lambda s: s.X * np.geomspace(1e-100, 1e100, s.n)[:, None],
    "columns from 1e-9 to 1": lambda s: s.X * np.geomspace(1e-9, 1, s.d),
    "columns from 1e-15 to 1": lambda s: s.X * np.geomspace(1e-15, 1, s.d),
    "columns equal to 1e-9": lambda s: near_deficient(s, 1e-9),
    "columns equal to 1e-15": lambda s: near_deficient(s, 1e-15),
    "rows equal to 1e-9": lambda s: near_deficient(Size(s.d, s.n, s.k, s.seed), 1e-9).T,
    "rank 2 to 1e-9": lambda s: low_rank(s, 1e-9),
    "rank 2 to 1e-15": lambda s: low_rank(s, 1e-15),
    "sparse zeros": lambda s: sparse.csr_array((s.n, s.d)),
    "stored zeros": lambda s: damaged(sparse.csr_array(s.X), "data", slice(0, s.d), 0.0),
    "one entry a row": lambda s: sparse.csr_array(s.X * (np.arange(s.d) == s.y[:, None])),
    "tensor of float8": lambda s: torch.tensor(s.X).to(torch.float8_e5m2),
    "integer tensor": lambda s: torch.tensor(s.counts),
}  # fmt: skip

LABELS_GOOD = {
    "integers": lambda s: s.y,
    "uint8": lambda s: s.y.astype(np.uint8),
    "whole floats": lambda s: s.y.astype(float),
    "other byte order": lambda s: s.y.astype(">i4"),
    "strided": lambda s: np.repeat(s.y, 2)[::2],
    "list": lambda s: s.y.tolist(),
    "tuple": lambda s: tuple(s.y.tolist()),
    "text": lambda s: s.y.astype(str),
    "list of text": lambda s: s.y.astype(str).tolist(),
    "objects": lambda s: s.y.astype(str).astype(object),
    "bytes": lambda s: s.y.astype("S"),
    "ints and floats": lambda s: with_entry(s.y, float(s.y[0])),
    "dates": lambda s: np.datetime64("2020-01-01") + s.y,
    "masked nowhere": lambda s: np.ma.masked_array(s.y, mask=False),
    "series": lambda s: pd.Series(s.y),
    "nullable": lambda s: pd.Series(s.y, dtype="Int64"),
    "strings": lambda s: pd.Series(s.y.astype(str), dtype="string"),
    "categorical": lambda s: pd.Series(s.y, dtype="category"),
    "bins": lambda s: pd.cut(pd.Series(s.y), 3),
    "polars": lambda s: pl.Series(s.y),
    "Arrow": lambda s: pa.array(s.y.astype(str)),
    "Arrow dictionary": lambda s: pa.chunked_array([pa.array(s.y).dictionary_encode()]),
    "polars text": lambda s: pl.Series(s.y.astype(str).tolist(), dtype=pl.Categorical),
    "tensor": lambda s: torch.tensor(s.y),
    "column": lambda s: s.y[:, None],
    "frame": lambda s: pd.DataFrame({"y": s.y}),
}  # fmt: skip

LABELS_BAD = {
    **nothing_like_it_but("None"),
    "text alone": lambda s: "abcdefgh"[: s.n],
    "empty": lambda s: [],
    "2-D": lambda s: np.column_stack([s.y, s.y]),
    "0-D": lambda s: np.array(1),
    "lists": lambda s: [[label] for label in s.y.tolist()],
    "frame": lambda s: pd.DataFrame({"y": s.y, "z": s.y}),
    "sparse": lambda s: sparse.csr_array(s.y[None]),
    "too short": lambda s: s.y[:-1],
    "too long": lambda s: np.r_[s.y, 0],
    "NaN": lambda s: s.with_second(np.nan, s.y),
    "infinite": lambda s: s.with_second(np.inf, s.y),
    "infinite in a list": lambda s: [float("-inf"), *s.y[1:].tolist()],
    "infinite in a series": lambda s: pd.Series(s.with_second(np.inf, s.y)),
    "infinite decimal": lambda s: [Decimal("Infinity"), *s.y[1:].tolist()],
    "infinite among objects": lambda s: with_entry(s.y, np.float32(np.inf)),
    "None inside": lambda s: [None, *s.y[1:].tolist()],
    "None beside text": lambda s: [None, *s.y[1:].astype(str).tolist()],
    "NaN beside text": lambda s: [float("nan"), *s.y[1:].astype(str).tolist()],
    "NaN as text": lambda s: s.with_second(np.nan, s.y).astype(str),
    "NA": lambda s: pd.Series([pd.NA, *s.y[1:].tolist()], dtype="Int64"),
    "NA beside text": lambda s: pd.Series([pd.NA, *s.y[1:].astype(str)], dtype="string"),
    "NA among objects": lambda s: with_entry(s.y, pd.NA),
    "NaT": lambda s: np.array(["NaT", *["2020-01-01"] * (s.n - 1)], dtype="datetime64[D]"),
    "NaT in a series": lambda s: pd.Series([pd.NaT, *[pd.Timestamp("2020-01-01")] * (s.n - 1)]),
    "missing category": lambda s: pd.Series([None, *s.y[1:].astype(str)], dtype="category"),
    "Arrow null": lambda s: pa.array([None, *s.y[1:].tolist()]),
    "polars null": lambda s: pl.Series([None, *s.y[1:].tolist()]),
    "masked": lambda s: np.ma.masked_array(s.y, mask=np.arange(s.n) == 1),
    "1 and '1'": lambda s: ["1", *[1] * (s.n - 1)],
    "1 and '1' as objects": lambda s: with_entry(np.ones(s.n, int), "1"),
    "b'1' and '1'": lambda s: [b"1", *["1"] * (s.n - 1)],
    "True and 'a'": lambda s: [True, *["a"] * (s.n - 1)],
    "complex": lambda s: s.y * 1j,
    "complex inside": lambda s: with_entry(s.y, 1j),
    "unordered": lambda s: [Colour.RED, *[Colour.BLUE] * (s.n - 1)],
    "meta tensor": lambda s: torch.tensor(s.y).to("meta"),
}  # fmt: skip

LABELS_ODD = {
    "one class": lambda s: np.zeros(s.n, int),
    "each its own": lambda s: np.arange(s.n),
    "booleans": lambda s: s.y > 0,
    "fractions": lambda s: s.y + 0.5,
    "range": lambda s: range(s.n),
    "timestamps": lambda s: [pd.Timestamp("2020-01-01")] * s.n,
    "surrogates": lambda s: ["\ud800"] * s.n,
    "negative": lambda s: -s.y,
}  # fmt: skip

COUNT_BAD = {
    "zero": lambda s: 0,
    "-1": lambda s: -1,
    "2.0": lambda s: 2.0,
    "2.5": lambda s: 2.5,
    "NaN": lambda s: float("nan"),
    "np.float64": lambda s: np.float64(2),
    "True": lambda s: True,
    "np.True_": lambda s: np.True_,
    "text": lambda s: "2",
    "list": lambda s: [2],
    "array": lambda s: np.array([2]),
    "complex": lambda s: 2j,
    "fraction": lambda s: Fraction(2),
    "decimal": lambda s: Decimal(2),
    "object": lambda s: object(),
    "beyond 64 bits": lambda s: 10**30,
    "far below": lambda s: -(10**30),
}  # fmt: skip

COUNT_GOOD = {
    "2": lambda s: 2,
    "np.int8": lambda s: np.int8(2),
    "np.uint64": lambda s: np.uint64(2),
}

REAL_BAD = {
    "NaN": lambda s: float("nan"),
    "infinite": lambda s: float("inf"),
    "-1.5": lambda s: -1.5,
    "True": lambda s: True,
    "text": lambda s: "0.5",
    "list": lambda s: [0.5],
    "array": lambda s: np.array([0.5]),
    "complex": lambda s: 0.5j,
    "object": lambda s: object(),
    "beyond float64": lambda s: 10**400,
    "far below": lambda s: -(10**400),
}  # fmt: skip

SEED_GOOD = {
    "0": lambda s: 0,
    "np.int32": lambda s: np.int32(5),
    "SeedSequence": lambda s: np.random.SeedSequence(5),
    "Generator": lambda s: np.random.default_rng(5),
    "RandomState": lambda s: np.random.RandomState(5),
    "large": lambda s: 10**40,
    "None": lambda s: None,
}  # fmt: skip

SEED_BAD = {
    "-1": lambda s: -1,
    "1.5": lambda s: 1.5,
    "True": lambda s: True,
    "text": lambda s: "seed",
    "list": lambda s: [1, 2],
    "object": lambda s: object(),
    "np.random": lambda s: np.random,
    "torch's": lambda s: torch.Generator(),
}

ITEMS_GOOD = {
    "one": lambda s: [0],
    "two": lambda s: [1, 0],
    "array": lambda s: np.arange(s.n),
    "uint8": lambda s: np.array([1, 2], np.uint8),
    "series": lambda s: pd.Series([0, 2]),
    "tensor": lambda s: torch.tensor([0, 2]),
    "objects": lambda s: np.array([0, 2], dtype=object),
    "range": lambda s: range(2),
}  # fmt: skip

ITEMS_BAD = {
    **nothing_like_it_but("structured"),
    "negative": lambda s: [-1],
    "out of range": lambda s: [s.n],
    "floats": lambda s: [0.0, 1.0],
    "booleans": lambda s: np.ones(s.n, bool),
    "text": lambda s: ["0"],
    "ragged": lambda s: [[0], [0, 1]],
    "masked": lambda s: np.ma.masked_array([0, 1], mask=[True, False]),
    "sparse": lambda s: sparse.csr_array([[0, 1]]),
    "beyond 64 bits": lambda s: [10**30],
    "far beyond": lambda s: np.array([2**64 - 1], np.uint64),
    "None inside": lambda s: [0, None],
    "float inside": lambda s: with_entry([0, 1], 0.5),
    "bool inside": lambda s: with_entry([0, 1], True),
}  # fmt: skip

NUMBERS_GOOD = {
    "array": lambda s: s.weights,
    "list": lambda s: s.weights.tolist(),
    "integers": lambda s: np.full(s.n, 3),
    "float32": lambda s: s.weights.astype(np.float32),
    "longdouble": lambda s: s.weights.astype(np.longdouble),
    "other byte order": lambda s: s.weights.astype(">f8"),
    "objects": lambda s: s.weights.astype(object),
    "series": lambda s: pd.Series(s.weights, dtype="Float64"),
    "polars": lambda s: pl.Series(s.weights),
    "tensor": lambda s: torch.linspace(1.0, 1.4, s.n, requires_grad=True),
}  # fmt: skip

NUMBERS_BAD = {
    **nothing_like_it_but("None"),
    "text": lambda s: ["1.0"] * s.n,
    "word": lambda s: "uniformly",
    "dates": lambda s: np.full(s.n, np.datetime64("2020-01-01")),
    "times": lambda s: np.full(s.n, np.timedelta64(1, "s")),
    "complex": lambda s: np.ones(s.n) + 1j,
    "booleans": lambda s: np.ones(s.n, bool),
    "booleans as objects": lambda s: np.ones(s.n, bool).astype(object),
    "2-D": lambda s: np.ones((s.n, 1)),
    "empty": lambda s: [],
    "too short": lambda s: np.ones(s.n - 1),
    "too long": lambda s: np.ones(s.n + 1),
    "NaN": lambda s: s.with_second(np.nan, 1.0),
    "infinite": lambda s: s.with_second(np.inf, 1.0),
    "None inside": lambda s: [None, *[1.0] * (s.n - 1)],
    "NA": lambda s: pd.Series([pd.NA, *[1.0] * (s.n - 1)], dtype="Float64"),
    "masked": lambda s: np.ma.masked_array(np.ones(s.n), mask=np.arange(s.n) == 1),
    "sparse": lambda s: sparse.csr_array(np.ones((1, s.n))),
    "beyond float64": lambda s: [10**400] * s.n,
    "longer than float64": lambda s: np.full(s.n, np.longdouble("1e400")),
}  # fmt: skip

WEIGHTS_BAD = {
    **NUMBERS_BAD,
    "negative": lambda s: s.with_second(-1.0, 1.0),
    "all zero": lambda s: np.zeros(s.n),
}
WEIGHTS_ODD = {
    "1e300": lambda s: s.weights * 1e300,
    "1e-300": lambda s: s.weights * 1e-300,
    "1e-320": lambda s: s.weights * 1e-320,
    "one large": lambda s: s.with_second(1e6, 1.0),
    "one of 1e300": lambda s: s.with_second(1e300, 1.0),
    "one zero": lambda s: s.with_second(0.0, 1.0),
    "one of 1e-310": lambda s: s.with_second(1e-310, 1.0),
    "one of 5e-324": lambda s: s.with_second(5e-324, 1.0),
    "1e308": lambda s: np.full(s.n, 1e308),
    "from 1e-320 to 1e300": lambda s: np.geomspace(1e-320, 1e300, s.n),
}

FLAG_BAD = {
    "text": lambda s: "no",
    "empty text": lambda s: "",
    "'False'": lambda s: "False",
    "bytes": lambda s: b"no",
    "None": lambda s: None,
    "0": lambda s: 0,
    "1": lambda s: 1,
    "2": lambda s: 2,
    "1.0": lambda s: 1.0,
    "NaN": lambda s: float("nan"),
    "np.int64": lambda s: np.int64(1),
    "list": lambda s: [],
    "list of a flag": lambda s: [True],
    "0-D array": lambda s: np.array(True),
    "array": lambda s: np.ones(3, bool),
    "tensor": lambda s: torch.tensor(True),
    "class": lambda s: bool,
    "object": lambda s: object(),
}  # fmt: skip

DESIGN_GOOD = {
    "KDPP": lambda s: s.design,
    "KDPP (given)": lambda s: s.design.given([0]),
    "Uniform": lambda s: dmsgd.Uniform(s.n, s.k),
    "Stratified": lambda s: dmsgd.Stratified(s.y, s.k),
    "Weighted": lambda s: dmsgd.Weighted(weights=s.weights, k=s.k),
}

#: Draw batches of a fixed size, without closed forms for pairs, or at all.
DESIGN_ODD = {
    "Partition": lambda s: dmsgd.Partition(dmsgd.Uniform(s.n, s.k)),
    "OnePerGroup": lambda s: dmsgd.designs.OnePerGroup(np.arange(s.n), s.k),
    "SwapChain": lambda s: dmsgd.designs.SwapChain(s.kernel, s.k),
    "Schedule": lambda s: dmsgd.presample(s.design, 5),
    "DPP": lambda s: dmsgd.DPP(s.spectrum),
}

DESIGN_BAD = {
    **NOTHING_LIKE_IT,
    "text": lambda s: "uniform",
    "features": lambda s: s.X,
    "kernel": lambda s: s.kernel,
    "class of another": lambda s: dmsgd.Uniform,
    "torch's": lambda s: torch.nn.Linear(2, 2),
}

KERNEL_GOOD = {
    "Linear": lambda s: s.kernel,
    "RBF": lambda s: dmsgd.kernels.RBF(s.X),
    "sparse": lambda s: dmsgd.kernels.Linear(sparse.csr_array(s.X)),
}

KERNEL_ODD = {
    "Precomputed": lambda s: dmsgd.kernels.Precomputed(s.X @ s.X.T),
    "strata": lambda s: dmsgd.kernels.Linear(dmsgd.features.one_hot(s.y)),
    "identity": lambda s: dmsgd.kernels.Linear(np.eye(s.n)),
    "RBF of a large scale": lambda s: dmsgd.kernels.RBF(s.X, 1e150),
    "RBF of a small scale": lambda s: dmsgd.kernels.RBF(s.X, 1e-150),
    "near-deficient": lambda s: dmsgd.kernels.Linear(near_deficient(s, 1e-9)),
    "rank 2 to 1e-9": lambda s: dmsgd.kernels.Linear(low_rank(s, 1e-9)),
    "near-deficient matrix": lambda s: dmsgd.kernels.Precomputed(
        (lambda F: F @ F.T)(near_deficient(s, 1e-5))
    ),
    "RBF of near copies": lambda s: dmsgd.kernels.RBF(np.vstack([s.X[:1] + 1e-9, s.X[:-1]])),
    "diagonal": lambda s: dmsgd.kernels.Linear(
        sparse.diags_array(np.geomspace(1e-160, 1e150, s.n))
    ),
}

KERNEL_BAD = {
    **NOTHING_LIKE_IT,
    "features": lambda s: s.X,
    "name": lambda s: "rbf",
    "class Linear": lambda s: dmsgd.kernels.Linear,
    "design": lambda s: dmsgd.Uniform(s.n, s.k),
}

SPECTRUM_GOOD = {
    "exact": lambda s: s.spectrum,
    "of RBF": lambda s: dmsgd.kernels.exact(dmsgd.kernels.RBF(s.X)),
    "nystrom": lambda s: dmsgd.kernels.nystrom(s.kernel, 3),
    "by hand": lambda s: dmsgd.spectra.Spectrum([2.0, 1.0, 0.5], np.eye(s.n)[:, :3]),
}

#: Near the ends of the float range, and of near-deficient matrices.
SPECTRUM_ODD = {
    "far apart": by_hand(3.8e111, 1.0, 2e-9),
    "from end to end": by_hand(1e307, 1.0, 1e-290),
    "the largest": by_hand(1e307, 5e306, 1e306),
    "the smallest": by_hand(4e-290, 2e-290, 1e-290),
    "nearly equal": by_hand(1.0 + 1e-15, 1.0, 1.0 - 1e-15),
    "near-deficient": lambda s: dmsgd.kernels.exact(dmsgd.kernels.Linear(near_deficient(s, 1e-9))),
    "near-deficient matrix": lambda s: dmsgd.kernels.exact(KERNEL_ODD["near-deficient matrix"](s)),
}

#: k-DPPs of these.
DESIGN_EDGE = {
    f"KDPP ({name})": lambda s, make=make: dmsgd.KDPP(make(s), s.k)
    for name, make in SPECTRUM_ODD.items()
}

PATH_BAD = {
    **nothing_like_it_but("bytes"),
    "empty": lambda s: "",
    "too long": lambda s: "a" * 300,
    "too long in all": lambda s: "a/" * 3000 + "a",
    "null": lambda s: "a\0",
}

SPECTRUM_BAD = {
    **NOTHING_LIKE_IT,
    "features": lambda s: s.X,
    "kernel": lambda s: s.kernel,
    "class Spectrum": lambda s: dmsgd.spectra.Spectrum,
}
