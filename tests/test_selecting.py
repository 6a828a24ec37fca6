"""`dmsgd.select`: one set, drawn or greedy, with quality, given and excluded items."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import dmsgd
from dmsgd.kernels import RBF, Linear, with_quality


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def matrix(X, of=None):
    """exp(-d² / median d²), formed, with the median distance of distinct items of `of`."""
    D, some = (((rows[:, None] - rows[None]) ** 2).sum(-1) for rows in (X, X if of is None else of))
    pairs = some[np.triu_indices(len(some), 1)]
    return np.exp(-D / np.median(pairs[pairs > 0]))


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
@pytest.mark.parametrize("how", ["draw", "greedy", "cover"])
def test_it_works_on_anything_with_k_alone(load, how):
    X = load().data
    for k in (1, 32, 100):
        items = dmsgd.select(X, k, how=how, seed=0)
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
    monkeypatch.setattr("dmsgd.designs.greedy.AT_A_TIME", 1e5)  # in several calls
    for rows in (X, sparse.csr_array(X)):
        found = dmsgd.select(rows, 30, quality=q, given=known, how="greedy")
        assert found.tolist() == order[2:]


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


@pytest.mark.parametrize(
    ("given", "exact"),
    [([], True), ([2], False)]
    + [pytest.param(*each, marks=pytest.mark.long) for each in (([2], True), ([], False))],
)
def test_draws_have_the_probabilities_of_the_kernel(rng, monkeypatch, given, exact):
    if not exact:
        monkeypatch.setattr("dmsgd.selection.draw.EXACT_ITEMS", 0)
    X, q = rng.normal(size=(6, 2)), rng.uniform(0.5, 1, size=6)
    L = q[:, None] * matrix(X) * q
    sets = [s for s in itertools.combinations(range(5), 2 + len(given)) if set(given) <= set(s)]
    weights = np.array([np.linalg.det(L[np.ix_(s, s)]) for s in sets])
    weights /= weights.sum()
    drawn = [
        tuple(
            sorted(
                [
                    *dmsgd.select(X, 2, quality=q, given=given, exclude=[5], how="draw", seed=t),
                    *given,
                ]
            )
        )
        for t in range(1000)
    ]
    shares = np.array([drawn.count(s) for s in sets]) / 1000
    assert shares.sum() == pytest.approx(1)
    assert np.abs(shares - weights).max() < 4.5 * np.sqrt(0.25 / 1000)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("how", ["draw", "greedy", "cover"])
def test_numbers_of_any_size(rng, how):
    X = rng.normal(size=(40, 3))
    expected = dmsgd.select(X, 5, how=how, seed=0).tolist()
    for factor in (2.0**-300, 2.0**-80, 2.0**80, 2.0**450):
        for form in (np.asarray, sparse.csr_array):
            assert dmsgd.select(form(factor * X), 5, how=how, seed=0).tolist() == expected
    X[7] *= 1e150
    assert len(set(dmsgd.select(X, 2, how=how, seed=0).tolist())) == 2


def test_copies_come_last_and_by_quality():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])
    for how in ("draw", "greedy", "cover"):
        with pytest.warns(dmsgd.KernelWarning, match="distinct"):
            items = dmsgd.select(X, 3, quality=[1, 2, 1.5, 1], how=how)
        assert items.tolist() == [1, 3, 2]


def test_items_that_are_given_twice_count_once(rng):
    X = rng.normal(size=(30, 3))
    X[1] = X[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", dmsgd.KernelWarning)
        for how in ("draw", "greedy", "cover"):
            items = dmsgd.select(X, 4, given=[0, 1], how=how, seed=0)
            assert len({*items.tolist(), 0, 1}) == 6


def test_a_draw_from_many_items_finds_the_few_that_differ(rng, monkeypatch):
    monkeypatch.setattr("dmsgd.selection.draw.EXACT_ITEMS", 50)
    copies = np.repeat([[0.0, 0.0]], 400, axis=0)
    X = np.vstack([copies, rng.normal(size=(9, 2))])
    assert set(range(400, 409)) <= set(dmsgd.select(X, 10, how="draw", seed=0).tolist())
    q = np.r_[np.full(400, 1e-4), np.ones(9)]
    assert dmsgd.select(X, 9, quality=q, how="draw", seed=0).min() >= 400
    assert dmsgd.select(X, 10, quality=q, how="draw", seed=0).min() < 400
    assert len(set(dmsgd.select(rng.normal(size=(400, 9)), 20, how="draw", seed=0).tolist())) == 20


def test_few_columns_and_near_duplicates_need_no_argument(rng):
    near = np.repeat(rng.normal(size=(40, 5)), 3, axis=0) + 1e-7 * rng.normal(size=(120, 5))
    for X, k in ((np.arange(50.0)[:, None], 40), (near, 100), ([[0.0], [1.0]], 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dmsgd.KernelWarning)
            for how in ("draw", "greedy", "cover"):
                assert len(set(dmsgd.select(X, k, how=how, seed=1).tolist())) == k


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
