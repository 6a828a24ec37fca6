"""The estimator for scikit-learn: `DiverseSelector`."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import check_estimator

import dmsgd
from dmsgd.sklearn import DiverseSelector

RNG = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16, y[:600]


@pytest.mark.parametrize("how", ["greedy", "cover", "medoids"])
def test_a_selector_selects_what_select_does(how):
    quality = 1 + RNG.random(600)
    selector = DiverseSelector(n_to_select=30, how=how, diversity=0.6)
    selector.fit(X, y, quality=quality, given=[1, 2], exclude=[3])
    expected = dmsgd.select(
        X, 30, quality=quality, diversity=0.6, given=[1, 2], exclude=[3], how=how
    )
    np.testing.assert_array_equal(selector.selected_idx_, expected)
    assert np.flatnonzero(selector.support_).tolist() == sorted(expected)


def test_a_selector_takes_a_number_or_a_share():
    counts = {None: 300, 0.1: 60, 1.0: 600, 1e-6: 1, 7: 7}
    for given, count in counts.items():
        assert len(DiverseSelector(given, how="greedy").fit(X).selected_idx_) == count
    for bad in (0, 0.0, 1.5, 601, "all", True):
        with pytest.raises((TypeError, ValueError), match=r"n_to_select|k=601"):
            DiverseSelector(bad).fit(X)


def test_a_selector_of_a_covering_set_tells_what_items_add_and_stand_for():
    selector = DiverseSelector(n_to_select=12).fit(X)
    expected = dmsgd.select(X, 12, details=True)
    for name in ("gains", "coverage", "stands_for"):
        np.testing.assert_array_equal(getattr(selector, f"{name}_"), getattr(expected, name))
    selector.set_params(how="greedy").fit(X)
    for name in ("gains_", "coverage_", "stands_for_"):
        assert not hasattr(selector, name)


def test_a_selector_passes_every_wish_on():
    groups, costs = np.arange(600) % 3, 1 + RNG.random(600)
    rules = {"at_most": 4, "at_least": {2: 4}, "duplicates": 0.9, "metric": "cosine"}
    selector = DiverseSelector(9, **rules).fit(X, groups=groups, cover=(X[:50], y[:50] + 1.0))
    expected = dmsgd.select(X, 9, groups=groups, cover=(X[:50], y[:50] + 1.0), **rules)
    np.testing.assert_array_equal(selector.selected_idx_, expected)
    assert np.bincount(groups[expected])[2] == 4
    assert selector.selected_idx_.tolist() != DiverseSelector(9).fit(X).selected_idx_.tolist()
    S = np.exp(-((X[:, None, :] - X[None, :40]) ** 2).sum(-1) / 8)
    for form in (np.asarray, sparse.csr_array):
        ours = DiverseSelector(5, metric="precomputed").fit(form(S)).selected_idx_
        assert ours.tolist() == dmsgd.select(S, 5, metric="precomputed").tolist()
    with pytest.raises(ValueError, match="groups"):
        DiverseSelector(9, at_most=4).fit(X)
    with pytest.raises(ValueError, match="until needs how='cover'"):
        DiverseSelector(9, how="greedy", until=0.5).fit(X)
    bought = DiverseSelector(budget=20.0).fit(X, costs=costs).selected_idx_
    assert bought.tolist() == dmsgd.select(X, costs=costs, budget=20.0).tolist()


def test_a_selector_without_a_number_ends_where_enough_is_covered_or_spent():
    enough = DiverseSelector(until=0.6).fit(X)
    assert enough.coverage_[-2] < 0.6 <= enough.coverage_[-1] + 1e-6
    assert len(DiverseSelector(3, until=0.6).fit(X).selected_idx_) == 3
    first = DiverseSelector(4).fit(X)
    rest = DiverseSelector(until=0.6, m=first.m_).fit(X, given=first.selected_idx_)
    rounds = [*first.selected_idx_, *rest.selected_idx_]
    assert rounds == enough.selected_idx_.tolist()
    bought = DiverseSelector(budget=400.0).fit(X, costs=np.ones(600))
    assert len(bought.selected_idx_) == 400


@pytest.mark.outside
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["cover", pytest.param("greedy", marks=pytest.mark.long)])
def test_scikit_learns_checks_of_a_selector(how):
    check_estimator(DiverseSelector(how=how))
