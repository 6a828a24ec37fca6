"""The estimators for scikit-learn: `Diversified` and `DiverseSelector`."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import IncrementalPCA, MiniBatchNMF
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import dmsgd
from dmsgd.sklearn import DiverseSelector, Diversified

X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16, y[:600]


def model(**settings):
    return Diversified(SGDClassifier(random_state=0), random_state=0, **settings)


def test_it_learns_from_the_batches_of_the_design():
    ours = model(k=20, w=0.7, standardize=True, normalize=True, epochs=3).fit(X, y)
    by_hand = SGDClassifier(random_state=0)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    design = dmsgd.diversify(X, 20, y, w=0.7, standardize=True, normalize=True)
    for _ in dmsgd.sgd.train_sklearn(by_hand, X, y, design, steps=90, seed=seed):
        pass
    np.testing.assert_array_equal(ours.estimator_.coef_, by_hand.coef_)
    assert ours.design_.fingerprint() == design.fingerprint()
    np.testing.assert_array_equal(ours.predict(X), by_hand.predict(X))
    np.testing.assert_array_equal(ours.decision_function(X), by_hand.decision_function(X))
    assert ours.classes_.tolist() == list(range(10))
    assert ours.n_features_in_ == 64


@pytest.mark.parametrize("batches", ["k-DPP", "weighted", "stratified", "uniform"])
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


def test_what_another_fit_has_learned_is_not_its_own():
    around = Diversified(SGDClassifier(random_state=0).fit(X, y), k=10, random_state=0)
    assert not hasattr(around, "coef_")
    with pytest.raises(NotFittedError):
        around.classes_  # noqa: B018
    assert around.fit(X, y).coef_.shape == (10, X.shape[1])


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


RNG = np.random.default_rng(0)
DUPLICATES = np.repeat(RNG.normal(size=(20, 5)), 4, axis=0) + 1e-9 * RNG.normal(size=(80, 5))
FIRST = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "digits": load_digits(return_X_y=True),
    "near-duplicates": (DUPLICATES, np.arange(80) % 2),
    "one column": (RNG.normal(size=(90, 1)), np.arange(90) % 2),
    "few rows": (RNG.normal(size=(7, 3)), np.arange(7) % 2),
}


@pytest.mark.filterwarnings("ignore:column .* of X")  # wine and breast cancer: no common unit
@pytest.mark.filterwarnings("ignore:batches have 20 items")
@pytest.mark.parametrize("name", FIRST)
def test_it_needs_no_argument_but_the_estimator(name):
    fitted = Diversified(GaussianNB()).fit(*FIRST[name])
    assert fitted.design_.k == {"few rows": 7, "near-duplicates": 20}.get(name, 32)
    if name in ("iris", "wine", "breast cancer", "digits"):
        assert fitted.score(*FIRST[name]) > 0.75


def test_batches_are_as_large_as_the_data_has():
    twice = np.repeat([[1.0, 2.0], [3.0, 1.0]], 20, axis=0)
    with pytest.warns(dmsgd.KernelWarning, match="2 items instead of k=32"):
        assert (
            Diversified(GaussianNB(), kernel="linear").fit(twice, np.arange(40) % 2).design_.k == 2
        )
    with pytest.warns(dmsgd.KernelWarning, match="instead of k=100"):
        assert 50 < model(k=100, kernel="linear").fit(X, y).design_.k <= 64
    one = Diversified(StandardScaler()).fit([[1.0, 2.0]])
    assert one.design_.k == 1
    search = GridSearchCV(model(epochs=1), {"k": [5, 1000]}, cv=3, error_score="raise")
    search.fit(X[:90], y[:90])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_it_has_what_the_estimator_learned():
    frame = pd.DataFrame(X[:, 10:30]).add_prefix("pixel")
    fitted = model(k=20, epochs=1).fit(frame, y)
    assert fitted.coef_ is fitted.estimator_.coef_
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    means = Diversified(MiniBatchKMeans(5), k=20, epochs=1, random_state=0)
    np.testing.assert_array_equal(means.fit_predict(X), means.labels_)
    assert means.cluster_centers_.shape == (5, 64)
    assert means.labels_.shape == (600,)
    # Parameters are those of `get_params`; `partial_fit` would learn from any batches.
    assert not any(hasattr(means, name) for name in ("max_iter", "partial_fit", "coef_"))


def test_one_random_state_is_enough():
    first, again, other = (
        Diversified(SGDClassifier(), k=20, epochs=1, random_state=seed).fit(X, y).coef_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0
    set_already = model(k=20, epochs=1).fit(X, y).estimator_
    assert set_already.random_state == 0


SEEN = []


class Weighted(SGDClassifier):
    """Remembers the rows and weights that it has seen."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        SEEN.append((X[:, 0], sample_weight))
        return super().partial_fit(X, y, classes, sample_weight)


@pytest.mark.parametrize("routing", [False, True])
def test_weights_of_items_reach_their_batches(routing):
    rows = 1 + RNG.random(size=(60, 8))
    data, weights = (rows, np.arange(60) % 2), rows[:, 0]
    with sklearn.config_context(enable_metadata_routing=routing):
        inner = Weighted()
        if routing:
            inner.set_partial_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        diverse = Diversified(inner, k=5, epochs=1, random_state=0)
        SEEN.clear()
        diverse.fit(*data, sample_weight=weights)
        GridSearchCV(diverse, {"w": [0, 0.5]}, cv=3, error_score="raise").fit(
            *data, sample_weight=weights
        )
        assert len(SEEN) == 12 + 2 * 3 * 8 + 12
        for first_column, given in SEEN:
            np.testing.assert_array_equal(given, first_column)
        SEEN.clear()
        diverse.set_params(unbiased=True).fit(*data, sample_weight=weights)
        unbiased = 5 * dmsgd.unbiased_weights(diverse.design_)
        batches = diverse.design_.sample(12, int(np.random.RandomState(0).randint(2**31 - 1)))
        for batch, (_, given) in zip(batches, SEEN, strict=True):
            np.testing.assert_allclose(given, (unbiased * weights)[batch])


@pytest.mark.filterwarnings("error:The scoring")
def test_a_search_weights_its_scores_too():
    weights = RNG.random(600)
    folds = StratifiedKFold(3)
    search = GridSearchCV(model(k=20, epochs=1), {"w": [0.5]}, cv=folds, error_score="raise")
    found = search.fit(X, y, sample_weight=weights).cv_results_["split0_test_score"][0]
    train, test = next(folds.split(X, y))
    learned = model(k=20, epochs=1, w=0.5).fit(X[train], y[train], sample_weight=weights[train])
    assert found == pytest.approx(learned.score(X[test], y[test], weights[test]))
    assert found != pytest.approx(learned.score(X[test], y[test]))


def test_arguments_that_partial_fit_does_not_take():
    with pytest.raises(TypeError, match="takes no sample_wieght"):
        model(k=5).fit(X, y, sample_wieght=np.ones(600))
    with pytest.raises(ValueError, match="sample_weight must have one number per item"):
        model(k=5).fit(X, y, sample_weight=np.ones(599))
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="sample_weight"),
    ):
        model(k=5).fit(X, y, sample_weight=np.ones(600))


def test_several_labels_per_item():
    several = np.column_stack([X[:, 20] > 0.5, X[:, 30] > 0.5]).astype(int)
    network = Diversified(MLPClassifier((8,)), epochs=1, random_state=0).fit(X, several)
    assert network.predict(X).shape == (600, 2)


INNER = [
    SGDClassifier(), SGDRegressor(), Perceptron(), MultinomialNB(), GaussianNB(), MiniBatchKMeans(),
    MLPClassifier(), MLPRegressor(), IncrementalPCA(), StandardScaler(),
]  # fmt: skip
#: Checks of scikit-learn that fail and do not fail for the estimator itself: which, and why.
EXPECTED = {
    "IncrementalPCA": {
        "check_estimator_sparse_tag": "its fit takes sparse matrices, its partial_fit does not",
    },
    "StandardScaler": {
        "check_estimators_nan_inf": "its transform takes NaN; fit refuses NaN, which no kernel has",
    },
}


def failures(estimator):
    found = check_estimator(estimator, on_fail=None, on_skip=None)
    return {each["check_name"] for each in found if each["status"] == "failed"}


def takes_on_fail():
    return tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 6)


@pytest.mark.outside
@pytest.mark.skipif(not takes_on_fail(), reason="check_estimator before 1.6 stops at a failure")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "inner",
    [*(pytest.param(each, marks=pytest.mark.long) for each in INNER[:-2]), *INNER[-2:]],
    ids=lambda inner: type(inner).__name__,
)
def test_scikit_learns_checks_find_no_more_than_in_the_estimator(inner):
    expected = EXPECTED.get(type(inner).__name__, {})
    assert failures(Diversified(inner)) - failures(inner) == set(expected)


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
    bought = DiverseSelector(budget=400.0).fit(X, costs=np.ones(600))
    assert len(bought.selected_idx_) == 400


@pytest.mark.outside
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["cover", pytest.param("greedy", marks=pytest.mark.long)])
def test_scikit_learns_checks_of_a_selector(how):
    check_estimator(DiverseSelector(how=how))
