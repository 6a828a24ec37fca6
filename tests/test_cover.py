"""`select(how="cover")` is greedy facility location: each step is held to brute force."""

import logging
import warnings

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.features.products import multiply
from dmsgd.selection import coverage, similarity
from dmsgd.selection.coverage import van_der_corput
from test_selecting import compile_from, matrix


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=["small", "kept", "computed", "sampled"])
def way(request, monkeypatch):
    """The four ways in which gains are computed, made to serve for few items."""
    if request.param != "small":
        compile_from(monkeypatch, 0)
    if request.param in ("computed", "sampled"):
        monkeypatch.setattr("dmsgd.selection.pool.KEPT", 0)
        for name, size in {"TILE": 64, "WIDTH": 32, "SHARE": 100}.items():
            monkeypatch.setattr(similarity, name, size)
    if request.param == "sampled":
        monkeypatch.setattr(coverage, "WHOLE", 0)
        monkeypatch.setattr(coverage, "START", 150)
        monkeypatch.setattr(coverage, "ADDED", 30)
    return request.param


def check_steps(chosen, S, worth, demand, given=(), closed=(), slack=1e-6):
    """Each item has the largest worth x gain of Σ_j demand_j max_i S_ij, up to rounding."""
    covered = S[list(given)].max(0, initial=0.0)
    closed = np.isin(np.arange(len(S)), [*given, *closed])
    first = (worth * (np.maximum(S - covered, 0) @ demand)).max()
    for item in chosen.tolist():
        values = np.where(closed, -1.0, worth * (np.maximum(S - covered, 0) @ demand))
        assert values[item] >= (1 - slack) * values.max() - 1e-6 * first
        covered = np.maximum(covered, S[item])
        closed[item] = True


@pytest.mark.parametrize("columns", [2, 5, 30])
def test_it_is_greedy_facility_location(rng, way, columns):
    X = rng.normal(size=(300, columns)) * np.linspace(0.5, 2, 300)[:, None] + 7
    X[250:] = X[:50]  # of copies that with the largest quality is chosen
    q, given, barred = rng.uniform(size=300), [3, 9], [5, 17]
    wide = matrix(X, of=X[np.random.default_rng(0).choice(300, 40, replace=False)])
    nearest = -np.log(wide[given].max(0))  # the median of these is the scale
    S = wide ** max(1.0, 1 / np.median(nearest[nearest > 1e-12]))
    slack = 0.3 if way == "sampled" else 1e-6
    for rows in (X, sparse.csr_array(X)):
        options = {"quality": q, "given": given, "exclude": barred, "how": "cover"}
        found = dmsgd.select(rows, 25, **options)
        check_steps(found, S, q, q, given, barred, slack)
        assert dmsgd.select(rows, 9, **options).tolist() == found[:9].tolist()
        for item in found.tolist():
            copies = np.flatnonzero(S[item] > 1 - 1e-9)
            assert item == max(copies, key=lambda i: (q[i], -i)) or set(copies) & {*given, *barred}
    check_steps(dmsgd.select(X, 25), wide, np.ones(300), np.ones(300), slack=slack)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_another_set_is_covered(rng, way, form):
    X, Y, w = rng.normal(size=(250, 4)), rng.normal(size=(180, 4)) + 1, rng.uniform(size=180)
    of = Y[np.random.default_rng(0).choice(180, 40, replace=False)]
    square = -1 / np.log(matrix(of)[0, 1]) * ((of[0] - of[1]) ** 2).sum()
    S = np.exp(-((X[:, None] - Y[None]) ** 2).sum(-1) / square)
    slack = 0.3 if way == "sampled" else 1e-6
    found = dmsgd.select(form(X), 12, cover=(form(Y), w))
    check_steps(found, S, np.ones(250), w, slack=slack)
    q = rng.uniform(size=250)
    check_steps(
        dmsgd.select(form(X), 12, cover=form(Y), quality=q), S, q, np.ones(180), slack=slack
    )


def test_sparse_rows_far_from_zero_are_refused(rng):
    X = (rng.random((200, 30)) < 0.1) * rng.integers(1, 4, size=(200, 30)).astype(float)
    X[:, 0] = 1.7e9 + rng.integers(0, 30, 200)  # a time in seconds

    def near(rows):
        return dmsgd.near_duplicates(rows, 0.9, metric="euclidean").pairs.tolist()

    for choose in (lambda rows: dmsgd.select(rows, 5), near):
        choose(X)
        with pytest.raises(ValueError, match="sparse"):
            choose(sparse.csr_array(X))
    X[:, 0] -= X[:, 0].mean() - 1e5
    assert near(sparse.csr_array(X)) == near(X)
    with pytest.raises(ValueError, match="sparse"):
        dmsgd.select(sparse.csr_array(X), 5)
    X[:, 0] -= X[:, 0].mean()
    a, b = (dmsgd.select(form(X), 5, details=True) for form in (np.asarray, sparse.csr_array))
    assert a.coverage[-1] == pytest.approx(b.coverage[-1], abs=1e-5)
    same = sparse.csr_array(np.full((9, 3), 1e4))  # equal rows are no further apart than nothing
    with pytest.warns(dmsgd.KernelWarning, match="distinct"):
        dmsgd.select(same, 2)


@pytest.mark.parametrize("shape", [(1, 90), (16, 90), (17, 90), (300, 7), (300, 300)])
@pytest.mark.parametrize("density", [0.002, 0.3])
def test_products_of_sparse_rows_are_those_of_dense_ones(rng, shape, density):
    A, B = ((rng.random((n, 400), np.float32) * (rng.random((n, 400)) < density)) for n in shape)
    out = np.full(shape, np.nan, np.float32)
    multiply(sparse.csr_array(A), sparse.csr_array(B), out)
    np.testing.assert_allclose(out, A @ B.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("square", [True, False])
def test_similarities_may_be_given(rng, monkeypatch, square):
    S = rng.random((120, 120 if square else 90)) ** 4
    S = (S + S.T) / 2 if square else S
    S[S < 0.1] = 0
    if square:
        np.fill_diagonal(S, 1)
    q = rng.uniform(size=120)
    demand = q if square else np.ones(90)
    expected = dmsgd.select(S, 20, metric="precomputed", quality=q)
    check_steps(expected, S, q, demand)
    assert dmsgd.select(3 * S, 20, metric="precomputed", quality=q).tolist() == expected.tolist()
    for limit in (2**16, 0):
        compile_from(monkeypatch, limit)
        for form in (np.asarray, sparse.csr_array, sparse.csc_array):
            found = dmsgd.select(form(S), 20, metric="precomputed", quality=q)
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("own", [0.0, 1.0])
def test_a_graph_of_neighbours_may_be_given(rng, own):
    X = rng.normal(size=(400, 3))
    near = np.argsort(((X[:, None] - X[None]) ** 2).sum(-1), axis=1)[:, 1:9]
    S = np.zeros((400, 400))
    S[np.arange(400)[:, None], near] = 1.0  # equal similarities are no copies
    np.fill_diagonal(S, own)
    for form in (np.asarray, sparse.csr_array):
        found = dmsgd.select(form(S), 20, metric="precomputed", given=[7])
        check_steps(found, S, np.ones(400), np.ones(400), given=[7])


def test_items_that_are_excluded_are_covered(rng):
    X = np.concatenate([rng.normal(size=(40, 2)) * 0.1, rng.normal(size=(20, 2)) * 0.1 + 9])
    barred = np.arange(39)  # all but one of the dense group
    assert 39 in dmsgd.select(X, 2, exclude=barred)
    assert dmsgd.select(X, 1, exclude=barred).tolist() == [39]
    irrelevant = np.where(np.arange(60) < 40, 0.0, 1.0)
    assert dmsgd.select(X, 2, quality=irrelevant).min() >= 40


def test_the_best_set_is_hardly_better(rng):
    from itertools import combinations

    for _ in range(10):
        X = rng.normal(size=(10, 2))
        S = matrix(X)
        best = max(S[list(s)].max(0).sum() for s in combinations(range(10), 3))
        assert S[dmsgd.select(X, 3)].max(0).sum() >= (1 - 1 / np.e) * best


@pytest.mark.parametrize("size", [3000, 60_000])
def test_the_sample_is_drawn_by_demand(size):
    places = van_der_corput(0, size)
    assert places.min() == 0
    assert places.max() < 1
    assert np.abs(np.sort(places) - np.arange(size) / size).max() < 2 / size * np.log2(size)
    assert np.array_equal(van_der_corput(100, size), places[100:])


def generated(rng, n, clusters, columns):
    """Unit rows in clusters of uneven sizes."""
    shares = 1 / np.arange(1, clusters + 1) ** 0.8
    code = rng.choice(clusters, n, p=shares / shares.sum())
    X = rng.normal(size=(clusters, columns))[code] + 0.8 * rng.normal(size=(n, columns))
    return X / np.linalg.norm(X, axis=1)[:, None]


def test_a_sample_that_grows_covers_nearly_as_much_as_all(rng, monkeypatch):
    X = generated(rng, 9000, 600, 16)
    of = X[np.random.default_rng(0).choice(9000, 40, replace=False)]
    D = ((of[:, None] - of) ** 2).sum(-1)
    square = np.median(D[np.triu_indices(40, 1)])

    def covered(items):
        return np.exp(-(2 - 2 * (X @ X[items].T)).min(1) / square).mean()

    sampled = dmsgd.select(X, 60)
    assert dmsgd.select(X, 25).tolist() == sampled[:25].tolist()
    monkeypatch.setattr(coverage, "WHOLE", 10**9)
    whole, random = dmsgd.select(X, 60), [rng.choice(9000, 60, replace=False) for _ in range(10)]
    floor = np.mean([covered(items) for items in random])
    assert covered(sampled) - floor > 0.95 * (covered(whole) - floor)


def test_threads_and_blocks_do_not_change_the_set(rng, monkeypatch):
    X, q = generated(rng, 3000, 100, 12), rng.uniform(size=3000)
    monkeypatch.setattr(coverage, "WHOLE", 100)
    monkeypatch.setattr(coverage, "START", 512)
    monkeypatch.setattr("dmsgd.selection.pool.KEPT", 0)
    monkeypatch.setattr(similarity, "SHARE", 300)
    monkeypatch.setattr("dmsgd.runtime.threads.available_cores", lambda: 5)
    sets = [dmsgd.select(X, 40, quality=q, workers=workers).tolist() for workers in (1, 2, 5)]
    for tile, width, share in ((128, 100, 300), (200, 64, 1000), (1024, 512, 700)):
        for name, size in {"TILE": tile, "WIDTH": width, "SHARE": share}.items():
            monkeypatch.setattr(similarity, name, size)
        sets.append(dmsgd.select(X, 40, quality=q).tolist())
    assert all(each == sets[0] for each in sets)


def test_estimates_do_not_drift(rng, monkeypatch):
    X = rng.normal(size=(700, 6))
    monkeypatch.setattr(coverage, "WHOLE", 10**9)
    ones = np.ones(700)
    state = coverage.Coverage(similarity.Rows(X, None, 8.0), ones, ones, np.zeros(700))
    open_ = np.ones(700, dtype=bool)
    for _ in range(50):
        item, gain = state.best(open_)
        assert gain == pytest.approx(state.estimates[item], rel=1e-4)
        state.take(item)
        open_[item] = False
    S = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 8)
    anew = np.maximum(S - state.covered, 0).sum(1)
    assert np.abs(state.estimates - anew).max() < 1e-6 * S.sum(1).max()
    assert state.amount == pytest.approx(S[~open_].max(0).sum(), rel=1e-6)


def test_similarities_are_those_of_numpy(rng):
    from dmsgd.compiled.cover import add_gains, add_kept_gains, similarities

    X = rng.normal(size=(50, 4)).astype(np.float32)
    norms = (X**2).sum(1)
    G = (X @ X.T)[:30].copy()
    low, weights = rng.random(50).astype(np.float32), rng.random(50).astype(np.float32)
    high = low + rng.random(50).astype(np.float32) * (1 - low)
    for rate in np.float32([1e-3, 1.0, 40.0]):
        S = 2 * rate * G
        found = np.zeros(30)
        add_gains(S, rate * norms[:30], rate * norms, np.log2(low) + rate * norms, low, high,
                  weights, found)  # fmt: skip
        similarities(S, rate * norms[:30], rate * norms)
        D = ((X[:30, None].astype(float) - X) ** 2).sum(-1)
        exact = np.exp2(-rate * D)
        assert np.abs(S - exact).max() < 2e-6 * max(1, rate)
        gains = np.maximum(np.minimum(S, high) - low, 0).astype(float) @ weights
        assert found == pytest.approx(gains, rel=1e-5, abs=1e-5)
        kept = np.zeros(30)
        add_kept_gains(np.ascontiguousarray(S.T), np.arange(50), low, high, weights, 0, 30, kept)
        assert kept == pytest.approx(gains, rel=1e-5, abs=1e-5)


def test_the_rest_is_by_quality_where_all_is_covered(rng):
    X = np.repeat(rng.normal(size=(3, 2)), 4, axis=0)
    with pytest.warns(dmsgd.KernelWarning, match="distinct"):
        items = dmsgd.select(X, 5, how="cover", quality=np.arange(1.0, 13.0))
    assert len(set(items[:3] // 4)) == 3
    assert items[3:].tolist() == sorted(set(range(12)) - set(items[:3].tolist()))[::-1][:2]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_scale_at_which_few_items_cover_all_is_reduced(rng, form):
    X = np.repeat(rng.random((500, 1)), 2, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dmsgd.KernelWarning)
        items = dmsgd.select(form(X), 200, how="cover")
    assert len(set(X[items, 0])) == 200
    near = np.abs(X - X[items, 0]).min(1)
    assert near.max() < 0.008
    with pytest.warns(dmsgd.KernelWarning, match="only 500 of 501"):
        items = dmsgd.select(form(X), 501, how="cover")
    assert len(set(X[items[:500], 0])) == 500


def test_qualities_of_any_size_count(rng):
    q = np.logspace(0, -200, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dmsgd.KernelWarning)
        items = dmsgd.select(rng.normal(size=(30, 4)), 20, quality=q, how="cover")
    assert items.tolist() == list(range(20))


@pytest.mark.parametrize("whole", [100, 10000])
def test_items_without_quality_or_excluded_are_not_chosen(rng, monkeypatch, whole):
    monkeypatch.setattr(coverage, "WHOLE", whole)
    X, q, barred = rng.normal(size=(600, 3)), rng.random(600), np.arange(300)
    for last in (500, 320):
        q[last:] = 0
        items = dmsgd.select(X, 15, quality=q, exclude=barred, given=[599], how="cover")
        assert items.min() >= 300
        assert items.max() < last
    with pytest.warns(dmsgd.KernelWarning, match="only 0 of 2"):
        items = dmsgd.select(X, 2, quality=q, exclude=np.arange(500), how="cover")
    assert items.tolist() == [500, 501]


def test_a_long_choice_is_announced_once(rng, monkeypatch, caplog):
    monkeypatch.setattr("dmsgd.selection.cover.PAIRS", 0.0)
    for name in ("TRIAL", "LONG", "EVERY"):
        monkeypatch.setattr(f"dmsgd.runtime.progress.{name}", 0.0)
    with caplog.at_level(logging.WARNING, "dmsgd"):
        dmsgd.select(rng.normal(size=(300, 4)), 30)
    assert caplog.text.count("covering set of 30 items of 300 takes about") == 1
    assert "workers" not in caplog.text
    shares = [record.share for record in caplog.records if hasattr(record, "share")]
    assert len(shares) == 30
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    monkeypatch.setattr("dmsgd.runtime.progress.VERY_LONG", 0.0)
    with caplog.at_level(logging.WARNING, "dmsgd"):
        dmsgd.select(rng.normal(size=(300, 4)), 30)
    assert "workers=-1" in caplog.text
