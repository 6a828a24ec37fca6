"""Query strategies for scikit-activeml and modAL, with the real packages."""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_X_y

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


@pytest.fixture
def learner():
    """Return the learner of modAL."""
    models = pytest.importorskip("modAL.models", reason="modAL is not installed")
    if "force_all_finite" not in inspect.signature(check_X_y).parameters:
        pytest.skip("modAL 0.4.2 learns with scikit-learn up to 1.7")
    return partial(models.ActiveLearner, LogisticRegression(), query_strategy=dmsgd.modal.query)


def labelled(count):
    y = np.full(len(Y), np.nan)
    y[:count] = Y[:count]
    return y


@pytest.mark.parametrize("how", ["draw", "greedy", "cover"])
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
    assert utilities[0, count:] == pytest.approx(worth[count:])
    if how != "draw":
        expected = dmsgd.select(X, 8, quality=worth, given=tuple(range(count)), how=how)
        assert chosen.tolist() == expected.tolist()


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


@pytest.mark.filterwarnings("ignore:'force_all_finite':FutureWarning")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_modal_gets_what_select_chooses(learner, kind):
    rows = kind(X)
    own = learner(X_training=rows[:20], y_training=Y[:20])
    for _ in range(3):
        before = own.X_training
        items, found = own.query(rows[20:], n_instances=8)
        assert found.shape == (8, 64)
        quality = dmsgd.uncertainty(own.predict_proba(rows[20:]))
        stacked = (sparse.vstack if sparse.issparse(rows) else np.concatenate)([rows[20:], before])
        size = before.shape[0]
        expected = dmsgd.select(
            stacked,
            8,
            quality=np.r_[quality, np.zeros(size)],
            given=tuple(range(380, 380 + size)),
            how="cover",
        )
        assert items.tolist() == expected.tolist()
        own.teach(found, Y[20:][items])


@pytest.mark.filterwarnings("ignore:'force_all_finite':FutureWarning")
def test_modal_begins_without_labels(learner):
    own = learner()
    items, _ = own.query(X, n_instances=5)
    assert items.tolist() == dmsgd.select(X, 5, how="cover").tolist()
    own.teach(X[items], Y[items])
    assert len(set(own.query(X, n_instances=5)[0].tolist())) == 5
