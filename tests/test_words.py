"""Sparse features of many items: exact draws without an eigenvector in memory."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from contracts import check_closed_forms, check_determinism, check_draws, kdpp_law
from dmsgd.compiled.computed_rows import ROW_BLOCK
from dmsgd.features import array
from dmsgd.features.products import gram
from dmsgd.samplers.factored_rows import ComputedRows, SparseRows
from dmsgd.spectra.eigenvectors import Projected

RNG = np.random.default_rng(11)


def texts(n: int, d: int, words: int = 6, seed: int = 0) -> sparse.csr_array:
    """Documents of a few words each, more of the first ones; some are empty, some the same."""
    rng = np.random.default_rng(seed)
    places = (d * rng.random((n, words)) ** 2).astype(int)
    X = sparse.csr_array(
        (
            rng.integers(1, 4, size=n * words).astype(float),
            places.ravel(),
            np.arange(n + 1) * words,
        ),
        shape=(n, d),
    )
    X.sum_duplicates()
    items = np.arange(n)
    items[n // 3] = 0
    X = X[items]
    X.data[X.indptr[n // 2] : X.indptr[n // 2 + 1]] = 0
    X.eliminate_zeros()
    return X


@pytest.fixture
def never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array, "STORED", 0)


@pytest.mark.usefixtures("never_kept")
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_law_equals_enumeration(k: int) -> None:
    X = np.array(
        [[1, 0, 0, 2], [0, 1, 0, 0], [0, 0, 3, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 2.0],
         [0, 2, 1, 0]]
    )  # fmt: skip
    design = dmsgd.diversify(sparse.csr_array(X), k, kernel="linear", normalize=False)
    assert isinstance(design.spectrum.vectors, Projected)
    law = kdpp_law(X @ X.T, k)
    check_closed_forms(design, law)
    check_draws(design, law)
    check_determinism(dmsgd.diversify(texts(300, 20), k, kernel="linear", normalize=False))


@pytest.mark.usefixtures("never_kept")
def test_a_dpp_of_any_size_follows_its_law() -> None:
    X = sparse.csr_array(np.vander([0.2, 0.5, 0.9, 1.3, 1.7], 3))
    design = dmsgd.DPP(dmsgd.kernels.Linear(X))
    L = (X @ X.T).toarray()
    marginals = np.diag(L @ np.linalg.inv(L + np.eye(5)))
    memory = dmsgd.DPP(dmsgd.kernels.Linear(X.toarray())).sample(300, seed=2)
    found = design.sample(300, seed=2)
    assert [a.tolist() for a in found] == [a.tolist() for a in memory]
    counts = np.zeros(5)
    for batch in design.sample(4000, seed=1):
        counts[batch] += 1
    error = np.sqrt(marginals * (1 - marginals) / 4000)
    assert (np.abs(counts / 4000 - marginals) < 4.5 * error).all()
    design.inclusion()[:] = 7.0  # the caller's own, and not what is kept
    np.testing.assert_allclose(design.inclusion(), marginals)


@pytest.mark.parametrize("k", [1, 5, 31, 32, 33, 40])
@pytest.mark.parametrize("n", [ROW_BLOCK - 1, 10 * ROW_BLOCK, 10 * ROW_BLOCK + 1])
def test_draws_are_those_of_eigenvectors_in_memory(
    n: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = sparse.hstack([texts(n, 40, seed=n), sparse.csr_array(np.eye(n, 8))], format="csr")
    kept = dmsgd.diversify(X, k, kernel="linear", normalize=False)
    monkeypatch.setattr(array, "STORED", 0)
    made = dmsgd.diversify(X, k, kernel="linear", normalize=False)
    assert not isinstance(kept.spectrum.vectors, Projected)
    assert isinstance(made.spectrum.vectors, Projected)
    np.testing.assert_allclose(made.inclusion(), kept.inclusion(), atol=1e-12)
    different = (made.sample(300, seed=2) != kept.sample(300, seed=2)).any(axis=1)
    assert different.sum() <= 1  # where a random number falls between two roundings
    assert made.fingerprint() == kept.fingerprint()
    items = RNG.integers(n, size=(3, 2))
    rows = [each.spectrum.eigenvectors.rows(items) for each in (made, kept)]
    np.testing.assert_allclose(*rows, atol=1e-12)
    np.testing.assert_allclose(np.asarray(made.spectrum.vectors), kept.spectrum.vectors, atol=1e-12)
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.sample(5, seed=1), made.sample(5, seed=1))


def test_sums_and_weighted_squares_are_those_of_the_product() -> None:
    X, B, weights = texts(5 * ROW_BLOCK + 7, 30), RNG.normal(size=(45, 30)), RNG.random(45)
    sums, weighed = ComputedRows(SparseRows.of(X), B).block_sums(weights)
    V = X @ B.T
    ends = [*range(0, X.shape[0], ROW_BLOCK), X.shape[0]]
    expected = np.array([(V[:end] ** 2).sum(axis=0) for end in ends]).T
    np.testing.assert_allclose(sums, expected, rtol=1e-12)
    np.testing.assert_allclose(weighed, V**2 @ weights, rtol=1e-12)


def test_a_change_of_the_callers_matrix_reaches_no_draw(never_kept: None) -> None:
    X = texts(400, 30)
    design = dmsgd.diversify(X, 8, kernel="linear", normalize=False)
    expected = design.sample(20, seed=0)
    fresh = dmsgd.diversify(X, 8, kernel="linear", normalize=False)
    X.data[:] = 1e6
    np.testing.assert_array_equal(fresh.sample(20, seed=0), expected)


def test_nothing_as_large_as_the_eigenvectors_is_made(never_kept: None) -> None:
    X = texts(40_000, 200)
    dmsgd.diversify(X[:500], 16, kernel="linear", normalize=False).sample(1, seed=0)  # compiled
    tracemalloc.start()
    design = dmsgd.diversify(X, 16, kernel="linear", normalize=False)
    design.sample(3, seed=0)
    design.inclusion()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000 * 200 * 8 / 4


def test_the_gram_matrix_of_sparse_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmsgd.features.products.SQUARE", 16)
    X = texts(200, 50, words=12)
    X = sparse.vstack([X, sparse.csr_array(RNG.random((3, 50)))], format="csr")
    rows = np.repeat(X.toarray(), 1, axis=0)
    np.testing.assert_allclose(gram(X), rows.T @ rows, rtol=1e-13)
    shuffled = X[:, ::-1]  # columns out of order
    np.testing.assert_allclose(gram(shuffled), (rows.T @ rows)[::-1, ::-1], rtol=1e-13)
    twice = sparse.csr_array(
        (np.ones(4), np.array([1, 1, 0, 1]), np.array([0, 4])), shape=(1, 50)
    )  # an entry three times
    np.testing.assert_allclose(gram(twice), twice.toarray().T @ twice.toarray())
