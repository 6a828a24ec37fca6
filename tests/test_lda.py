import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import psi
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import LatentDirichletAllocation

import dmsgd
from dmsgd import lda

N, WORDS, TOPICS, K = 60, 12, 3, 5
COUNTS = np.random.default_rng(0).poisson(0.7, size=(N, WORDS))
DESIGN = dmsgd.diversify(COUNTS, k=K)


def model(**changes):
    return LatentDirichletAllocation(
        TOPICS, random_state=0, **{"batch_size": K, "total_samples": N, **changes}
    )


def exp_expectation(parameters):
    """exp E[log θ] of Dirichlet rows."""
    return np.exp(psi(parameters) - psi(parameters.sum(axis=-1, keepdims=True)))


def topics_by_hand(batches, offset=10.0, decay=0.7):
    """Algorithm 2 with scikit-learn's starting values and stopping rule, in NumPy."""
    random, prior = np.random.RandomState(0), 1 / TOPICS
    topics = random.gamma(100.0, 0.01, (TOPICS, WORDS))
    for t, batch in enumerate(batches, start=1):
        beta, statistics = exp_expectation(topics), np.zeros_like(topics)
        for n, gamma in zip(COUNTS[batch], random.gamma(100.0, 0.01, (K, TOPICS)), strict=True):
            for _ in range(100):
                theta, last = exp_expectation(gamma), gamma
                gamma = prior + theta * (beta @ (n / (theta @ beta)))
                if np.abs(gamma - last).mean() < 1e-3:
                    break
            theta = exp_expectation(gamma)
            statistics += n * theta[:, None] * beta / (theta @ beta)  # Σ n_tw φ_twk
        rho = (offset + t) ** -decay
        topics = (1 - rho) * topics + rho * (prior + N / K * statistics)
    return topics


def test_one_step_of_algorithm_2_a_draw():
    trained, batches = model(), DESIGN.sample(4, seed=1)
    for t, record in enumerate(lda.train(trained, COUNTS, DESIGN, 4, seed=1)):
        assert record.step == t
        assert trained.n_batch_iter_ == t + 2  # scikit-learn starts at 1
        np.testing.assert_array_equal(record.batch, batches[t])
        np.testing.assert_allclose(trained.components_, topics_by_hand(batches[: t + 1]), rtol=1e-8)


def test_larger_batch_size_is_the_same_and_parameters_stay():
    trained, roomy = model(), model(batch_size=128)
    before = roomy.get_params()
    list(lda.train(trained, COUNTS, DESIGN, 3))
    list(lda.train(roomy, COUNTS, DESIGN, 3))
    np.testing.assert_array_equal(trained.components_, roomy.components_)
    assert roomy.get_params() == before


@pytest.mark.parametrize(
    "counts",
    [
        COUNTS.tolist(),
        sparse.csr_array(COUNTS),
        sparse.coo_matrix(COUNTS),
        pd.DataFrame(COUNTS, columns=[str(w) for w in range(WORDS)]),
        pl.DataFrame(COUNTS),
    ],
    ids=["list", "CSR", "COO", "pandas", "polars"],
)
def test_any_container(counts):
    expected, trained = model(), model()
    list(lda.train(expected, COUNTS, DESIGN, 3))
    list(lda.train(trained, counts, DESIGN, 3))
    np.testing.assert_allclose(trained.components_, expected.components_, rtol=1e-10)
    assert hasattr(trained, "feature_names_in_") == hasattr(counts, "columns")


def test_stopped_training_goes_on_where_it_was():
    whole, parts = model(), model()
    expected = list(lda.train(whole, COUNTS, DESIGN, 5))
    records = list(lda.train(parts, COUNTS, DESIGN, 2))
    records += lda.train(parts, COUNTS, DESIGN, 3, start=2)
    assert [r.step for r in records] == [r.step for r in expected] == [0, 1, 2, 3, 4]
    assert parts.n_batch_iter_ == whole.n_batch_iter_ == 6  # what the learning rate is of
    np.testing.assert_array_equal(parts.components_, whole.components_)


NEGATIVE, MISSING = COUNTS - 1, np.where(COUNTS > 2, np.nan, COUNTS)
BAD = {
    "batch_size": (
        lambda: lda.train(model(batch_size=4), COUNTS, DESIGN, 1), ValueError,
        "batch_size=4 .*set_params.batch_size=5, total_samples=60"),
    "total_samples": (
        lambda: lda.train(LatentDirichletAllocation(), COUNTS, DESIGN, 1), ValueError,
        r"total_samples=1e\+06; .*total_samples=60"),
    "another model": (
        lambda: lda.train(MiniBatchKMeans(), COUNTS, DESIGN, 1), TypeError, "got MiniBatchKMeans"),
    "other n": (
        lambda: lda.train(model(), COUNTS[:9], DESIGN, 1), ValueError, "9 items, the design 60"),
    "steps": (lambda: lda.train(model(), COUNTS, DESIGN, -1), ValueError, "steps must be at least"),
    "negative": (lambda: lda.train(model(), NEGATIVE, DESIGN, 1), ValueError, "negative"),
    "negative CSR": (
        lambda: lda.train(model(), sparse.csr_array(NEGATIVE), DESIGN, 1), ValueError, "negative"),
    "missing": (lambda: lda.train(model(), MISSING, DESIGN, 1), ValueError, "counts has .* NaN"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_before_any_work(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
