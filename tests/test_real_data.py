"""The paper's data: run when DMSGD_DATA names a folder that holds it."""

import os
from pathlib import Path

import numpy as np
import pytest

import dmsgd

FOLDER = Path(os.environ.get("DMSGD_DATA", "no such folder"))


def load(name):
    if not (FOLDER / name).exists():
        pytest.skip(f"DMSGD_DATA holds no {name}")
    return np.load(FOLDER / name, allow_pickle=False)


@pytest.fixture(scope="module")
def flowers():
    with load("flowers102/features.npz") as arrays:
        train = arrays["split"] == "test"  # the paper swaps the splits
        return arrays["X"][train], arrays["y"][train]


def test_flowers_w_1_and_k_102_is_stratified_sampling(flowers):
    X, y = flowers
    design = dmsgd.diversify(X, 102, labels=y, w=1.0)
    np.testing.assert_allclose(design.inclusion(), dmsgd.Stratified(y, 102).inclusion(), rtol=1e-9)
    assert all(np.unique(y[row]).size == 102 for row in design.sample(5, seed=0))
    with pytest.raises(dmsgd.RankError, match="102 classes"):
        dmsgd.diversify(X, 150, labels=y, w=1.0)


@pytest.mark.long
def test_flowers_become_flatter_as_w_grows(flowers):
    X, y = flowers
    spread = []
    for w in (0.0, 0.3, 0.9):
        design = dmsgd.diversify(X, 50, y if w > 0 else None, w, normalize=True)
        assert design.inclusion().sum() == pytest.approx(50, abs=1e-6)
        spread.append(np.bincount(y, design.inclusion()).std())
    assert np.bincount(y).std() * 50 / y.size > spread[0] > spread[1] > spread[2]


@pytest.mark.long
def test_half_of_mnist_is_ill_conditioned_and_still_exact():
    with load("mnist/mnist.npz") as arrays:
        X = arrays["x_train"][:30_000].reshape(30_000, -1) / 255.0
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(X))
    assert spectrum.route == "dual"
    assert 680 < spectrum.rank < 720
    V = spectrum.vectors
    assert np.abs(V.T @ V - np.eye(spectrum.rank)).max() < 1e-9
    for k in (100, 200):  # plain elementary symmetric polynomials overflow from k = 82
        design = dmsgd.KDPP(spectrum, k)
        assert design.inclusion().sum() == pytest.approx(k, abs=1e-6)
        assert np.isfinite(design.log_prob(design.sample(2, seed=0))).all()
