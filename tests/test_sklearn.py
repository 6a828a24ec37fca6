"""The estimator that learns from diverse batches: a citizen of scikit-learn."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import MiniBatchNMF
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dmsgd
from dmsgd.sklearn import Diversified

X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16, y[:600]


def model(**settings):
    return Diversified(SGDClassifier(random_state=0), random_state=0, **settings)


def test_it_learns_from_the_batches_of_the_design():
    ours = model(k=20, w=0.7, standardize=True, normalize=True, epochs=3).fit(X, y)
    by_hand = SGDClassifier(random_state=0)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    design = dmsgd.diversify(X, 20, y, 0.7, standardize=True, normalize=True)
    for _ in dmsgd.sgd.train_sklearn(by_hand, X, y, design, steps=90, seed=seed):
        pass
    np.testing.assert_array_equal(ours.estimator_.coef_, by_hand.coef_)
    assert ours.design_.fingerprint() == design.fingerprint()
    np.testing.assert_array_equal(ours.predict(X), by_hand.predict(X))
    np.testing.assert_array_equal(ours.decision_function(X), by_hand.decision_function(X))
    assert ours.classes_.tolist() == list(range(10))
    assert ours.n_features_in_ == 64


@pytest.mark.parametrize("batches", ["k-DPP", "weighted", "partition", "stratified", "uniform"])
def test_every_kind_of_batches_learns(batches):
    assert model(batches=batches, k=20, epochs=5).fit(X, y).score(X, y) > 0.85


@pytest.mark.long
def test_a_search_chooses_w_k_and_the_batches():
    grid = {"k": [10, 30], "w": [0.0, 0.9], "batches": ["uniform", "k-DPP"]}
    search = GridSearchCV(model(epochs=2, normalize=True), grid, cv=3, n_jobs=2).fit(X, y)
    assert set(search.best_params_) == {"k", "w", "batches"}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(X, y) > 0.8


def test_it_pickles_and_copies():
    fitted = model(k=20, epochs=1).fit(X, y)
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert not hasattr(pickle.loads(pickle.dumps(model())), "classes_")


def test_it_goes_into_pipelines_and_is_cloned():
    steps = make_pipeline(StandardScaler(), model(k=10, epochs=2))
    assert cross_val_score(steps, X, y, cv=3).mean() > 0.7
    cloned = clone(model(k=11, target="uniform"))
    assert cloned.get_params()["k"] == 11
    assert cloned.get_params()["estimator__alpha"] == SGDClassifier().alpha
    assert not hasattr(cloned, "estimator_")


def test_it_is_what_the_estimator_is():
    assert is_classifier(model())
    regressor = Diversified(SGDRegressor(), k=10, epochs=3, random_state=0)
    assert is_regressor(regressor)
    assert not is_classifier(regressor)
    assert regressor.fit(X, X[:, 20]).score(X, X[:, 20]) > 0.5
    assert not hasattr(regressor, "predict_proba")
    with pytest.raises(NotFittedError):
        model().predict(X)


def test_without_labels():
    means = Diversified(MiniBatchKMeans(5, random_state=0), k=20, epochs=2, random_state=0).fit(X)
    assert means.predict(X).shape == (600,)
    assert means.transform(X).shape == (600, 5)
    factors = Diversified(MiniBatchNMF(4, random_state=0), k=20, epochs=1, random_state=0).fit(X)
    assert factors.transform(X).shape == (600, 4)


def test_a_transformer_is_one_in_pipelines():
    means = Diversified(MiniBatchKMeans(5, random_state=0), k=20, epochs=1, random_state=0)
    expected = means.fit(X).transform(X)
    np.testing.assert_array_equal(means.fit_transform(X), expected)
    frame = make_pipeline(StandardScaler(), means).set_output(transform="pandas").fit_transform(X)
    assert frame.columns.tolist() == [f"minibatchkmeans{i}" for i in range(5)]
    assert means.get_feature_names_out().tolist() == frame.columns.tolist()
    assert not any(hasattr(model(), name) for name in ("fit_transform", "set_output"))


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("batches", ["k-DPP", "stratified"])
def test_labels_in_a_column(batches):
    learned = model(k=20, w=0.5, epochs=1, batches=batches).fit(X, y[:, None])
    np.testing.assert_array_equal(
        learned.predict(X), model(k=20, w=0.5, epochs=1, batches=batches).fit(X, y).predict(X)
    )


def test_sparse_features():
    ours = model(k=20, epochs=2).fit(sparse.csr_array(X), y)
    assert ours.score(sparse.csr_array(X), y) > 0.7


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="unknown batches 'other'; use 'k-DPP'"):
        model(batches="other").fit(X, y)
    with pytest.raises(TypeError, match="LogisticRegression has no partial_fit"):
        Diversified(LogisticRegression(), k=10).fit(X, y)
    with pytest.raises(ValueError, match="epochs must be positive"):
        model(epochs=0).fit(X, y)
    with pytest.raises(ValueError, match="batches='stratified' needs y"):
        Diversified(MiniBatchKMeans(3), batches="stratified").fit(X)
    with pytest.raises(ValueError, match="X must have one row per item"):
        model(batches="uniform").fit(X[:0], y[:0])
