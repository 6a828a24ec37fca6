"""Cells of equal size: every item as likely, similar items apart."""

import numpy as np
import pytest
from scipy import linalg, sparse

import dmsgd
from dmsgd.designs import stratified
from dmsgd.designs.stratified import _direction
from dmsgd.spectra.decompose import principal


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@pytest.mark.parametrize(("n", "k"), [(64, 8), (100, 7), (13, 13), (50, 1), (97, 32), (33, 2)])
def test_cells_have_the_same_size_but_for_one(n, k, rng):
    design = dmsgd.cells(rng.normal(size=(n, 3)), k)
    sizes = np.bincount(design.stratum)
    assert sizes.size == k
    assert sizes.max() - sizes.min() <= 1
    assert design.k == k
    assert np.abs(design.inclusion() * n / k - 1).max() <= k / (n // k * k)


def test_in_one_dimension_cells_are_stretches(rng):
    x = rng.normal(size=(96, 1))
    stratum = dmsgd.cells(x, 12).stratum[np.argsort(x[:, 0])]
    assert (np.diff(np.flatnonzero(np.diff(stratum))) == 8).all()
    assert np.unique(stratum).size == 12


def test_sparse_large_and_dense_features_are_cut_alike(rng, monkeypatch):
    X = rng.normal(size=(300, 12)) * np.linspace(3, 1, 12)
    X -= X.mean(axis=0)
    dense, iterated = _direction(X), _direction(sparse.csr_array(X))
    assert abs(dense @ iterated) > 0.999
    with monkeypatch.context() as large:
        large.setattr(stratified, "LARGE", 100)
        large.setattr(stratified, "NARROW", 5)
        np.testing.assert_allclose(_direction(X), iterated, atol=1e-9)
    shares = [
        np.abs(X - X[:, None]).sum(axis=2)[design.stratum == design.stratum[:, None]].mean()
        for design in (dmsgd.cells(X, 16), dmsgd.cells(sparse.csr_array(X), 16))
    ]
    assert shares[0] == pytest.approx(shares[1], rel=0.05)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (3, 1), (1, 3)])
def test_principal_directions_are_the_singular_vectors(shape, rng):
    C, count = rng.normal(size=shape), min(2, *shape)
    expected = np.linalg.svd(C)[2][:count].T
    found = np.sum(principal(C, count) * expected, axis=0)
    np.testing.assert_allclose(np.abs(found), 1.0)


def test_a_turned_sign_of_the_direction_changes_nothing(rng, monkeypatch):
    X = rng.normal(size=(64, 5))
    before, eigh = dmsgd.cells(X, 8).stratum, linalg.eigh

    def turned(*args, **kwargs):
        values, vectors = eigh(*args, **kwargs)
        return values, -vectors

    monkeypatch.setattr(linalg, "eigh", turned)
    np.testing.assert_array_equal(dmsgd.cells(X, 8).stratum, before)


def test_less_variance_than_uniform_batches_where_gradients_are_smooth(rng):
    x = rng.uniform(size=(128, 2))
    gradients = np.column_stack([np.sin(3 * x[:, 0]), x[:, 0] * x[:, 1]])
    found = dmsgd.diagnostics.gradient_variance(dmsgd.cells(x, 16), gradients)
    assert found.variance < 0.5 * found.uniform


def test_they_make_partitions_too(rng):
    cells = dmsgd.cells(rng.normal(size=(64, 3)), 8)
    epoch = dmsgd.Partition(cells).sample(8, seed=0)
    assert sorted(epoch.ravel().tolist()) == list(range(64))
    assert all(np.unique(cells.stratum[row]).size == 8 for row in epoch)


def test_copies_and_constant_features_are_cut_somewhere():
    for X in (
        np.ones((10, 2)),
        sparse.csr_array(np.ones((10, 2))),
        sparse.csr_array(np.ones((10, 1))),
    ):
        assert np.bincount(dmsgd.cells(X, 5).stratum).tolist() == [2] * 5


@pytest.mark.parametrize("factor", [1 / 3, 7.0, 1e-5])
@pytest.mark.parametrize("kind", ["grid", "copies"])
def test_rounding_decides_nothing_among_items_that_are_level(kind, factor):
    rng = np.random.default_rng(3)
    grid = rng.integers(0, 4, size=(600, 3)).astype(float)
    X = grid if kind == "grid" else np.repeat(rng.normal(size=(40, 20)), 15, axis=0)
    cell = dmsgd.cells(X, 32).stratum
    np.testing.assert_array_equal(dmsgd.cells(factor * X, 32).stratum, cell)
