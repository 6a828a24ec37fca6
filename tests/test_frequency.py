from itertools import combinations

import numpy as np
import pytest

import dmsgd
from dmsgd.designs import suggest_scale
from dmsgd.diagnostics import class_shares
from dmsgd.spectra.eigenpairs import entropy

RNG = np.random.default_rng(8)


def test_effective_rank_counts_groups():
    groups = np.repeat(np.eye(5), 20, axis=0)
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(groups)).effective_rank() == pytest.approx(5)
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(np.eye(30))).effective_rank() == pytest.approx(
        30
    )


def test_entropy_and_rank_at_the_ends_of_the_float_range():
    assert entropy(np.array([1e308, 1e308])) == pytest.approx(np.log(2))
    assert entropy(np.array([5e-324, 5e-324])) == pytest.approx(np.log(2))
    assert entropy(np.array([1e308, 5e-324])) == pytest.approx(0.0)
    spectrum = dmsgd.spectra.Spectrum([1e307, 1e-290], np.eye(3, 2))
    assert spectrum.effective_rank() == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [0.2, 0.5, 2.0])
def test_repulsion_bounds_the_distance_from_uniform(scale):
    X = RNG.normal(size=(8, 2))
    design = dmsgd.KDPP(dmsgd.kernels.RBF(X, scale), 3)
    batches = np.array(list(combinations(range(8), 3)))
    distance = 0.5 * np.abs(np.exp(design.log_prob(batches)) - 1 / len(batches)).sum()
    delta = design.spectrum.repulsion(3)
    assert 0 < distance <= 1 - np.exp(-delta)
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(np.eye(8))).repulsion(3) == pytest.approx(
        0, abs=1e-9
    )


def test_suggested_scale_has_the_effective_rank_it_promises():
    X = RNG.normal(size=(400, 3))
    for k in (5, 20):
        spectrum = dmsgd.kernels.exact(dmsgd.kernels.RBF(X, suggest_scale(X, k)))
        assert spectrum.effective_rank() == pytest.approx(2 * k, rel=0.05)
    few = X[:60]  # at k = 25 a rank of 2k would leave nearly every item alone
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.RBF(few, suggest_scale(few, 25)))
    assert spectrum.effective_rank() == pytest.approx(30, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize("k", [8, 40])
def test_the_rank_of_all_items_is_known_from_some(k):
    rng = np.random.default_rng(8)
    for X in (rng.normal(size=(1500, 20)), rng.standard_t(2, size=(1500, 10))):
        spectrum = dmsgd.kernels.exact(
            dmsgd.kernels.RBF(X, suggest_scale(X, k))
        )  # from 500: without 1.1 to 1.4
        assert spectrum.effective_rank() == pytest.approx(2 * k, rel=0.1)


def test_ranks_out_of_reach_give_the_ends_of_the_range():
    groups = np.repeat(RNG.normal(size=(10, 3)), 30, axis=0)
    assert suggest_scale(groups, 8) == pytest.approx(dmsgd.kernels.RBF(groups).scale / 100)
    assert suggest_scale([[0.0], [1.0]], 1) == pytest.approx(10)
    with pytest.raises(ValueError, match="all items look alike"):
        suggest_scale(np.ones((9, 2)), 2)


def test_rbf_scales_that_make_no_sense_are_named():
    X = RNG.normal(size=(300, 2))
    with pytest.warns(dmsgd.KernelWarning, match="nearly uniform; choose a larger scale"):
        dmsgd.diversify(X, 5, kernel="rbf", scale=1e-3)
    for spectrum in ("auto", "nystrom", "pivoted_cholesky"):
        with pytest.raises(dmsgd.RankError, match="smaller scale"):
            dmsgd.diversify(X, 50, kernel="rbf", scale=1e3, spectrum=spectrum)
    with pytest.raises(dmsgd.RankError, match="20 independent directions; batches of 50"):
        dmsgd.diversify(X, 50, kernel="rbf", spectrum="nystrom", rank=20)
    dmsgd.diversify(X, 5, kernel="rbf", scale=suggest_scale(X, 5))  # no warning
    dmsgd.diversify(X, 1, kernel="rbf")  # one item has nobody to be alike, at any scale


def test_class_shares_grow_with_the_weight_of_labels():
    y = np.repeat(["common", "rare"], [180, 20])
    X = RNG.normal(size=(200, 12))
    assert class_shares(dmsgd.Uniform(200, 6), y) == pytest.approx({"common": 0.9, "rare": 0.1})
    designs = (dmsgd.diversify(X, 3, y, w, normalize=True) for w in (0.3, 0.6, 0.9))
    reached = [entropy(np.array([*class_shares(each, y).values()])) for each in designs]
    assert reached == sorted(reached)
    assert np.exp(reached[-1]) > 0.9 * 2
