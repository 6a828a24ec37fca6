"""The query strategy for scikit-activeml, with the real package."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import dmsgd

pytestmark = pytest.mark.frameworks

X, Y = load_digits(return_X_y=True)
X, Y = X[:400] / 16, Y[:400]


@pytest.fixture
def activeml():
    """Return the strategy and a classifier that knows its classes."""
    pytest.importorskip("skactiveml", reason="scikit-activeml is not installed")
    from skactiveml.classifier import SklearnClassifier

    from dmsgd.activeml import DiverseQuery

    return DiverseQuery, SklearnClassifier(LogisticRegression(), classes=range(10))


def labelled(count):
    y = np.full(len(Y), np.nan)
    y[:count] = Y[:count]
    return y


@pytest.mark.parametrize("how", ["greedy", "cover", "medoids"])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_activeml_gets_what_select_chooses(activeml, how, count):
    Strategy, classifier = activeml
    strategy, y = Strategy(how=how, random_state=3), labelled(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a classifier with few classes
        chosen, utilities = strategy.query(X, y, classifier, batch_size=8, return_utilities=True)
        again = strategy.query(X, y, classifier, batch_size=8)
        worth = dmsgd.uncertainty(classifier.fit(X, y).predict_proba(X))
    worth = worth if worth.any() else np.ones(len(X))  # with one class all is certain
    assert chosen.tolist() == again.tolist()
    assert utilities.shape == (8, len(X))
    assert np.isnan(utilities[0]).sum() == count
    assert np.isnan(utilities[7]).sum() == count + 7
    expected = dmsgd.select(X, 8, quality=worth, given=tuple(range(count)), how=how)
    assert chosen.tolist() == expected.tolist()
    if how == "greedy":
        assert utilities[0, count:] == pytest.approx(worth[count:])


def gains(S, worth, covered):
    """Return each sample's worth times the share of all worth that it would cover."""
    return worth * (np.maximum(S - covered, 0) @ worth) / worth.sum()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_utilities_in_activeml_are_gains(activeml, metric):
    Strategy, classifier = activeml
    y, diversity = labelled(20), 0.4
    chosen, utilities = Strategy(metric=metric, diversity=diversity).query(
        X, y, classifier, batch_size=12, return_utilities=True
    )
    worth = dmsgd.uncertainty(classifier.fit(X, y).predict_proba(X))
    worth[:20] = 0
    options = {"quality": worth, "given": range(20), "metric": metric, "diversity": diversity}
    found = dmsgd.select(X, 12, details=True, **options)
    assert chosen.tolist() == found.items.tolist()
    rows = X / np.linalg.norm(X, axis=1)[:, None] if metric == "cosine" else X
    S = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(-1) / found.scale)
    worth = (worth / worth.max()) ** ((1 - diversity) / diversity)
    covered = S[:20].max(0)
    for step, item in enumerate(chosen):
        open_ = np.isfinite(utilities[step])
        assert np.flatnonzero(~open_).tolist() == sorted([*range(20), *chosen[:step]])
        expected = gains(S, worth, covered)
        np.testing.assert_allclose(utilities[step, open_], expected[open_], rtol=1e-3, atol=1e-6)
        assert utilities[step, item] >= np.nanmax(utilities[step]) * (1 - 1e-5)
        assert utilities[step, item] == pytest.approx(worth[item] * found.gains[step], rel=1e-3)
        covered = np.maximum(covered, S[item])


def test_activeml_covers_samples_that_are_no_candidates(activeml):
    """The candidate beside many that may not be chosen stands for more than the one alone."""
    Strategy, classifier = activeml
    rng = np.random.default_rng(0)
    places = np.array([[3.0, 0.0]] * 40 + [[0.0, 3.0]] * 4 + [[-3.0, -3.0]] * 2)
    rows = places + 0.1 * rng.normal(size=(46, 2))
    y = np.full(46, np.nan)
    y[44:] = 0, 1
    fitted = type(classifier)(LogisticRegression(C=1e-9), classes=range(10)).fit(rows, y)
    for candidates in ([0, 40], [40, 0]):
        assert Strategy().query(rows, y, fitted, fit_clf=False, candidates=candidates) == [0]


def test_activeml_asks_among_the_candidates(activeml):
    Strategy, classifier = activeml
    strategy, y = Strategy(random_state=3), labelled(20)
    every = strategy.query(X, y, classifier, batch_size=8)
    assert every.tolist() == strategy.query(X, y, classifier, candidates=range(20, 400),
                                            batch_size=8).tolist()  # fmt: skip
    some, utilities = strategy.query(
        X, y, classifier, candidates=range(100, 110), batch_size=8, return_utilities=True
    )
    assert set(some) <= set(range(100, 110))
    assert np.isfinite(utilities[0]).nonzero()[0].tolist() == list(range(100, 110))
    with pytest.warns(UserWarning, match="batch_size"):
        assert len(strategy.query(X, y, classifier, candidates=[30, 31], batch_size=8)) == 2


def test_activeml_leaves_the_classifier_alone_and_checks_it(activeml):
    Strategy, classifier = activeml
    y = labelled(20)
    Strategy().query(X, y, classifier)
    assert not hasattr(classifier, "estimator_")
    fitted = classifier.fit(X, y)
    assert Strategy().query(X, y, fitted, fit_clf=False).shape == (1,)
    for wrong in (LogisticRegression(), "clf"):
        with pytest.raises(TypeError, match="clf"):
            Strategy().query(X, y, wrong)
    with pytest.raises(ValueError, match="how"):
        Strategy(how="best").query(X, y, classifier)
    with pytest.raises(ValueError, match="metric"):
        Strategy(metric="precomputed").query(X, y, classifier)
