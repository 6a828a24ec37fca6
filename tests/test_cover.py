"""`select(how="cover")` is greedy: quality times coverage; `uncertainty` gives the quality."""

import logging
import warnings

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.designs import cover as module
from dmsgd.designs import select as selecting
from test_selecting import matrix


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def check_facility_location(chosen, S, weights, given=(), barred=()):
    """Each item adds most to Σ_j w_j max_i S_ij, times its own w, up to float32's rounding."""
    covered, taken = S[list(given)].max(0, initial=0.0), [*given, *barred]
    first = weights * (np.maximum(S - covered, 0) @ weights)
    for item in chosen.tolist():
        gains = weights * (np.maximum(S - covered, 0) @ weights)
        gains[taken] = -1
        assert gains[item] >= gains.max() - 1e-6 * first.max()
        equal = np.flatnonzero(S[item] > 1 - 1e-9)
        assert item == max(set(equal) - set(taken), key=lambda i: (weights[i], -i))  # of copies
        covered, taken = np.maximum(covered, S[item]), [*taken, item]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("columns", [2, 5, 30])
def test_it_is_greedy_facility_location(rng, monkeypatch, kept, columns):
    monkeypatch.setattr(module, "TILE", 64)
    monkeypatch.setattr(module, "AT_A_TIME", 5000)
    if not kept:
        monkeypatch.setattr(module, "KEPT", 0)
    X = rng.normal(size=(300, columns)) * np.linspace(0.5, 2, 300)[:, None] + 7
    X[250:] = X[:50]  # of copies that with the largest weight is chosen
    q, given, barred = rng.uniform(size=300), [3, 9], [5, 17]
    wide = matrix(X, of=X[np.random.default_rng(0).choice(300, 40, replace=False)])
    demand = q.copy()
    demand[[*given, *barred]] = 0
    nearest = -np.log(wide[given].max(0)[demand > 0])  # the median of these is the scale
    S = wide ** max(1.0, 1 / np.median(nearest))
    for rows in (X, sparse.csr_array(X)):
        options = {"quality": q, "given": given, "exclude": barred, "how": "cover"}
        found = dmsgd.select(rows, 25, **options)
        check_facility_location(found, S, demand, given, barred)
        assert dmsgd.select(rows, 9, **options).tolist() == found[:9].tolist()
    check_facility_location(dmsgd.select(X, 25, how="cover"), wide, np.ones(300))


def test_similarities_are_those_of_numpy(rng):
    from dmsgd.compiled.cover import similarities

    X = rng.normal(size=(50, 4)).astype(np.float32)
    norms = (X**2).sum(1)
    G = (X @ X.T)[:30].copy()
    for rate in np.float32([1e-3, 1.0, 40.0]):
        S = 2 * rate * G
        similarities(S, rate * norms[:30], rate * norms)
        D = ((X[:30, None].astype(float) - X) ** 2).sum(-1)
        assert np.abs(S - np.exp2(-rate * D)).max() < 2e-6 * max(1, rate)


def test_of_many_items_a_sample_by_quality_is_covered(rng, monkeypatch):
    monkeypatch.setattr(selecting, "MANY", 400)
    centres = rng.normal(size=(8, 5)) * 9
    place = rng.integers(8, size=2000)
    X, q = centres[place] + rng.normal(size=(2000, 5)), np.where(place < 6, 1.0, 1e-9)
    found = dmsgd.select(X, 5, quality=q, given=np.flatnonzero(place == 0)[:1], how="cover")
    assert sorted(place[found]) == [1, 2, 3, 4, 5]
    assert dmsgd.select(X, 5, how="cover").tolist() == dmsgd.select(X, 5, how="cover").tolist()


def test_sums_over_the_sample_are_unbiased(rng):
    q, values, sums = rng.random(500) ** 3, rng.normal(size=500) + 1, []
    for seed in range(400):
        items, weights = selecting._sample(q, 100, seed)
        assert items.size == 100
        sums.append(weights @ values[items])
    assert abs(np.mean(sums) - q @ values) < 4.5 * np.std(sums) / 20


def test_the_rest_is_by_quality_where_all_is_covered(rng):
    X = np.repeat(rng.normal(size=(3, 2)), 4, axis=0)
    with pytest.warns(dmsgd.KernelWarning, match="distinct"):
        items = dmsgd.select(X, 5, how="cover", quality=np.arange(1.0, 13.0))
    assert len(set(items[:3] // 4)) == 3
    assert items[3:].tolist() == sorted(set(range(12)) - set(items[:3].tolist()))[::-1][:2]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_scale_at_which_few_items_cover_all_is_reduced(rng, form):
    X = np.repeat(rng.random((1000, 1)), 2, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dmsgd.KernelWarning)
        items = dmsgd.select(form(X), 400, how="cover")
    assert len(set(X[items, 0])) == 400
    near = np.abs(X - X[items, 0]).min(1)
    assert near.max() < 0.004
    with pytest.warns(dmsgd.KernelWarning, match="1,000 items"):
        items = dmsgd.select(form(X), 1001, how="cover")
    assert len(set(X[items[:1000], 0])) == 1000


def test_qualities_of_any_size_count(rng):
    q = np.logspace(0, -200, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dmsgd.KernelWarning)
        items = dmsgd.select(rng.normal(size=(30, 4)), 20, quality=q, how="cover")
    assert items.tolist() == list(range(20))


@pytest.mark.parametrize("many", [100, 10000])
def test_items_without_quality_or_excluded_are_not_chosen(rng, monkeypatch, many):
    monkeypatch.setattr(selecting, "MANY", many)
    X, q, barred = rng.normal(size=(600, 3)), rng.random(600), np.arange(300)
    for last in (500, 320):
        q[last:] = 0
        items = dmsgd.select(X, 15, quality=q, exclude=barred, given=[599], how="cover")
        assert items.min() >= 300
        assert items.max() < last
    with pytest.warns(dmsgd.KernelWarning, match="0 items"):
        items = dmsgd.select(X, 2, quality=q, exclude=np.arange(500), how="cover")
    assert items.tolist() == [500, 501]


def test_a_long_choice_is_announced(rng, monkeypatch, caplog):
    monkeypatch.setattr("dmsgd.inputs.progress.SPEED", 1e3)
    monkeypatch.setattr("dmsgd.inputs.progress.EVERY", 0.0)
    with caplog.at_level(logging.WARNING, "dmsgd"):
        dmsgd.select(rng.normal(size=(300, 4)), 3, how="cover")
    assert "covering set of 3 items of 300 takes about" in caplog.text
    shares = [record.share for record in caplog.records if hasattr(record, "share")]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


P = np.array([[0.5, 0.5, 0.0], [0.7, 0.1, 0.2], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("margin", [1, 0.5, 0, 1]),
        ("entropy", [np.log(2) / np.log(3), 0.72981, 0, 1]),
        ("least confidence", [0.75, 0.45, 0, 1]),
    ],
)
def test_uncertainty_is_what_its_name_says(how, expected):
    assert dmsgd.uncertainty(P, how) == pytest.approx(expected, abs=1e-4)
    with np.errstate(divide="ignore"):
        logits = np.log(P) + np.array([[3.0], [-1.0], [0.0], [50.0]])
    logits = np.maximum(logits, -1e4)
    assert dmsgd.uncertainty(logits, how, logits=True) == pytest.approx(expected, abs=1e-4)


def test_uncertainty_of_tensors():
    torch = pytest.importorskip("torch")
    logits = torch.randn(20, 5, requires_grad=True)
    expected = dmsgd.uncertainty(torch.softmax(logits.detach().double(), 1).numpy())
    assert dmsgd.uncertainty(logits, logits=True) == pytest.approx(expected, abs=1e-6)
    assert dmsgd.uncertainty(torch.softmax(logits, 1).half()) == pytest.approx(expected, abs=1e-2)


def test_what_is_no_probability_raises():
    for wrong in (P * 2, P - 0.1, P * [[1], [1], [-1], [1]]):
        with pytest.raises(ValueError, match="logits=True"):
            dmsgd.uncertainty(wrong)
    with pytest.raises(ValueError, match="two classes"):
        dmsgd.uncertainty(np.ones((4, 1)))
    with pytest.raises(ValueError, match="how"):
        dmsgd.uncertainty(P, "variance")
