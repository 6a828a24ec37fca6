import numpy as np
import pytest
from scipy import sparse

import dmsgd

X = np.array([[0.0, 4.0, 9.0], [1.0, 0.0, 16.0]])


def test_one_hot_sorts_classes():
    H = dmsgd.one_hot(["dog", "ant", "dog", "cat"])
    assert sparse.issparse(H)
    np.testing.assert_array_equal(H.toarray(), [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_anneal_is_an_elementwise_power_and_zeros_stay_zero():
    np.testing.assert_allclose(dmsgd.anneal(X, 0.5), [[0, 2, 3], [1, 0, 4]])
    S = sparse.csr_array(X)
    annealed = dmsgd.anneal(S, 0.5)
    assert sparse.issparse(annealed)
    assert annealed.nnz == 4
    np.testing.assert_allclose(annealed.toarray(), dmsgd.anneal(X, 0.5))
    np.testing.assert_array_equal(S.toarray(), X)  # the input is left alone
    np.testing.assert_allclose(dmsgd.anneal(-X, 2), X**2)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_normalize_gives_unit_rows_and_keeps_zero_rows(container):
    N = dmsgd.normalize(container(np.vstack([X, np.zeros(3)])))
    dense = N.toarray() if sparse.issparse(N) else N
    np.testing.assert_allclose(np.linalg.norm(dense, axis=1), [1, 1, 0])
    assert sparse.issparse(N) == (container is sparse.csr_array)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_concat_weighs_features_and_labels(container):
    F = dmsgd.concat(container(X), ["b", "a"], 0.25)
    dense = F.toarray() if sparse.issparse(F) else F
    np.testing.assert_allclose(dense, np.hstack([0.75 * X, 0.25 * np.array([[0, 1], [1, 0]])]))
    assert sparse.issparse(F) == (container is sparse.csr_array)


def test_concat_leaves_out_parts_of_weight_zero():
    assert dmsgd.concat(X, [0, 1], 0).shape == (2, 3)
    assert dmsgd.concat(X, [0, 1], 1).shape == (2, 2)
