"""`dmsgd.select`: one set, with quality, given and excluded items."""

import tracemalloc
import warnings

import mpmath
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import dmsgd
from dmsgd.kernels import RBF, Linear, with_quality

#: Items of a part: small pools are one part, or several.
PARTS = 4096, 3


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def compile_from(monkeypatch, pairs):
    """Let compiled loops find similarities and gains of more pairs than these."""
    for limit in ("similarity.SMALL", "similarity.PLAIN", "cover.SMALL", "cover.ANEW"):
        monkeypatch.setattr(f"dmsgd.selection.{limit}", pairs)


def matrix(X, of=None):
    """exp(-d² / median d²), formed, with the median distance of distinct items of `of`."""
    D, some = (((rows[:, None] - rows[None]) ** 2).sum(-1) for rows in (X, X if of is None else of))
    pairs = some[np.triu_indices(len(some), 1)]
    return np.exp(-D / np.median(pairs[pairs > 0]))


def median(X):
    D = ((X[:, None] - X[None]) ** 2).sum(-1)[np.triu_indices(len(X), 1)]
    return float(np.median(D))


def greedy(L, k, before=()):
    """The greedy set by determinants."""
    items = list(before)
    for _ in range(k):
        gains = [
            -1.0 if i in items else np.linalg.det(L[np.ix_([*items, i], [*items, i])])
            for i in range(len(L))
        ]
        items.append(int(np.argmax(np.array(gains) >= (1 - 1e-9) * max(gains))))
    return items[len(before) :]


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("how", ["greedy", "cover", "medoids"])
def test_it_works_on_anything_with_k_alone(load, how):
    X = load().data
    for k in (1, 32, 100):
        items = dmsgd.select(X, k, how=how)
        assert items.shape == (k,)
        assert len(set(items.tolist())) == k


def test_the_greedy_set_is_the_greedy_set(rng):
    X, q = rng.normal(size=(12, 3)), rng.uniform(0.2, 1, size=12)
    L = q[:, None] * matrix(X) * q
    assert dmsgd.select(X, 5, quality=q, how="greedy").tolist() == greedy(L, 5)
    found = dmsgd.select(X, 4, quality=q, given=[3, 8], how="greedy")
    assert found.tolist() == greedy(L, 4, [3, 8])


@pytest.mark.parametrize("quality", [False, True])
def test_a_greedy_set_of_many_items_is_that_of_plain_numpy(rng, monkeypatch, quality):
    X = rng.normal(size=(700, 5))
    X[600:] = X[:100]  # copies tie, and the first of them is chosen
    q = rng.uniform(size=700) if quality else np.ones(700)
    sample = np.random.default_rng(0).choice(700, 40, replace=False)
    L = q[:, None] * matrix(X, of=X[sample]) * q
    known, order, left = [3, 9], [], L.diagonal().copy()
    for step in range(32):
        item = known[step] if step < 2 else int(np.argmax(left >= (1 - 1e-9) * left.max()))
        order.append(item)
        L = L - np.outer(L[item], L[item]) / L[item, item]
        left = L.diagonal().copy()
        left[order] = 0.0
    monkeypatch.setattr("dmsgd.designs.greedy.PART", 64)  # some of which are left alone
    for rows in (X, sparse.csr_array(X)):
        found = dmsgd.select(rows, 30, quality=q, given=known, how="greedy")
        assert found.tolist() == order[2:]


def test_the_rows_of_a_greedy_set_are_announced_and_copied_once(rng, monkeypatch):
    X = rng.normal(size=(20_000, 50))
    monkeypatch.setattr("dmsgd.designs.greedy.PART", 256)
    monkeypatch.setattr("dmsgd.designs.greedy.LARGE", 2**10)  # float32
    tracemalloc.start()
    dmsgd.select(X, 2, how="greedy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.9 * X.nbytes
    monkeypatch.setattr("dmsgd.designs.greedy.LARGE", X.size)
    monkeypatch.setenv("DMSGD_MEMORY", "8MB")
    with pytest.raises(MemoryError, match="greedy"):
        dmsgd.select(X, 2, how="greedy")


@pytest.mark.parametrize("apart", [2e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_greedy_sets_follow_their_score_where_little_is_left(apart):
    X = [[0, 0], [apart, 0], [3, 0], [0, 3], [3, 3]]
    quality = [1, 0.99, 0.3, 0.3, 0.3]  # 0.3 to the power of 38 is less than the 1e-13 that is left
    found = dmsgd.select(X, 2, quality=quality, diversity=0.05, how="greedy")
    assert found.tolist() == [0, 1]


@pytest.mark.parametrize("quality", [False, True])
def test_greedy_sets_of_one_column_are_those_of_many_digits(rng, quality):
    X, q = rng.normal(size=(30, 1)), rng.uniform(0.5, 1, size=30) if quality else np.ones(30)
    with mpmath.workdps(60):
        L = mpmath.matrix((-((X - X.T) ** 2) / median(X)).tolist()).apply(mpmath.exp)
        L = mpmath.diag(q.tolist()) * L * mpmath.diag(q.tolist())
        order, left = [], []
        for _ in range(17):
            best = max(range(30), key=lambda i: L[i, i])
            order.append(best)
            left.append(float(L[best, best]))
            row = L[best, :]
            L -= row.T * row / L[best, best]
    assert left[-1] < 1e-7
    assert dmsgd.select(X, 17, quality=q, how="greedy").tolist() == order


@pytest.mark.parametrize("case", range(12))
def test_greedy_sets_do_not_depend_on_parts_or_form(monkeypatch, case):
    rng = np.random.default_rng(case)
    n, d = int(rng.integers(2, 250)), int(rng.integers(1, 20))
    X = rng.normal(size=(n, d))
    if case % 3 == 1:
        X = X.round()  # copies and ties
    if case % 3 == 2:
        X = np.where(rng.random((n, d)) < 0.7, 0.0, X)
        X[0, 0] = 1.0
    q, given = rng.random(n).round(2) + 0.01, [0] if n > 20 else []
    options = {"quality": q if case % 2 else None, "given": given, "how": "greedy"}
    k, found = int(rng.integers(1, min(n - len(given), 60) + 1)), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dmsgd.KernelWarning)  # fewer are distinct
        for part in PARTS:
            monkeypatch.setattr("dmsgd.designs.greedy.PART", part)
            found += [dmsgd.select(rows, k, **options) for rows in (X, sparse.csr_array(X))]
    assert all(np.array_equal(each, found[0]) for each in found)


@pytest.mark.parametrize("part", PARTS)
def test_greedy_sets_of_qualities_of_any_size_repeat_no_item(monkeypatch, rng, part):
    monkeypatch.setattr("dmsgd.designs.greedy.PART", part)
    X, q = rng.normal(size=(5, 4)), np.geomspace(1e-320, 1e300, 5)
    with pytest.warns(dmsgd.KernelWarning, match="chosen by quality alone"):
        found = dmsgd.select(X, 3, quality=q, diversity=0.5, exclude=[0], given=[1], how="greedy")
    assert found.tolist() == [4, 3, 2]


def test_greedy_sets_tell_their_progress_item_by_item(rng, monkeypatch):
    X, q, called = rng.normal(size=(700, 5)), rng.uniform(size=700), []
    expected = dmsgd.select(X, 20, quality=q, how="greedy")
    monkeypatch.setattr("dmsgd.designs.greedy.Progress", lambda what: called.append)
    assert np.array_equal(dmsgd.select(X, 20, quality=q, how="greedy"), expected)
    assert len(called) == 20
    assert 0 < called[0] <= called[-1] == 1


def test_greedy_sets_that_need_too_much_memory_are_refused(rng, monkeypatch):
    X = rng.normal(size=(20_000, 20))
    monkeypatch.setenv("DMSGD_MEMORY", "8MB")
    with pytest.raises(MemoryError, match="fewer items"):
        dmsgd.select(X, 100, how="greedy")


def test_large_arrays_are_in_float32(rng, monkeypatch):
    X, q = rng.normal(size=(400, 6)), rng.uniform(size=400)
    X[300:] = X[:100]
    expected = dmsgd.select(X, 60, quality=q, how="greedy")
    monkeypatch.setattr("dmsgd.designs.greedy.LARGE", 0)
    assert np.array_equal(dmsgd.select(X, 60, quality=q, how="greedy"), expected)


def test_sparse_rows_are_chosen_as_others_are(rng):
    X, q = rng.normal(size=(300, 4)), rng.uniform(size=300)
    dense, other = (dmsgd.select(F, 20, quality=q, how="greedy") for F in (X, sparse.csr_array(X)))
    assert np.array_equal(dense, other)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("how", ["greedy", "cover", "medoids"])
def test_numbers_of_any_size(rng, how):
    X = rng.normal(size=(40, 3))
    X -= X.mean(0)  # of dense rows "medoids" subtracts it
    expected = dmsgd.select(X, 5, how=how).tolist()
    for factor in (2.0**-300, 2.0**-80, 2.0**80, 2.0**450):
        for form in (np.asarray, sparse.csr_array):
            assert dmsgd.select(form(factor * X), 5, how=how).tolist() == expected
    X[7] *= 1e150
    assert len(set(dmsgd.select(X, 2, how=how).tolist())) == 2


def test_copies_come_last_and_by_quality():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])
    for how in ("greedy", "cover", "medoids"):
        with pytest.warns(dmsgd.KernelWarning, match="distinct"):
            items = dmsgd.select(X, 3, quality=[1, 2, 1.5, 1], how=how)
        assert items.tolist() == [1, 3, 2]


def test_items_that_are_given_twice_count_once(rng):
    X = rng.normal(size=(30, 3))
    X[1] = X[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", dmsgd.KernelWarning)
        for how in ("greedy", "cover", "medoids"):
            items = dmsgd.select(X, 4, given=[0, 1], how=how)
            assert len({*items.tolist(), 0, 1}) == 6


def test_few_columns_and_near_duplicates_need_no_argument(rng):
    near = np.repeat(rng.normal(size=(40, 5)), 3, axis=0) + 1e-7 * rng.normal(size=(120, 5))
    for X, k in ((np.arange(50.0)[:, None], 40), (near, 100), ([[0.0], [1.0]], 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dmsgd.KernelWarning)
            for how in ("greedy", "cover", "medoids"):
                assert len(set(dmsgd.select(X, k, how=how).tolist())) == k


def test_diversity_goes_from_the_best_to_the_most_different(rng):
    X, q = rng.normal(size=(200, 5)), rng.uniform(0.1, 1, size=200)
    best = set(np.argsort(-q)[:10].tolist())
    kept = [
        len(best & set(dmsgd.select(X, 10, quality=q, diversity=w, how="greedy").tolist()))
        for w in (0.01, 0.5, 1.0)
    ]
    assert kept[0] == 10 > kept[1] > kept[2]
    alone = dmsgd.select(X, 10, how="greedy")
    assert np.array_equal(dmsgd.select(X, 10, quality=q, diversity=1, how="greedy"), alone)


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ({"k": 0}, ValueError, "k"),
        ({"k": 7}, ValueError, "at most 6"),
        ({"k": 5, "given": [0, 1]}, ValueError, "at most 4"),
        ({"k": 2, "exclude": [9]}, ValueError, "exclude"),
        ({"k": 2, "how": "best"}, ValueError, "how"),
        ({"k": 2, "quality": [1, 2]}, ValueError, "quality"),
        ({"k": 2, "quality": [-1, 1, 1, 1, 1, 1]}, ValueError, "negative"),
        ({"k": 2, "quality": [0] * 6}, ValueError, "zero"),
        ({"k": 2, "quality": [1] * 6, "diversity": 0}, ValueError, "diversity"),
        ({"k": 2, "given": [0.5]}, TypeError, "given"),
    ],
)
def test_bad_input_is_refused(rng, arguments, error, word):
    with pytest.raises(error, match=word):
        dmsgd.select(rng.normal(size=(6, 2)), **arguments)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_a_kernel_with_quality_is_that_matrix(rng, kind):
    X, q = rng.normal(size=(8, 3)), rng.uniform(0.1, 2, size=8)
    S = Linear(X) if kind == "linear" else RBF(X, 1.0)
    everything = np.arange(8)
    full = S.block(everything, everything)
    L = with_quality(S, q)
    expected = (q[:, None] * full * q) / q.max() ** 2
    assert np.allclose(L.block(everything, everything), expected)
    assert np.allclose(L.columns(everything), expected)
    assert np.allclose(L.diag(), expected.diagonal())
    assert np.allclose(L.subset([1, 5]).block([0, 1], [0, 1]), expected[np.ix_([1, 5], [1, 5])])
    assert np.allclose(dmsgd.KDPP(L, 3).inclusion(), dmsgd.KDPP(expected, 3).inclusion())
    approximation = dmsgd.kernels.nystrom(L, everything)
    assert np.allclose(dmsgd.KDPP(approximation, 3).inclusion(), dmsgd.KDPP(L, 3).inclusion())
    assert with_quality(S, q).fingerprint() != with_quality(S, q[::-1]).fingerprint()
