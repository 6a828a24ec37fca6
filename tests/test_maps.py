from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import dmsgd
from dmsgd.features.maps import _merged, _moments

X = np.array([[0.0, 4.0, 9.0], [1.0, 0.0, 16.0]])


def test_one_hot_sorts_classes():
    H = dmsgd.features.one_hot(["dog", "ant", "dog", "cat"])
    assert sparse.issparse(H)
    np.testing.assert_array_equal(H.toarray(), [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_anneal_is_an_elementwise_power_and_zeros_stay_zero():
    np.testing.assert_allclose(dmsgd.features.anneal(X, 0.5), [[0, 2, 3], [1, 0, 4]])
    S = sparse.csr_array(X)
    annealed = dmsgd.features.anneal(S, 0.5)
    assert sparse.issparse(annealed)
    assert annealed.nnz == 4
    np.testing.assert_allclose(annealed.toarray(), dmsgd.features.anneal(X, 0.5))
    np.testing.assert_array_equal(S.toarray(), X)  # the input is left alone
    np.testing.assert_allclose(dmsgd.features.anneal(-X, 2), X**2)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_normalize_gives_unit_rows_and_keeps_zero_rows(container):
    N = dmsgd.features.normalize(container(np.vstack([X, np.zeros(3)])))
    dense = N.toarray() if sparse.issparse(N) else N
    np.testing.assert_allclose(np.linalg.norm(dense, axis=1), [1, 1, 0])
    assert sparse.issparse(N) == (container is sparse.csr_array)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_of_the_smallest_numbers_get_length_1_too(container, tmp_path):
    X = np.array([[5e-324, 5e-324, 5e-324], [1e-310, 0.0, 2e-310], [1.0, 2.0, 3.0]])
    N = dmsgd.features.normalize(container(X))
    dense = N.toarray() if sparse.issparse(N) else N
    np.testing.assert_allclose(np.linalg.norm(dense, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(dense[0], 1 / np.sqrt(3), rtol=1e-15)
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_allclose(dmsgd.features.normalize(tmp_path / "X.npy"), dense, rtol=1e-15)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_columns_too_small_to_be_standardized_are_refused(container):
    with pytest.raises(ValueError, match="column 1"):
        dmsgd.features.standardize(container(np.array([[1.0, 1e-320], [2.0, 3e-320]])))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_concat_weighs_features_and_labels(container):
    F = dmsgd.features.concat(container(X), ["b", "a"], 0.25)
    dense = F.toarray() if sparse.issparse(F) else F
    np.testing.assert_allclose(dense, np.hstack([0.75 * X, 0.25 * np.array([[0, 1], [1, 0]])]))
    assert sparse.issparse(F) == (container is sparse.csr_array)


def test_concat_leaves_out_parts_of_weight_zero():
    assert dmsgd.features.concat(X, [0, 1], 0).shape == (2, 3)
    assert dmsgd.features.concat(X, [0, 1], 1).shape == (2, 2)


def test_standardize_gives_columns_of_mean_0_and_deviation_1():
    raw, _ = load_wine(return_X_y=True)
    raw = np.hstack([raw, np.full((len(raw), 1), 0.1)])
    Z = dmsgd.features.standardize(raw)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(Z.std(axis=0), [*[1] * 13, 0], atol=1e-14)
    assert not Z[:, -1].any()  # a constant that no sum of floats gives back exactly
    np.testing.assert_allclose(Z[:, :-1], scale(raw[:, :-1]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("factor", [2.0**-660, 2.0**440])
@pytest.mark.parametrize("offset", [0.0, 1e15])
def test_standardize_keeps_the_digits_of_small_large_and_distant_columns(factor, offset):
    steps = np.tile([0.0, 2.0, 4.0, 10.0], 50)
    expected = (steps - 4) / np.sqrt(14)
    np.testing.assert_allclose(
        dmsgd.features.standardize((offset + steps)[:, None] * factor)[:, 0], expected, rtol=1e-12
    )


def test_standardize_scales_sparse_features_and_keeps_their_zeros():
    rng = np.random.default_rng(0)
    dense = rng.random((50, 6)) * (rng.random((50, 6)) < 0.4)
    dense[:, 2] = 7.0  # constant
    dense[:, 4] = 0.0
    S = sparse.csr_array(dense)
    Z = dmsgd.features.standardize(S)
    assert sparse.issparse(Z)
    deviations = S.toarray().std(axis=0)
    np.testing.assert_allclose(Z.toarray().std(axis=0), deviations > 0, atol=1e-14)
    assert not Z.toarray()[:, [2, 4]].any()
    assert Z.nnz == np.count_nonzero(S.toarray()[:, [0, 1, 3, 5]])


def test_moments_do_not_depend_on_how_rows_are_cut():
    rows = 1e8 + np.random.default_rng(0).normal(size=(101, 3)) * [1e-3, 1.0, 1e6]
    for X in (rows, sparse.csr_array(rows)):
        parts = [_moments(X[a:b], rows[0]) for a, b in pairwise([0, 1, 40, 99, 101])]
        whole = _moments(X, rows[0])
        for found, known in zip(reduce(_merged, parts), whole, strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-12, atol=1e-15)
