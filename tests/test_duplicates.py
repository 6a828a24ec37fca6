"""`near_duplicates` against all pairs in float64."""

import logging

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.features import as_features
from dmsgd.features.products import median_square
from dmsgd.inputs.arrays import random_rows
from dmsgd.selection import duplicates, pairs
from test_real_data import load

RNG = np.random.default_rng(0)


def similarities(X, metric):
    """Return all similarities in float64, from differences of rows."""
    X, sample = as_dense(X), as_features(X[random_rows(X.shape[0], 40, np.random.default_rng(0))])
    if metric == "cosine":
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        X = np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)
        S = 1 - ((X[:, None] - X) ** 2).sum(-1) / 2
        empty = lengths.ravel() == 0
        return np.where(empty[:, None] | empty, empty[:, None] & empty, S)
    return np.exp(-((X[:, None] - X) ** 2).sum(-1) / median_square(sample))


def first_of_groups(near):
    """Return the first item of each connected component, by spreading the smallest number."""
    first = np.arange(len(near))
    while ((new := np.where(near, first, len(near)).min(1)) != first).any():
        first = new
    return first


def check(X, above, metric="cosine", rounding=1e-12):
    """Compare with all pairs; those within `rounding` of the threshold may be there or not."""
    found, S = dmsgd.near_duplicates(X, above, metric=metric), similarities(X, metric)
    n, (one, other) = len(S), found.pairs.T
    assert found.searched == n
    assert (one < other).all()
    assert (np.diff(one * n + other) > 0).all()  # sorted, and each pair once
    np.testing.assert_allclose(found.similarities, S[one, other], rtol=0, atol=rounding)
    listed = np.zeros((n, n), dtype=bool)
    listed[one, other] = listed[other, one] = True
    np.fill_diagonal(listed, True)
    sure, perhaps = above + rounding <= S, above - rounding <= S
    assert not (listed & ~perhaps).any()
    U = as_dense(X)
    first = (U[:, None] == U).all(-1).argmax(1)  # equal rows are listed once, with the first
    assert listed[first, np.arange(n)].all()
    assert listed[np.ix_(*[np.unique(first)] * 2)][sure[np.ix_(*[np.unique(first)] * 2)]].all()
    expected = first_of_groups(listed)
    assert found.representative.tolist() == expected.tolist()
    if (sure == perhaps).all():
        assert expected.tolist() == first_of_groups(sure | np.eye(n, dtype=bool)).tolist()
    assert found.keep().tolist() == np.unique(expected).tolist()
    if len(one):
        assert found.closest.similarity == found.similarities.max()
        assert abs(found.closest.similarity - np.where(np.eye(n), -1, S).max()) <= rounding
    elif found.closest is not None:
        assert abs(found.closest.similarity - S[found.closest[:2]]) <= rounding
    return found


def as_dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)


def clusters(n, d, spread, rng):
    """Return rows around a few centres, some of them copies, some zero."""
    X = rng.normal(size=(max(1, n // 4), d))[rng.integers(max(1, n // 4), size=n)]
    X = X * rng.uniform(0.5, 2, size=(n, 1)) + spread * rng.normal(size=(n, d))
    X[rng.random(n) < 0.1] = X[0]
    X[rng.random(n) < 0.1] = 0.0
    X[:, rng.random(d) < 0.3] *= 0.0
    return X


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("seed", range(60))
def test_pairs_are_those_of_all_pairs(seed, metric):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 60)), int(rng.integers(1, 90))
    X = clusters(n, d, rng.choice([1e-9, 1e-3, 0.03, 0.3]), rng)
    above = float(rng.choice([0.3, 0.9, 0.995, 1 - 1e-6, 1.0]))
    if metric == "euclidean" and rng.random() < 0.5:
        X += 100.0
    dense = check(X, above, metric)
    thin = check(sparse.csr_array(X), above, metric)
    assert dense.representative.tolist() == thin.representative.tolist()
    assert dense.pairs.tolist() == thin.pairs.tolist()


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_blocks_that_are_skipped_hold_no_pairs(sparse_rows, monkeypatch):
    monkeypatch.setattr(pairs, "BLOCK", 8)
    monkeypatch.setattr(pairs, "PRODUCTS", 128)
    compared, compare = [], pairs.Search._compare

    def counted(search, block, others):
        compared.append(others.size * search.block**2)
        compare(search, block, others)

    monkeypatch.setattr(pairs.Search, "_compare", counted)
    X = clusters(500, 12, 0.05, np.random.default_rng(0))
    check(sparse.csr_array(X) if sparse_rows else X, 0.995)
    assert 0 < sum(compared) < 0.7 * 500**2 / 2


def test_few_pairs_are_compared_at_a_time_for_ctrl_c(monkeypatch):
    """However many pairs of a block are near, and however long their rows are."""
    X = 1 + 0.01 * np.random.default_rng(0).normal(size=(60, 400))
    plain, sizes, norms = check(X, 0.995), [], pairs.row_norms2
    monkeypatch.setattr(pairs, "ENTRIES", 4000)
    monkeypatch.setattr(pairs, "row_norms2", lambda U: sizes.append(U.shape) or norms(U))
    assert dmsgd.near_duplicates(X).pairs.tolist() == plain.pairs.tolist()
    counts = [n for n, d in sizes if d == 400 and n < 60]
    assert len(counts) == 60 * 59 // 2 // 11 + 1  # of eleven pairs each
    assert max(counts) == 11


@pytest.mark.parametrize("directions", [1, 3, 64])
@pytest.mark.parametrize(
    "kind", ["near the mean", "far from 0", "uneven columns", "sparse", "sparse, near the mean"]
)
def test_short_rows_are_no_farther_apart(directions, kind, monkeypatch):
    """Also where rounding decides: with limits down to 1e-30, and every pair as the limit."""
    monkeypatch.setattr(pairs, "DIRECTIONS", directions)
    X = RNG.normal(size=(60, 40))
    X[30:] = X[:30] + 10.0 ** RNG.integers(-15, 0, size=(30, 1)) * RNG.normal(size=(30, 40))
    if kind == "near the mean":
        X = 1 + 1e-6 * X
    elif kind == "far from 0":
        X += 1e7
    elif kind == "uneven columns":
        X *= 10.0 ** np.linspace(-9, 9, 40)
    elif kind == "sparse, near the mean":
        X = sparse.csr_array(1 + 1e-7 * X)
    else:
        X = sparse.csr_array(np.where(RNG.random(X.shape) < 0.1, X, 0.0))
    rows = pairs.Rows(X, np.ones(60))
    Y, slack = pairs.short_rows(rows, np.arange(60))
    assert Y.shape == (60, min(directions, 40) + 1)
    U = as_dense(X)
    true = ((U[:, None] - U) ** 2).sum(-1)
    apart = ((Y[:, None].astype(float) - Y) ** 2).sum(-1)
    room = 2 * (slack[:, None] + slack)
    assert (apart <= (1 + pairs.MARGIN) * true + room).all()
    for limit in np.unique(true)[:: 1 if directions == 3 else 100]:
        A, B = pairs.factors_of(Y, slack, limit)
        assert (A @ B.T)[true <= limit].min() >= 0
    if "sparse" not in kind:  # and the margin is small beside the distances of most pairs
        assert np.median(room) < 1e-3 * np.median(true)


@pytest.mark.parametrize("scale", [1e-150, 1e-300, 1e-320, 1.0, 1e150])
def test_the_length_of_rows_does_not_matter_to_cosines(scale):
    X = clusters(40, 6, 1e-3, np.random.default_rng(3))
    whole = dmsgd.near_duplicates(X)
    assert len(whole.pairs) > 0
    if scale == 1e-320:  # of which three digits are left
        X = np.round(100 * X)
        whole = dmsgd.near_duplicates(X)
        scale = 5e-324
    for each in (X * scale, sparse.csr_array(X * scale)):
        found = dmsgd.near_duplicates(each)
        assert found.pairs.tolist() == whole.pairs.tolist()
        np.testing.assert_allclose(found.similarities, whole.similarities, atol=1e-12)
    mixed = dmsgd.near_duplicates(X * np.where(np.arange(40) % 2, scale, 1.0)[:, None])
    assert mixed.representative.tolist() == whole.representative.tolist()


def test_distances_do_not_depend_on_units():
    X = clusters(40, 6, 1e-3, np.random.default_rng(3))
    whole = check(X, 0.995, "euclidean")
    assert len(whole.pairs) > 0
    for scale in (1e-100, 1e150):
        found = dmsgd.near_duplicates(X * scale, metric="euclidean")
        assert found.pairs.tolist() == whole.pairs.tolist()
        np.testing.assert_allclose(found.similarities, whole.similarities, atol=1e-12)
    with pytest.raises(ValueError, match="rescale"):  # as `select` does
        dmsgd.near_duplicates(X * 1e-150, metric="euclidean")


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_items_may_be_very_far_away(metric):
    """So far that squares overflow where the distances of the others are 1."""
    X = 1e-100 * clusters(200, 6, 1e-3, np.random.default_rng(3))
    others = np.setdiff1d(np.arange(200), random_rows(200, 40, np.random.default_rng(0)))
    X[others[:9]] = 1e150 * RNG.normal(size=(9, 6))
    X[others[9]] = X[others[8]]
    with np.errstate(over="ignore"):
        assert len(check(X, 0.995, metric).pairs) > 50


def test_pairs_at_the_threshold_are_near_duplicates():
    X = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    assert dmsgd.near_duplicates(X, 0.8).pairs.tolist() == [[1, 2]]
    assert dmsgd.near_duplicates(X, np.nextafter(0.6, 0)).pairs.tolist() == [[0, 1], [1, 2]]
    assert dmsgd.near_duplicates(X, 0.8 + 1e-14).pairs.tolist() == []
    same = np.outer(RNG.uniform(0.1, 9, 50), RNG.normal(size=30))  # multiples of one row
    assert dmsgd.near_duplicates(same, 1.0).keep().tolist() == [0]


def test_rows_of_zeros_are_duplicates_of_each_other_only():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, -0.0], [1e-300, 0.0], [-0.0, -0.0]])
    for above in (0.1, 0.995, 1.0):
        for rows in (X, sparse.csr_array(X)):
            found = dmsgd.near_duplicates(rows, above)
            assert found.pairs.tolist() == [[0, 2], [0, 4], [1, 3]]
            assert found.similarities.tolist() == [1, 1, 1]
    assert dmsgd.near_duplicates(np.zeros((3, 2))).keep().tolist() == [0]
    assert dmsgd.near_duplicates(np.zeros((3, 2)), metric="euclidean").keep().tolist() == [0]


def test_few_items():
    one = dmsgd.near_duplicates([[1.0, 2.0]])
    assert (one.pairs.shape, one.closest, one.searched) == ((0, 2), None, 1)
    assert repr(one) == "none of 1 item has a near-duplicate (cosine above 0.995)"
    two = dmsgd.near_duplicates([[1.0, 0.0], [3.0, 4.0]])
    assert two.closest == (0, 1, pytest.approx(0.6))
    assert repr(two).endswith("; the closest pair seen is 0 and 1 (0.600)")
    assert repr(dmsgd.near_duplicates([[1.0]] * 1001)).startswith("1,001 of 1,001 items have a")


@pytest.mark.parametrize(
    ("given", "more", "word"),
    [
        ([[1.0, np.nan]], {}, "NaN"),
        ([[1.0], [2.0]], {"above": 0}, "above"),
        ([[1.0], [2.0]], {"above": 1.01}, "above"),
        ([[1.0], [2.0]], {"metric": "manhattan"}, "metric"),
    ],
)
def test_what_cannot_be_searched_raises(given, more, word):
    with pytest.raises(ValueError, match=word):
        dmsgd.near_duplicates(given, **more)


def test_equal_rows_are_one_row_of_the_search(monkeypatch):
    searched = []
    monkeypatch.setattr(
        duplicates, "Search",
        lambda rows, items, *more: searched.append(items.size) or pairs.Search(rows, items, *more),
    )  # fmt: skip
    X = np.repeat(np.eye(5), 4000, axis=0)
    found = dmsgd.near_duplicates(X)
    assert (len(found.pairs), found.keep().tolist()) == (19_995, list(range(0, 20_000, 4000)))
    assert searched == [5]
    monkeypatch.setattr(duplicates, "row_hashes", lambda X: np.zeros(X.shape[0], np.uint64))
    X = np.vstack([X[::1000], np.zeros((2, 5))])
    assert dmsgd.near_duplicates(X).keep().tolist() == [0, 4, 8, 12, 16, 20]


def test_zeros_of_either_sign_are_equal():
    X = [[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [-0.0, 1.0], [1.0, -0.0]]
    assert dmsgd.near_duplicates(X).pairs.tolist() == [[0, 1], [0, 3], [2, 4]]


def test_many_pairs_are_listed_in_part_and_grouped_exactly(monkeypatch):
    X = np.vstack([RNG.normal(size=(3, 9))] * 100) + 1e-4 * RNG.normal(size=(300, 9))
    X[7] = RNG.normal(size=9)
    whole = check(X, 0.995)
    monkeypatch.setattr(pairs, "LISTED", 50)
    monkeypatch.setattr(pairs, "ENTRIES", 90)
    found = dmsgd.near_duplicates(X)
    assert found.representative.tolist() == whole.representative.tolist()
    assert len(found.pairs) <= 50 + 300 < len(whole.pairs)
    assert {*map(tuple, found.pairs.tolist())} <= {*map(tuple, whole.pairs.tolist())}
    linked = np.eye(300, dtype=bool)
    linked[tuple(found.pairs.T)] = linked[tuple(found.pairs.T[::-1])] = True
    assert first_of_groups(linked).tolist() == whole.representative.tolist()


def test_too_many_items_are_searched_in_part(monkeypatch):
    X = RNG.normal(size=(6000, 40))
    X[1::2] = X[::2] + 1e-6  # neighbours, of which an even spacing of 2 or more keeps one
    monkeypatch.setattr(duplicates, "MOST", 2999)
    with pytest.warns(dmsgd.KernelWarning, match="evenly spaced"):
        found = dmsgd.near_duplicates(X)
    assert found.searched == 2999
    assert len(found.pairs) == 0
    assert repr(found).endswith(f"; {found.searched:,} items were searched")
    monkeypatch.setattr(duplicates, "MOST", 3001)
    with pytest.warns(dmsgd.KernelWarning, match="too many"):
        found = dmsgd.near_duplicates(X)
    assert found.searched == 3001
    monkeypatch.setattr(duplicates, "MOST", 4000)  # of three items, two
    with pytest.warns(dmsgd.KernelWarning):
        found = dmsgd.near_duplicates(X)
    assert (found.representative[found.pairs[:, 1]] == found.pairs[:, 0]).all()
    assert (found.pairs[:, 0] + 1 == found.pairs[:, 1]).all()  # numbers are those of all items
    assert 900 < len(found.pairs) < 1100
    with pytest.warns(dmsgd.KernelWarning):
        i, j, value = dmsgd.near_duplicates(X, 1.0).closest  # nothing is that near
    assert value == pytest.approx(X[i] @ X[j] / np.sqrt((X[i] @ X[i]) * (X[j] @ X[j])), abs=1e-9)
    assert 0.999 < value < 1


def test_long_searches_announce_their_time(monkeypatch, caplog):
    monkeypatch.setattr("dmsgd.runtime.progress.TRIAL", 0.0)
    monkeypatch.setattr("dmsgd.runtime.progress.LONG", 0.0)
    monkeypatch.setattr("dmsgd.runtime.progress.EVERY", 0.0)
    with caplog.at_level(logging.WARNING, "dmsgd"):
        dmsgd.near_duplicates(RNG.normal(size=(6000, 40)))
    said = [record.getMessage() for record in caplog.records]
    assert sum("takes about" in each for each in said) == 1
    shares = [record.share for record in caplog.records if "search" in record.getMessage()
              and hasattr(record, "share")]  # fmt: skip
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_squares_are_those_of_numpy():
    X = np.where(RNG.random((30, 200)) < 0.2, RNG.normal(size=(30, 200)), 0.0)
    factors, one, other = RNG.uniform(1, 2, 30), np.arange(15), np.arange(15, 30)
    expected = ((factors[:, None] * X)[one] - (factors[:, None] * X)[other]) ** 2
    for each in (X, sparse.csr_array(X), np.asfortranarray(X)):
        squares = pairs.Rows(each, factors).squares(one, other)
        np.testing.assert_allclose(squares, expected.sum(1), rtol=1e-13)


def test_other_forms_of_features(tmp_path):
    pd = pytest.importorskip("pandas")
    X = clusters(50, 8, 1e-3, np.random.default_rng(1))
    expected = dmsgd.near_duplicates(X).pairs.tolist()
    np.save(tmp_path / "x.npy", X)
    frozen = X.copy()
    frozen.flags.writeable = False
    for each in (X.tolist(), pd.DataFrame(X), tmp_path / "x.npy", frozen, np.asfortranarray(X)):
        assert dmsgd.near_duplicates(each).pairs.tolist() == expected


def test_features_in_blocks_are_searched_as_memory_allows(monkeypatch):
    X = np.repeat(RNG.normal(size=(17_000, 64)), 2, axis=0)
    monkeypatch.setenv("DMSGD_MEMORY", "42MB")  # all rows would take 17 MB
    assert as_features(X).kind == "in slices"
    found = dmsgd.near_duplicates(X)
    assert (found.searched, len(found.keep())) == (34_000, 17_000)
    monkeypatch.setenv("DMSGD_MEMORY", "21MB")
    with pytest.warns(dmsgd.KernelWarning, match="evenly spaced"):
        assert 4000 < dmsgd.near_duplicates(X).searched < 34_000


def test_digits():
    X = load("mnist/mnist.npz")["x_train"].reshape(60_000, -1)[:20_000:10].astype(float)
    X = np.vstack([X, X[::50] + RNG.normal(size=(40, 784))])
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = np.argwhere(np.triu(U @ U.T >= 0.95, 1))
    assert len(expected) > 60
    for rows in (X, sparse.csr_array(X)):
        assert dmsgd.near_duplicates(rows, 0.95).pairs.tolist() == expected.tolist()


@pytest.mark.parametrize("sparse_rows", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e100])
def test_rows_without_few_directions_are_compared_by_products(monkeypatch, sparse_rows, size):
    """As far as they can be told apart by them; otherwise one by one, which takes far longer."""
    X = np.random.default_rng(0).normal(size=(600, 400))
    X[300:310] = X[:10] + 0.1
    found, asked = [], []
    few = pairs.Search._nearer

    def spy(search, own, columns, near):
        asked.append(near)
        found.append(few(search, own, columns, near))
        return found[-1]

    monkeypatch.setattr(pairs.Search, "_nearer", spy)
    rows = sparse.csr_array(X * size) if sparse_rows else X * size
    near = dmsgd.near_duplicates(rows, 0.7)
    assert near.pairs.tolist() == [[i, 300 + i] for i in range(10)]
    assert sum(each.size for each in asked) > 1e4
    assert sum(each.size for each in found) < 20
