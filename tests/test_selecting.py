"""`dmsgd.select`: one set, drawn or greedy, with quality, given and excluded items."""

import itertools
import re
import warnings
from math import log
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import dmsgd
from dmsgd.features import as_features
from dmsgd.kernels import RBF, Linear, exact, with_quality
from dmsgd.kernels.given import Given
from dmsgd.polynomials import log_elementary_symmetric
from dmsgd.selection import draw, walk


@pytest.fixture
def rng():
    return np.random.default_rng(0)


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
@pytest.mark.parametrize("how", ["draw", "greedy", "cover", "medoids"])
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
def test_small_greedy_sets_are_those_of_compiled_loops(monkeypatch, case):
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
        for form in ("NumPy", "compiled"):
            greedy_by(form, monkeypatch)
            found += [dmsgd.select(rows, k, **options) for rows in (X, sparse.csr_array(X))]
    assert all(np.array_equal(each, found[0]) for each in found)


@pytest.mark.parametrize("form", ["NumPy", "compiled"])
def test_greedy_sets_of_qualities_of_any_size_repeat_no_item(monkeypatch, rng, form):
    greedy_by(form, monkeypatch)
    X, q = rng.normal(size=(5, 4)), np.geomspace(1e-320, 1e300, 5)
    with pytest.warns(dmsgd.KernelWarning, match="chosen by quality alone"):
        found = dmsgd.select(X, 3, quality=q, diversity=0.5, exclude=[0], given=[1], how="greedy")
    assert found.tolist() == [4, 3, 2]


def greedy_by(form, monkeypatch):
    """Make small greedy sets by the loops in NumPy or by compiled ones."""
    monkeypatch.setattr("dmsgd.features.products.SMALL", 2**16 if form == "NumPy" else 0)


def test_greedy_sets_come_in_pieces_smaller_than_a_step(rng, monkeypatch):
    X, q, called = rng.normal(size=(700, 5)), rng.uniform(size=700), []
    expected = dmsgd.select(X, 20, quality=q, how="greedy")
    monkeypatch.setattr("dmsgd.designs.greedy.AT_A_TIME", 1e3)
    monkeypatch.setattr("dmsgd.designs.greedy.Progress", lambda what: called.append)
    assert np.array_equal(dmsgd.select(X, 20, quality=q, how="greedy"), expected)
    assert len(called) > 100
    assert 0 < called[0] <= called[-1] == 1


def test_draws_come_in_pieces(rng, monkeypatch):
    many(monkeypatch, "walk")
    called = []
    monkeypatch.setattr(walk, "AT_A_TIME", 1.0)
    monkeypatch.setattr(walk, "Progress", lambda what: called.append)
    dmsgd.select(rng.normal(size=(300, 5)), 20, how="draw", seed=0)
    assert len(called) > 50
    assert called[-1] == 1


def test_draws_need_no_array_of_all_items_by_k(rng, monkeypatch):
    X = rng.normal(size=(20_000, 20))
    monkeypatch.setenv("DMSGD_MEMORY", "8MB")
    assert len(set(dmsgd.select(X, 100, how="draw", seed=0).tolist())) == 100
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


def many(monkeypatch, route=None):
    """Have few items drawn as many are, by the walk alone or by a factor alone."""
    monkeypatch.setattr(draw, "EXACT_ITEMS", 0)
    monkeypatch.setattr(draw, "TIMES", 0)
    if route == "walk":
        monkeypatch.setattr(draw, "FEW", 0)
    if route == "factor":
        monkeypatch.setattr(draw, "Walk", lambda *_: SimpleNamespace(complete=False))


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("given", "route"),
    [([], "exact"), ([2], "walk"), ([2], "factor")]
    + [pytest.param([2], "exact", marks=LONG)]
    + [pytest.param([], route, marks=LONG) for route in ("walk", "factor")],
)
def test_draws_have_the_probabilities_of_the_kernel(rng, monkeypatch, given, route):
    if route != "exact":
        many(monkeypatch, route)
    X, q, size = rng.normal(size=(6, 2)), rng.uniform(0.5, 1, size=6), 600
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
        for t in range(size)
    ]
    shares = np.array([drawn.count(s) for s in sets]) / size
    assert shares.sum() == pytest.approx(1)
    assert np.abs(shares - weights).max() < 4.5 * np.sqrt(0.25 / size)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("how", ["draw", "greedy", "cover", "medoids"])
def test_numbers_of_any_size(rng, how):
    X = rng.normal(size=(40, 3))
    X -= X.mean(0)  # of dense rows "medoids" subtracts it
    expected = dmsgd.select(X, 5, how=how, seed=0).tolist()
    for factor in (2.0**-300, 2.0**-80, 2.0**80, 2.0**450):
        for form in (np.asarray, sparse.csr_array):
            assert dmsgd.select(form(factor * X), 5, how=how, seed=0).tolist() == expected
    X[7] *= 1e150
    assert len(set(dmsgd.select(X, 2, how=how, seed=0).tolist())) == 2


def test_copies_come_last_and_by_quality():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])
    for how in ("draw", "greedy", "cover", "medoids"):
        with pytest.warns(dmsgd.KernelWarning, match="distinct"):
            items = dmsgd.select(X, 3, quality=[1, 2, 1.5, 1], how=how)
        assert items.tolist() == [1, 3, 2]


def test_items_that_are_given_twice_count_once(rng):
    X = rng.normal(size=(30, 3))
    X[1] = X[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", dmsgd.KernelWarning)
        for how in ("draw", "greedy", "cover", "medoids"):
            items = dmsgd.select(X, 4, given=[0, 1], how=how, seed=0)
            assert len({*items.tolist(), 0, 1}) == 6


def test_a_draw_from_many_items_finds_the_few_that_differ(rng, monkeypatch):
    many(monkeypatch)
    copies = np.repeat([[0.0, 0.0]], 400, axis=0)
    X = np.vstack([copies, rng.normal(size=(9, 2))])
    assert set(range(400, 409)) <= set(dmsgd.select(X, 10, how="draw", seed=0).tolist())
    q = np.r_[np.full(400, 1e-4), np.ones(9)]
    assert dmsgd.select(X, 9, quality=q, how="draw", seed=0).min() >= 400
    assert dmsgd.select(X, 10, quality=q, how="draw", seed=0).min() < 400
    assert len(set(dmsgd.select(rng.normal(size=(400, 9)), 20, how="draw", seed=0).tolist())) == 20


def test_near_duplicates_do_not_set_the_scale_of_draws(rng):
    group = np.repeat(np.arange(12), 4)
    X = rng.normal(size=(12, 5))[group] + 0.003 * rng.normal(size=(48, 5))
    sample = np.sort(np.random.default_rng(0).choice(48, 40, replace=False))
    L = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / median(X[sample]))

    def log_e(rows):
        values = np.linalg.eigvalsh(L[np.ix_(rows, rows)])
        return log_elementary_symmetric(np.maximum(values, 0.0), 13)[-1]

    missed = [np.exp(log_e(group != g) - log_e(group >= 0)) for g in range(12)]
    assert 12 - sum(missed) == pytest.approx(11.998, abs=1e-3)  # in 60 digits, too
    reached = [len(set(group[dmsgd.select(X, 13, how="draw", seed=t)])) for t in range(100)]
    assert np.mean(reached) > 11.97  # at a scale of 4e-5 of the median they would be 9.5


@pytest.mark.parametrize("how_many", ["few", "many"])
def test_the_scale_of_draws_is_reduced_by_as_little_as_needed(monkeypatch, how_many):
    if how_many == "many":
        many(monkeypatch, "factor")
    X, k = np.linspace(0.0, 1.0, 40)[:, None], 30
    with pytest.warns(dmsgd.KernelWarning, match="m' = ") as caught:
        items = dmsgd.select(X, k, how="draw", seed=0)
    assert len(set(items.tolist())) == k
    share = float(re.search(r"m' = (\S+) m", str(caught[0].message))[1])
    errors = [
        found.inclusion_error(k) if found.rank >= k else np.inf
        for found in (exact(RBF(X, np.sqrt(f * share * median(X) / 2))) for f in (0.9, 1.3))
    ]
    assert errors[0] < 1e-3 < errors[1]


def test_qualities_that_rounding_hides_are_refused(rng):
    X = rng.normal(size=(4, 2))
    items = dmsgd.select(X, 4, quality=[1, 1, 1, 1e-4], how="draw", seed=0)
    assert sorted(items.tolist()) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="item 3"):
        dmsgd.select(X, 4, quality=[1, 1, 1, 1e-9], how="draw", seed=0)


def test_qualities_are_compared_with_the_best_that_is_left(rng, monkeypatch):
    X, q = rng.normal(size=(40, 3)), np.r_[1.0, np.full(39, 1e-200)]
    for _ in range(2):  # the exact k-DPP, and a walk
        items = dmsgd.select(X, 5, quality=q, exclude=[0], how="draw", seed=0)
        assert len(set(items.tolist()) - {0}) == 5
        many(monkeypatch, "walk")


@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-5, 1e-3])
def test_given_items_that_are_alike_do_not_set_the_scale(rng, apart):
    X = rng.normal(size=(40, 6))
    X[1] = X[0] + apart
    with warnings.catch_warnings():
        warnings.simplefilter("error", dmsgd.KernelWarning)
        items = dmsgd.select(X, 5, given=[0, 1], how="draw", seed=0)
    assert len({*items.tolist(), 0, 1}) == 7


def test_what_given_items_leave_of_a_kernel(rng):
    kernel, given = RBF(rng.normal(size=(9, 2)), 1.0), np.array([2, 5])
    L, rest = kernel.block(range(9), range(9)), [0, 1, 3, 4, 6, 7, 8]
    left = L - L[:, given] @ np.linalg.inv(L[np.ix_(given, given)]) @ L[given]
    found = Given(kernel, given, 0.0)
    assert np.allclose(found.block(rest, rest), left[np.ix_(rest, rest)])
    assert np.allclose(found.columns([3])[rest, 0], left[rest, 3])
    assert np.allclose(found.diag()[rest], left.diagonal()[rest])
    assert not found.diag()[given].any()
    assert not found.columns(given).any()
    assert found.rounding >= 1
    assert found.fingerprint() != Given(kernel, given[:1], 0.0).fingerprint()


@pytest.mark.parametrize("given", [[], [4, 7]])
def test_few_columns_have_a_factor_that_leaves_out_next_to_nothing(rng, given):
    X, k, given = rng.normal(size=(600, 2)), 30, np.array(given, dtype=int)
    target = draw.Target(as_features(X), np.ones(600), given, k, 0)
    kernel = next(target._kernels(median(X)))
    found = target._factor(kernel)
    assert target._sound(kernel, found)
    assert found.rank < 300
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dmsgd.KernelWarning)
        whole = dmsgd.KDPP(RBF(X, np.sqrt(median(X) / 2)), k + given.size)
        b = (whole.given(given) if given.size else whole).inclusion()
        assert np.abs(dmsgd.KDPP(found, k).inclusion() - b)[b < 1].max() < 1e-4


@pytest.mark.long
def test_few_columns_are_drawn_as_diverse_as_the_kernel_says(rng):
    X, k = rng.normal(size=(2500, 2)), 30
    sample = np.sort(np.random.default_rng(0).choice(2500, 40, replace=False))
    spectrum = dmsgd.kernels.pivoted_cholesky(RBF(X, np.sqrt(median(X[sample]) / 2)), 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dmsgd.KernelWarning)
        expected = spectrum.log_det(dmsgd.KDPP(spectrum, k).sample(4000, seed=0))
    drawn = np.array([dmsgd.select(X, k, how="draw", seed=t) for t in range(150)])
    gap = expected.mean() - spectrum.log_det(drawn).mean()
    assert abs(gap) < 4 * expected.std() / np.sqrt(150)


def test_the_walk_is_long_enough(rng):
    X, k = np.vstack([rng.normal(size=(5, 1)), [[0.0], [0.01]]]), 3
    L = matrix(X)
    sets = list(itertools.combinations(range(7), k))
    det = np.array([np.linalg.det(L[np.ix_(s, s)]) for s in sets])
    P = np.zeros((len(sets), len(sets)))
    for a, s in enumerate(sets):
        for gone in s:
            others = [b for b, t in enumerate(sets) if set(s) - {gone} <= set(t)]
            P[a, others] += det[others] / det[others].sum() / k
    target = det / det.sum()
    assert np.allclose(target @ P, target)
    for a in range(len(sets)):
        steps = walk.steps_needed(k, k * log(7) - log(6) - log(det[a]))
        reached = np.linalg.matrix_power(P, steps)[a]
        assert np.abs(reached - target).sum() / 2 <= walk.ERROR


def test_the_walk_keeps_an_inverse_of_the_similarities(rng, monkeypatch):
    X = rng.normal(size=(300, 4))
    arguments = as_features(X), np.ones(300), 25, np.array([3, 8]), median(X), 0, 1e-3
    whole = walk.Walk(*arguments)
    items = whole.run()
    S = np.exp(-((X[whole._Y][:, None] - X[whole._Y][None]) ** 2).sum(-1) / median(X))
    assert np.allclose(S @ whole._M, np.eye(27), atol=1e-8)
    assert whole._drift() < 1e-8
    monkeypatch.setattr(walk, "CHECKED", 1)
    monkeypatch.setattr(walk.Walk, "_drift", lambda self: 1.0)  # so that it is made anew
    assert walk.Walk(*arguments).run().tolist() == items.tolist()


def test_few_columns_and_near_duplicates_need_no_argument(rng):
    near = np.repeat(rng.normal(size=(40, 5)), 3, axis=0) + 1e-7 * rng.normal(size=(120, 5))
    for X, k in ((np.arange(50.0)[:, None], 40), (near, 100), ([[0.0], [1.0]], 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dmsgd.KernelWarning)
            for how in ("draw", "greedy", "cover", "medoids"):
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
