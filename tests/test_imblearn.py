from collections import Counter

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline
from imblearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    estimator_checks_generator,
)
from scipy import sparse
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression

import dmsgd
import dmsgd.imblearn
from contracts import ERROR_RATE, kdpp_law
from dmsgd.imblearn import DiverseUnderSampler

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(200, 6)), np.repeat(["a", "b", "c"], [140, 45, 15])


# What imblearn's parametrize_with_checks does; that one hands pytest 9 a generator, which warns.
@pytest.mark.outside
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(*pair, marks=() if kernel is None else pytest.mark.long)
        for kernel in (None, "linear", "rbf")
        for pair in estimator_checks_generator(
            DiverseUnderSampler(random_state=0, **({} if kernel is None else {"kernel": kernel}))
        )
    ],
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", ""),
)
def test_imbalanced_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.outside
def test_imbalanced_learns_check_of_column_names():
    check_dataframe_column_names_consistency("DiverseUnderSampler", DiverseUnderSampler())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_auto_is_exactly_balanced(kernel):
    sampler = DiverseUnderSampler(kernel=kernel, random_state=0)
    X_kept, y_kept = sampler.fit_resample(X, Y)
    kept = sampler.sample_indices_
    assert Counter(y_kept.tolist()) == sampler.sampling_strategy_ == {"a": 15, "b": 15, "c": 15}
    assert sampler.route_ == "per class"
    assert np.all(np.diff(kept) > 0)
    np.testing.assert_array_equal(X_kept, X[kept])
    np.testing.assert_array_equal(y_kept, Y[kept])


@pytest.mark.parametrize(
    ("strategy", "counts"),
    [
        ({"a": 31, "c": 4}, {"a": 31, "b": 45, "c": 4}),
        ({"a": 140}, {"a": 140, "b": 45, "c": 15}),
        ({"b": 0}, {"a": 140, "c": 15}),
        (lambda y: {"b": int((y == "b").sum()) // 2}, {"a": 140, "b": 22, "c": 15}),
        ("majority", {"a": 15, "b": 45, "c": 15}),
        ("not majority", {"a": 140, "b": 15, "c": 15}),
        ("all", {"a": 15, "b": 15, "c": 15}),
    ],
)
def test_a_strategy_says_how_many_of_each_class(strategy, counts):
    sampler = DiverseUnderSampler(sampling_strategy=strategy, random_state=0)
    _, y_kept = sampler.fit_resample(X, Y)
    assert Counter(y_kept.tolist()) == sampler.sampling_strategy_ == counts
    assert sampler.route_ == "per class"
    assert np.all(np.diff(sampler.sample_indices_) > 0)


def test_a_ratio_is_that_of_two_classes():
    two = DiverseUnderSampler(sampling_strategy=0.5, random_state=0)
    _, y_kept = two.fit_resample(X[:185], Y[:185])
    assert Counter(y_kept.tolist()) == {"a": 90, "b": 45}


@pytest.mark.parametrize(
    ("n_samples", "options"),
    [
        (4, {}),
        (7, {"w": 0.7, "normalize": True}),
        (9, {"w": 0.2}),
        (4, {"standardize": True}),
        (7, {"w": 0.7, "standardize": True, "normalize": True}),
        (40, {"kernel": "rbf", "w": 0.7, "normalize": True}),
        (40, {"kernel": "rbf", "scale": 1.5}),
    ],
)
def test_a_number_of_samples_is_one_draw_of_diversify_with_the_same_options(n_samples, options):
    sampler = DiverseUnderSampler(n_samples=n_samples, random_state=3, **options)
    sampler.fit_resample(X, Y)
    design = dmsgd.diversify(X, n_samples, Y if "w" in options else None, **options)
    expected = design.sample(1, np.random.RandomState(3))[0]
    assert sampler.route_ == "k-DPP"
    np.testing.assert_array_equal(sampler.sample_indices_, np.sort(expected))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_class_is_drawn_from_the_kernel_restricted_to_it(kernel):
    """The law of the class that is cut down, by enumeration."""
    features, y = RNG.normal(size=(8, 2)), np.array([0] * 5 + [1] * 3)
    unit = dmsgd.features.normalize(features)
    S = dmsgd.kernels.RBF(unit, 0.1).block(range(8), range(8)) if kernel == "rbf" else unit @ unit.T
    L = 0.3**2 * S + 0.7**2 * (y[:, None] == y)
    law = kdpp_law(L[:5, :5], 3)
    sampler = DiverseUnderSampler(
        kernel=kernel,
        scale=0.1 if kernel == "rbf" else None,
        w=0.7,
        normalize=True,
        random_state=np.random.RandomState(0),
    )
    counts, size = dict.fromkeys(law, 0), 600
    for _ in range(size):
        sampler.fit_resample(features, y)
        kept = sampler.sample_indices_.tolist()
        assert kept[3:] == [5, 6, 7]
        counts[tuple(kept[:3])] += 1
    expected, observed = size * np.array(list(law.values())), np.array(list(counts.values()))
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    used = expected > 0
    statistic = np.sum((observed[used] - expected[used]) ** 2 / expected[used])
    assert chi2.sf(statistic, used.sum() - 1) > ERROR_RATE


@pytest.mark.parametrize("n_samples", [10, 31, 100, 199, 200])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_above_the_rank_classes_share_equally(n_samples, form):
    sampler = DiverseUnderSampler(n_samples=n_samples, kernel="linear", random_state=0)
    X_kept, _ = sampler.fit_resample(form(X), Y)
    assert sampler.route_ == "per class"
    assert np.unique(sampler.sample_indices_).size == n_samples == X_kept.shape[0]
    counts = sampler.sampling_strategy_
    sizes = {"a": 140, "b": 45, "c": 15}
    full = [c for c in counts if counts[c] == sizes[c]]
    others = [counts[c] for c in counts if c not in full]
    assert not others or max(others) - min(others) <= 1
    assert all(counts[c] <= min(others, default=200) + 1 for c in full)


def test_unions_of_draws_are_diverse_too():
    """A class of one crowd and five loners, cut to a fifth: the loners are nearly always kept."""
    crowd = np.eye(6)[0] + 0.01 * RNG.normal(size=(95, 6))
    features = np.vstack([crowd, np.eye(6)[1:], RNG.normal(size=(20, 6))])
    y = np.repeat([0, 1], [100, 20])
    kept = np.zeros(120)
    for seed in range(20):
        sampler = DiverseUnderSampler(kernel="linear", random_state=seed)
        sampler.fit_resample(features, y)
        kept[sampler.sample_indices_] += 1 / 20
    assert kept[95:100].min() > 0.9  # uniform sampling: 0.2
    assert kept[:95].sum() == pytest.approx(20 - kept[95:100].sum())


@pytest.mark.long
def test_unions_favour_no_place_in_the_data():
    """Twelve items in four strata, alike but for their place: each is kept with 5/12."""
    features = np.vstack([np.eye(4)[np.arange(12) % 4], np.eye(4), np.eye(4)[:1]])
    y, kept = np.repeat([0, 1], [12, 5]), np.zeros(17)
    for seed in range(400):
        sampler = DiverseUnderSampler(w=0.0, random_state=seed)
        sampler.fit_resample(features, y)
        kept[sampler.sample_indices_] += 1 / 400
    np.testing.assert_allclose(kept[:12], 5 / 12, atol=0.1)  # four standard deviations


def test_items_without_features_come_last():
    features = np.vstack([np.eye(4), np.zeros((6, 4)), np.eye(4)])
    y = np.repeat([0, 1], [10, 4])
    seen = set()
    for seed in range(30):
        sampler = DiverseUnderSampler(n_samples=10, w=0.0, random_state=seed)
        sampler.fit_resample(features, y)
        assert {0, 1, 2, 3, 10, 11, 12, 13} <= set(sampler.sample_indices_.tolist())
        seen |= set(sampler.sample_indices_.tolist())
    assert seen == set(range(14))


@pytest.mark.long
def test_labels_alone_are_random_under_sampling():
    kept = np.zeros(200)
    for seed in range(60):
        sampler = DiverseUnderSampler(w=1.0, random_state=seed)
        sampler.fit_resample(X, Y)
        kept[sampler.sample_indices_] += 1 / 60
    assert kept[:140].max() < 0.4  # 15 of 140, with a standard deviation of 0.04
    assert np.all(kept[185:] == pytest.approx(1))


def test_random_state_is_scikit_learns():
    def kept(sampler):
        sampler.fit_resample(X, Y)
        return sampler.sample_indices_.tolist()

    fixed, moving = DiverseUnderSampler(random_state=1), np.random.RandomState(1)
    assert kept(fixed) == kept(fixed) == kept(DiverseUnderSampler(random_state=moving))
    assert kept(fixed) != kept(DiverseUnderSampler(random_state=moving))
    assert kept(DiverseUnderSampler()) != kept(DiverseUnderSampler())
    with pytest.raises(ValueError, match="cannot be used to seed"):
        kept(DiverseUnderSampler(random_state=np.random.default_rng(1)))


def test_in_a_pipeline_with_frames():
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    pipeline = make_pipeline(DiverseUnderSampler(random_state=0), LogisticRegression())
    pipeline.fit(frame, pd.Series(Y))
    assert pipeline[0].get_feature_names_out().tolist() == list("uvwxyz")
    assert pipeline.predict(frame).shape == (200,)


BAD = {
    "n_samples > n": ({"n_samples": 201}, "n_samples=201 exceeds the number of items, 200"),
    "n_samples = 0": ({"n_samples": 0}, "n_samples must be at least 1"),
    "two sizes": (
        {"n_samples": 9, "sampling_strategy": {"a": 3}},
        "n_samples=9 replaces sampling_strategy",
    ),
    "more than there are": ({"sampling_strategy": {"c": 16}}, "should be less or equal"),
    "strategy": ({"sampling_strategy": "none"}, "'sampling_strategy' parameter"),
    "n_samples text": ({"n_samples": "all"}, "n_samples"),
    "scale of linear": ({"scale": 1.0}, "kernel='rbf'"),
    "w": ({"w": 1.5}, "w must lie"),
    "kernel": ({"kernel": "poly"}, "unknown kernel"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused(name):
    options, message = BAD[name]
    with pytest.raises((TypeError, ValueError), match=message):
        DiverseUnderSampler(**options).fit_resample(X, Y)
