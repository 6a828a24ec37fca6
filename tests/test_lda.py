import numpy as np
import pandas as pd
import polars as pl
import pytest
from gensim.matutils import Sparse2Corpus
from gensim.models import LdaModel
from scipy import sparse
from scipy.special import psi
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import LatentDirichletAllocation

import dmsgd
from dmsgd import lda

N, WORDS, TOPICS, K = 60, 12, 3, 5
COUNTS = np.random.default_rng(0).poisson(0.7, size=(N, WORDS))
DOCUMENTS = [[(w, int(c)) for w, c in enumerate(row) if c] for row in COUNTS]
DESIGN = dmsgd.diversify(COUNTS, k=K)
NAMES = {w: str(w) for w in range(WORDS)}


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
        pd.DataFrame(COUNTS, columns=list(NAMES.values())),
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


class Watched(LdaModel):
    """gensim's model, which remembers what each update was made of."""

    def __init__(self, **options):
        self.updates = []
        super().__init__(
            id2word=NAMES, num_topics=TOPICS, random_state=0, dtype=np.float64, **options
        )

    def do_estep(self, chunk, state=None):
        self.chunk = chunk
        return super().do_estep(chunk, state)

    def do_mstep(self, rho, other, extra_pass=False):
        before = self.state.get_lambda()
        super().do_mstep(rho, other, extra_pass)
        tilde = self.eta + N / K * other.sstats
        expected = (1 - rho) * before + rho * tilde
        exact = np.allclose(self.state.get_lambda(), expected, rtol=1e-12)
        self.updates.append((self.chunk, rho, self.state.numdocs, exact))


def documents(batches):
    return [[DOCUMENTS[i] for i in batch] for batch in batches]


def test_gensim_makes_one_step_of_algorithm_2_a_draw():
    watched = Watched()
    lda.train_gensim(watched, DOCUMENTS, DESIGN, steps=30, seed=1)
    chunks, rhos, sizes, exact = zip(*watched.updates, strict=True)
    assert list(chunks) == documents(DESIGN.sample(30, seed=1))
    np.testing.assert_allclose(rhos, (1.0 + np.arange(30)) ** -0.5)
    assert set(sizes) == {N}
    assert all(exact)


def test_gensim_training_goes_on_where_it_was():
    whole, parts = Watched(), Watched()
    lda.train_gensim(whole, DOCUMENTS, DESIGN, steps=9)
    lda.train_gensim(parts, DOCUMENTS, DESIGN, steps=4)
    lda.train_gensim(parts, DOCUMENTS, DESIGN, steps=0, start=4)
    lda.train_gensim(parts, DOCUMENTS, DESIGN, steps=5, start=4)
    assert [u[:3] for u in parts.updates] == [u[:3] for u in whole.updates]
    assert parts.state.numdocs == N


@pytest.mark.parametrize("seed", [3, np.random.SeedSequence(3)])
def test_gensim_gets_the_documents_of_the_seed_from_any_batch_on(seed):
    watched = Watched()
    lda.train_gensim(watched, DOCUMENTS, DESIGN, steps=3, seed=seed, start=67)
    assert [update[0] for update in watched.updates] == documents(DESIGN.sample(70, seed)[67:])


def test_settings_of_gensims_model_do_not_count():
    whole, other = Watched(), Watched(chunksize=7, update_every=3, passes=2)
    for watched in (whole, other):
        lda.train_gensim(watched, DOCUMENTS, DESIGN, steps=9)
    assert [u[:3] for u in other.updates] == [u[:3] for u in whole.updates]


def test_gensims_own_corpus_of_a_sparse_matrix():
    columns = Sparse2Corpus(sparse.csr_matrix(COUNTS), documents_columns=False)
    expected, watched = Watched(), Watched()
    lda.train_gensim(expected, DOCUMENTS, DESIGN, 4)
    lda.train_gensim(watched, columns, DESIGN, 4)
    np.testing.assert_array_equal(watched.get_topics(), expected.get_topics())


def in_gensim(corpus=DOCUMENTS, design=DESIGN, steps=1, **options):
    return lambda: lda.train_gensim(Watched(), corpus, design, steps, **options)


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
    "gensim other n": (in_gensim(DOCUMENTS[:9]), ValueError, "9 items, the design 60"),
    "gensim steps": (in_gensim(steps=-1), ValueError, "steps must be"),
    "gensim start": (in_gensim(start=-1), ValueError, "start must be"),
    "gensim schedule": (
        in_gensim(design=dmsgd.presample(DESIGN, 3), steps=4), ValueError, "the schedule has 3"),
    "gensim stream": (in_gensim(iter(DOCUMENTS)), TypeError, "indexed corpus"),
    "gensim matrix": (in_gensim(sparse.csr_array(COUNTS)), TypeError, "Sparse2Corpus"),
    "gensim model": (
        lambda: lda.train_gensim(model(), DOCUMENTS, DESIGN, 1), TypeError, "gensim's LdaModel"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_before_any_work(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
