"""Bad input gets one message that says what was given and what to do; any good input works."""

import ast
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

import dmsgd
from dmsgd import designs, diagnostics, features, kernels

X = np.random.default_rng(0).normal(size=(12, 5))
Y = np.arange(12) % 3
HOLE = X.copy()
HOLE[3, 1] = np.nan
INFINITE = sparse.csr_array(np.where(X > 1, np.inf, 0.0))
SKEW = np.array([[1.0, 0.5], [0.0, 1.0]])


class DataSet:
    """As torch's: it answers to every index, so that reading all of it would not end."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return X[index % 12], Y[index % 12]


BAD = {
    "data set": (lambda: dmsgd.diversify(DataSet(), 3), TypeError, "X is a DataSet"),
    "data set as labels": (lambda: dmsgd.Stratified(DataSet(), 3), TypeError, "torch.labels"),
    "NaN": (lambda: dmsgd.diversify(HOLE, 3), ValueError, r"1 NaN or infinite.*\(3, 1\).*impute"),
    "kernel": (lambda: dmsgd.diversify(kernels.Linear(X), 3), TypeError, "X is a Linear"),
    "inf, sparse": (lambda: dmsgd.diversify(INFINITE, 3), ValueError, "NaN or infinite"),
    "overflow": (lambda: dmsgd.diversify(X * 1e200, 3), ValueError, "squares overflow; rescale"),
    "k = 0": (lambda: dmsgd.diversify(X, 0), ValueError, "k must be at least 1, got 0"),
    "k > n": (lambda: dmsgd.diversify(X, 13), ValueError, "k=13 exceeds the number of items, 12"),
    "k > rank": (lambda: dmsgd.diversify(X, 6, kernel="linear"), dmsgd.RankError, "have 5 "),
    "k a float": (lambda: dmsgd.diversify(X, 2.0), TypeError, "k must be an integer, got 2.0"),
    "k a bool": (lambda: dmsgd.Uniform(5, True), TypeError, "k must be an integer, got True"),
    "w > 1": (lambda: dmsgd.diversify(X, 3, Y, w=1.5), ValueError, r"w must lie in \[0, 1\].*1.5"),
    "w < 0": (lambda: features.concat(X, Y, -0.1), ValueError, r"w must lie in \[0, 1\]"),
    "w NaN": (lambda: features.concat(X, Y, float("nan")), ValueError, r"w must lie in \[0, 1\]"),
    "w text": (lambda: features.concat(X, Y, "0.5"), TypeError, "w must be a number"),
    "labels too short": (
        lambda: dmsgd.diversify(X, 3, labels=Y[:5], w=0.5), ValueError, "5 entries for 12 items"),
    "labels 2-D": (
        lambda: dmsgd.diversify(X, 3, labels=X[:, :2], w=0.5), ValueError, "1-D.*(12, 2)"),
    "labels missing": (
        lambda: dmsgd.Stratified([0.0, np.nan, 1.0], 2), ValueError, "1 missing entry"),
    "labels None inside": (
        lambda: dmsgd.Stratified(["a", None, "b"], 2), ValueError, "1 missing entry"),
    "labels empty": (lambda: dmsgd.Stratified([], 1), ValueError, "labels is empty"),
    "labels sparse": (
        lambda: features.one_hot(sparse.csr_array([[1.0], [2.0]])), TypeError, "sparse matrix"),
    "labels nested": (lambda: features.one_hot([[1, 2], [3, 4]]), TypeError, "list objects"),
    "labels without an order": (
        lambda: features.one_hot([object(), object()]), TypeError, "object objects.*no order"),
    "an empty path": (lambda: dmsgd.diversify("", 3), ValueError, "X is an empty path"),
    "w without labels": (
        lambda: dmsgd.diversify(X, 3, w=0.5), ValueError, "labels is None; pass labels= or w=0"),
    "1-D X": (lambda: dmsgd.diversify(X[0], 3), ValueError, r"two dimensions.*\(5,\).*reshape"),
    "3-D X": (lambda: dmsgd.diversify(X[None], 3), ValueError, "two dimensions"),
    "empty X": (lambda: dmsgd.diversify(X[:0], 3), ValueError, r"empty: shape \(0, 5\)"),
    "no columns": (lambda: dmsgd.diversify(X[:, :0], 3), ValueError, "empty"),
    "X None": (lambda: dmsgd.diversify(None, 3), TypeError, "X is None"),
    "text": (lambda: dmsgd.diversify(np.array([["a", "b"]]), 1), TypeError, "holds text"),
    "text objects": (
        lambda: dmsgd.diversify(np.array([["a", 1]], dtype=object), 1), TypeError, "holds text"),
    "complex": (lambda: dmsgd.diversify(X * 1j, 3), TypeError, "real numbers, got dtype complex"),
    "ragged": (lambda: dmsgd.diversify([[1.0], [1.0, 2.0]], 1), ValueError, "not a rectangular"),
    "asymmetric": (
        lambda: kernels.Precomputed(SKEW), ValueError, "not symmetric.*0.5.*not supported"),
    "indefinite": (
        lambda: kernels.Precomputed([[1.0, 2.0], [2.0, 1.0]]), ValueError, "negative eigenvalue"),
    "not square": (lambda: kernels.Precomputed(X), ValueError, r"square, got shape \(12, 5\)"),
    "zero matrix": (lambda: kernels.Precomputed(np.zeros((3, 3))), ValueError, "all zeros"),
    "zero features": (
        lambda: dmsgd.diversify(np.zeros((4, 2)), 1, kernel="linear"), ValueError, "all features"),
    "only zero items": (
        lambda: dmsgd.diversify(np.zeros((4, 2)), 2), dmsgd.RankError, "1 distinct item;"),
    "equal items, rbf": (
        lambda: dmsgd.diversify(np.ones((4, 2)), 2, kernel="rbf"), dmsgd.RankError, "1 distinct"),
    "negative size": (
        lambda: dmsgd.Uniform(5, 2).sample(-1), ValueError, "size must be at least 0, got -1"),
    "size a float": (lambda: dmsgd.Uniform(5, 2).sample(2.5), TypeError, "size must be an integer"),
    "seed text": (lambda: dmsgd.Uniform(5, 2).sample(1, seed="x"), TypeError, "seed must be None"),
    "seed float": (lambda: dmsgd.Uniform(5, 2).sample(1, seed=1.5), TypeError, "seed must be None"),
    "seed negative": (lambda: dmsgd.Uniform(5, 2).sample(1, seed=-1), ValueError, "negative"),
    "random_state": (
        lambda: dmsgd.Uniform(5, 2).sample(1, random_state=0), TypeError, "random_state"),
    "random_state of a DPP": (
        lambda: dmsgd.DPP(np.eye(3)).sample(random_state=0), TypeError, "random_state"),
    "no size": (lambda: dmsgd.KDPP(np.eye(3), 2).sample(seed=0), TypeError, "size"),
    "no size of a DPP": (lambda: dmsgd.DPP(np.eye(3)).sample(), TypeError, "size"),
    "no workers": (lambda: dmsgd.Uniform(5, 2).sample(1, workers=0), ValueError, "workers"),
    "workers a float": (
        lambda: dmsgd.Uniform(5, 2).sample(1, workers=-1.0), TypeError, "workers must be an int"),
    "workers an array": (
        lambda: dmsgd.Uniform(5, 2).sample(1, workers=np.array([1, 2])), TypeError, "workers"),
    "draws too far": (
        lambda: dmsgd.DPP(kernels.Linear(X)).sample(2, start=2**63 - 1),
        ValueError, "numbered below"),
    "unknown kernel": (
        lambda: dmsgd.diversify(X, 3, kernel="poly"), ValueError, "poly"),
    "scale of linear": (lambda: dmsgd.diversify(X, 3, scale=1.0), ValueError, "kernel='rbf'"),
    "scale zero": (lambda: kernels.RBF(X, 0.0), ValueError, "scale must be positive"),
    "kernel of one's own": (
        lambda: dmsgd.diversify(X, 3, kernel=kernels.Linear(X)), TypeError, "unknown kernel"),
    "rank of an exact spectrum": (
        lambda: dmsgd.diversify(X, 3, spectrum="exact", rank=5), ValueError, "rank belongs"),
    "rho zero": (lambda: features.anneal(np.abs(X), 0), ValueError, "rho must be positive"),
    "rho of negatives": (lambda: features.anneal(X, 0.5), ValueError, "negative entries.*shift"),
    "no kernel": (lambda: dmsgd.KDPP(X, 3), ValueError, "square"),
    "no matrix": (lambda: dmsgd.KDPP("rbf", 3), TypeError, "array or a Kernel"),
    "DPP of no kernel": (lambda: dmsgd.DPP(X), ValueError, "square"),
    "too many clusters": (lambda: designs.clustered(X, 3, clusters=13), ValueError, "clusters=13"),
    "cuda-like tensor": (
        lambda: dmsgd.diversify(torch.empty(3, 2, device="meta"), 1), TypeError, "Tensor .*meta"),
    "sparse tensor": (
        lambda: dmsgd.diversify(torch.eye(3).to_sparse(), 1), TypeError, "to_dense"),
    "no array": (lambda: dmsgd.diversify({1: 2}, 1), TypeError, "X is a dict; pass an"),
    "missing objects": (
        lambda: dmsgd.diversify(np.array([[1, pd.NA]], dtype=object), 1), ValueError,
        "X has 1 missing entry"),
    "beyond float64": (lambda: dmsgd.diversify([[10**400]], 1), ValueError, "beyond 1e308"),
    "flag": (lambda: dmsgd.diversify(X, 3, normalize="no"), TypeError, "normalize must be True or"),
    "kernel no name": (lambda: dmsgd.diversify(X, 3, kernel=X), TypeError, "unknown kernel"),
    "unknown spectrum": (
        lambda: dmsgd.diversify(X, 3, spectrum=kernels.exact), TypeError, "unknown spectrum"),
    "sampler no function": (
        lambda: dmsgd.KDPP(kernels.Linear(X), 3, None), TypeError, "sampler must be"),
    "kernel no kernel": (
        lambda: kernels.nystrom(X, 3), TypeError, "nystrom needs a kernel, got ndarray.*Linear"),
    "items 2-D": (
        lambda: kernels.Linear(X).block([[0]], [1]), ValueError, r"I must be a 1-D.*\(1, 1\)"),
    "items as objects": (
        lambda: kernels.Linear(X).columns([10**30]), TypeError, "J must hold item numbers"),
    "items that do not fit": (
        lambda: dmsgd.Uniform(5, 2).joint([0, 1], [0, 1, 2]), ValueError, r"\(2,\) and \(3,\)"),
    "start beyond 64 bits": (
        lambda: dmsgd.Uniform(5, 2).sample(1, start=10**30), ValueError, "start must be below"),
    "scale beyond float64": (
        lambda: kernels.RBF(X, 10**400), ValueError, "scale must be positive and finite"),
    "tol of all": (lambda: kernels.exact(kernels.Linear(X), tol=1), ValueError, "tol must be"),
    "power beyond": (lambda: features.anneal(abs(X) + 2, 1e300), ValueError, "rho=1e.300"),
    "target text": (
        lambda: dmsgd.diversify(X, 3, target=["1"] * 12), TypeError, "target holds text"),
    "target complex": (
        lambda: dmsgd.diversify(X, 3, target=np.ones(12) + 1j), TypeError, "target must hold real"),
    "target dates": (
        lambda: dmsgd.diversify(X, 3, target=np.full(12, np.datetime64("2020"))), TypeError,
        "target must hold real numbers, got dtype datetime64"),
    "weights booleans": (
        lambda: dmsgd.Weighted(weights=X[:, 0] > 0, k=1), TypeError, "weights holds booleans"),
    "weights masked": (
        lambda: dmsgd.Weighted(weights=np.ma.masked_less(X[:, 0], 0), k=1), ValueError, "masked"),
    "no design": (
        lambda: dmsgd.unbiased_weights(None), TypeError, "design must be .* got NoneType"),
    "a class": (
        lambda: dmsgd.unbiased_weights(dmsgd.Uniform), TypeError, "got the class Uniform"),
    "no closed form": (
        lambda: dmsgd.unbiased_weights(designs.SwapChain(kernels.Linear(X), 2)), TypeError,
        "SwapChain has no closed form.*np.bincount"),
    "settings": (lambda: designs.DesignOptions(w="0.5"), TypeError, "w must be a number"),
    "gradients too large": (
        lambda: diagnostics.gradient_variance(dmsgd.Uniform(12, 2), X * 1e150), ValueError,
        "gradients.*rescale"),
    "code for no k": (lambda: designs.DesignOptions().code("3"), TypeError, "k must"),
    "a kernel for X": (lambda: kernels.RBF(kernels.Linear(X)), TypeError, "X is a Linear"),
    "a column of a kernel": (
        lambda: dmsgd.diversify(kernels.Linear(X), 3, labels="c"), TypeError, "X is a Linear"),
    "weights of what is hardly ever drawn": (
        lambda: dmsgd.unbiased_weights(dmsgd.Weighted(weights=[1e-310, 1, 2, 1], k=2)), ValueError,
        "item 0"),
    "sampler of one argument": (
        lambda: dmsgd.KDPP(kernels.Linear(X), 3, len), TypeError, "sampler"),
    "sampler of no function": (
        lambda: dmsgd.KDPP(kernels.Linear(X), 3, 3), TypeError, "sampler"),
    "sampler that returns nothing": (
        lambda: dmsgd.KDPP(kernels.Linear(X), 3, lambda spectrum, k: None).sample(1),
        TypeError, "sampler"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("form", [list, np.array, torch.tensor, pd.Series, pl.Series])
def test_a_vector_is_no_probabilities(form):
    with pytest.raises(ValueError, match=r"\(items, classes\).* one column for each") as raised:
        dmsgd.uncertainty(form([0.5, 0.2]))
    assert "reshape" not in str(raised.value)
    rows = [[0.5, 0.5], [1.0, 0.0]]
    assert dmsgd.uncertainty(pd.Series(rows)).tolist() == [
        1.0,
        0.0,
    ]  # rows in a column are a matrix


def damaged(kind, place):
    """Return a sparse matrix with an index that is out of range."""
    matrix = kind(np.eye(3))
    matrix.indices[0] = place
    return matrix


def damaged_coo(place):
    matrix = sparse.coo_array(np.eye(3))
    matrix.coords[0][0] = place
    return matrix


@pytest.mark.parametrize("place", [-1, 3, 10**6])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.bsr_array])
def test_damaged_sparse_matrices_are_refused(kind, place):
    """SciPy follows such indices out of the matrix, and out of the memory of the process."""
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        features.normalize(damaged(kind, place))
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        features.normalize(damaged_coo(place))


def test_entries_stored_in_parts_are_one_number():
    halves = sparse.coo_array(([2.0, 2.0, 1.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    parts = sparse.csr_array(([2.0, 2.0, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    for given in (halves, parts):
        np.testing.assert_array_equal(features.anneal(given, 0.5).toarray(), [[2, 0], [0, 1]])
    assert parts.nnz == 3  # what was given is left as it was


@pytest.mark.parametrize(
    "labels",
    [
        [1.0, float("nan")],
        ["a", float("nan")],
        ["a", None],
        [1, None],
        np.array(["a", pd.NA], dtype=object),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", None], dtype="string"),
        pd.Series(["a", None], dtype="category"),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        pd.Series([pd.Timestamp("2020"), pd.NaT]),
        np.array([1.0, np.nan]).astype(str),
        ["a", "<NA>"],
        pl.Series([1, None]),
        pl.Series(["a", None]),
    ],
    ids=repr,
)
def test_missing_labels_are_no_class(labels):
    with pytest.raises(ValueError, match="labels has 1 missing entry"):
        dmsgd.Stratified(labels, 1)


TAKES_LABELS = {
    "diversify": lambda y: dmsgd.diversify(X, 2, y, 0.5),
    "Stratified": lambda y: dmsgd.Stratified(y, 2),
    "Partition": lambda y: dmsgd.Partition(dmsgd.Stratified(y, 2)),
    "concat": lambda y: features.concat(X, y, 0.5),
    "concat, w = 0": lambda y: features.concat(X, y, 0.0),
    "one_hot": features.one_hot,
    "Linear": lambda y: kernels.Linear(features.one_hot(y)),
    "class_shares": lambda y: diagnostics.class_shares(dmsgd.Uniform(12, 2), y),
    "inspect": lambda y: diagnostics.inspect(X, 2, y),
}


@pytest.mark.parametrize("name", TAKES_LABELS)
@pytest.mark.parametrize(
    "labels",
    [
        [float("-inf"), *Y[1:].tolist()],
        np.where(Y == 0, np.inf, Y),
        np.where(Y == 0, np.inf, Y).astype(np.float16),
        pd.Series(np.where(Y == 0, np.inf, Y)),
        [Decimal("Infinity"), *map(Decimal, Y[1:].tolist())],
    ],
    ids=["list", "array", "float16", "series", "decimals"],
)
def test_infinite_labels_are_no_class(name, labels):
    with pytest.raises(ValueError, match="infinite"):
        TAKES_LABELS[name](labels)


@pytest.mark.parametrize(
    ("labels", "kinds"),
    [
        (["1", 1], "numbers and text"),
        (np.array([1, "1"], dtype=object), "numbers and text"),
        ([b"1", "1"], "bytes and text"),
        ([True, 1], "booleans and numbers"),
        ([True, "True"], "booleans and text"),
    ],
    ids=repr,
)
def test_labels_of_different_kinds_do_not_merge(labels, kinds):
    with pytest.raises(TypeError, match=f"labels mixes {kinds}.*one kind"):
        features.one_hot(labels)


def test_text_that_numpy_would_shorten_is_another_class():
    assert dmsgd.Stratified(["a", "a\0"], 1).strata.tolist() == ["a", "a\0"]
    assert dmsgd.Stratified([2**60, 2**60 + 1, 0.0], 1).strata.size == 3


def test_measurements_are_no_classes():
    """Numbers with fractions may be labels up to twenty of them; whole ones and text always."""
    measured = np.linspace(0, 1, 21)
    with pytest.raises(ValueError, match=r"21 different numbers with fractions.*bins"):
        dmsgd.Stratified(measured, 2)
    for labels in (measured[:20], np.arange(1000.0), measured.astype(str)):
        assert dmsgd.Stratified(labels, 2).strata.size == labels.size


@pytest.mark.parametrize("kind", ["pivots", "uniform", "kmeans"])
def test_long_indices_are_as_good_as_short_ones(kind):
    """scikit-learn takes none of 64 bits."""
    long = sparse.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    assert (
        designs.clustered(long, 3).fingerprint()
        == designs.clustered(sparse.csr_array(X), 3).fingerprint()
    )
    assert kernels.nystrom(kernels.Linear(long), 3, kind).rank == 3


def test_targets_of_any_size_and_container_are_the_same():
    target = np.linspace(1, 2, 12)
    expected = dmsgd.diversify(X, 3, target=target)
    for scaled in (target * 1e300, target * 1e-300):
        b = dmsgd.diversify(X, 3, target=scaled).inclusion()
        np.testing.assert_allclose(b, expected.inclusion(), rtol=1e-9)
    given = dmsgd.diversify(X, 3, target=pd.Series(target, dtype="Float64"))
    assert given.fingerprint() == expected.fingerprint()


GOOD = {
    "float64": X,
    "float32": X.astype(np.float32),
    "list": X.tolist(),
    "Fortran order": np.asfortranarray(X),
    "CSR": sparse.csr_array(X),
    "CSR matrix": sparse.csr_matrix(X),
    "COO": sparse.coo_array(X),
    "pandas": pd.DataFrame(X),
    "polars": pl.DataFrame(X),
    "torch": torch.tensor(X),
    "torch with gradient": torch.tensor(X, requires_grad=True),
}


@pytest.mark.parametrize("name", GOOD)
def test_any_container_gives_the_same_design(name):
    tolerance = 1e-6 if name == "float32" else 1e-12
    expected = dmsgd.diversify(X, 3, labels=Y, w=0.4).inclusion()
    b = dmsgd.diversify(GOOD[name], 3, labels=Y, w=0.4).inclusion()
    np.testing.assert_allclose(b, expected, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint16, np.int64, bool])
def test_any_real_dtype(dtype):
    counts = np.where(X > 0.3, np.abs(X) * 5, 0).astype(dtype)
    expected = dmsgd.diversify(counts.astype(float), 2).inclusion()
    np.testing.assert_allclose(dmsgd.diversify(counts, 2).inclusion(), expected)


def test_memory_maps(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        dmsgd.diversify(mapped, 3).sample(5, seed=0), dmsgd.diversify(X, 3).sample(5, seed=0)
    )


@pytest.mark.parametrize(
    "labels",
    [Y.tolist(), Y.astype(str), pd.Series(Y, dtype="category"), pl.Series(Y), torch.tensor(Y)],
    ids=["list", "text", "categorical", "polars", "torch"],
)
def test_any_kind_of_labels(labels):
    expected = dmsgd.diversify(X, 4, labels=Y, w=0.9).inclusion()
    np.testing.assert_allclose(dmsgd.diversify(X, 4, labels=labels, w=0.9).inclusion(), expected)


def test_seeds_of_every_kind():
    design = dmsgd.Uniform(1000, 5)
    same = [
        lambda: 7,
        lambda: np.int64(7),
        lambda: np.random.SeedSequence(7),
    ]
    rows = [design.sample(2, seed=make()).tolist() for make in same]
    assert rows[0] == rows[1] == rows[2]
    for make in (np.random.default_rng, np.random.RandomState):
        assert design.sample(2, seed=make(7)).tolist() == design.sample(2, seed=make(7)).tolist()
    moving = np.random.default_rng(7)
    assert design.sample(2, seed=moving).tolist() != design.sample(2, seed=moving).tolist()
    assert design.sample(2).tolist() != design.sample(2).tolist()


def test_import_is_light():
    code = (
        "import sys, dmsgd; dmsgd.kernels.Linear([[1.0]]); "
        "print([m for m in ('numba', 'sklearn', 'matplotlib', 'torch') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_public_names():
    assert set(dmsgd.__dir__()) >= {"diversify", "KDPP", "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dmsgd.nothing  # noqa: B018


def test_type_checkers_see_the_names_that_are_there():
    """The imports under TYPE_CHECKING are those of the table that is used at run time."""
    tree = ast.parse(Path(dmsgd.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module.removeprefix("dmsgd.")
        for node in block.body
        for alias in node.names
    }
    homes = {name: home for home, names in dmsgd._HOMES.items() for name in names}
    assert seen == {**homes, **dict.fromkeys(dmsgd._MODULES, "dmsgd")}
    assert all(hasattr(dmsgd, name) for name in dmsgd.__all__)


@pytest.mark.parametrize("code", ["import dmsgd", "import dmsgd; dir(dmsgd)"])
def test_importing_loads_nothing(code):
    code = f"import sys; {code}; print([m for m in sys.modules if m.startswith('dmsgd.')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_star_gives_the_public_names_only():
    code = "from dmsgd import *; print(sorted(n for n in dir() if not n.startswith('__')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(out.stdout) == sorted(dmsgd.__all__)
