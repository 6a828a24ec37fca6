import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import mpmath
import numpy as np
import pytest
from scipy import sparse

import dmsgd
from contracts import (
    balanced_strata,
    check_closed_forms,
    check_determinism,
    check_draws,
    check_exchangeable,
    kdpp_law,
    moments,
)
from dmsgd.samplers import reference, rejection
from dmsgd.spectra.eigenpairs import truncate
from dmsgd.spectra.rounding import Rounding

RNG = np.random.default_rng(7)
FEATURES = RNG.normal(size=(8, 4))
DUPLICATED = np.vstack([FEATURES[:4], FEATURES[:3], FEATURES[:1]])
FULL = (lambda A: A @ A.T)(RNG.normal(size=(8, 8)))
STRATA = np.array([0, 0, 0, 1, 1, 2, 2, 2])

KERNELS = {
    "linear": (dmsgd.kernels.Linear(FEATURES), 3),
    "linear, k = rank": (dmsgd.kernels.Linear(FEATURES), 4),
    "linear, k = 1": (dmsgd.kernels.Linear(FEATURES), 1),
    "wide": (dmsgd.kernels.Linear(RNG.normal(size=(7, 20))), 4),
    "rbf": (dmsgd.kernels.RBF(FEATURES), 3),
    "full rank": (dmsgd.kernels.Precomputed(FULL), 4),
    "full rank, k = n": (dmsgd.kernels.Precomputed(FULL[:5, :5]), 5),
    "rank deficient": (dmsgd.kernels.Precomputed(DUPLICATED @ DUPLICATED.T), 3),
    "duplicated rows": (dmsgd.kernels.Linear(DUPLICATED), 4),
    "a zero row": (dmsgd.kernels.Linear(np.vstack([FEATURES[:6], np.zeros((1, 4))])), 3),
    "identity": (dmsgd.kernels.Linear(np.eye(7)), 3),
    "strata": (dmsgd.kernels.Linear(dmsgd.features.one_hot(STRATA)), 2),
    "strata, k = M": (dmsgd.kernels.Linear(dmsgd.features.one_hot(STRATA)), 3),
    "balanced strata": (balanced_strata(STRATA), 2),
    "features and labels": (dmsgd.kernels.Linear(dmsgd.features.concat(FEATURES, STRATA, 0.7)), 5),
}


def matrix(kernel):
    everyone = np.arange(kernel.n)
    return kernel.block(everyone, everyone)


@pytest.fixture(params=KERNELS, scope="module")
def case(request):
    kernel, k = KERNELS[request.param]
    return kernel, k, kdpp_law(matrix(kernel), k)


def test_closed_forms_equal_enumeration(case):
    kernel, k, law = case
    check_closed_forms(dmsgd.KDPP(kernel, k), law)


@pytest.mark.parametrize("sampler", [rejection, pytest.param(reference, marks=pytest.mark.long)])
def test_draws_follow_the_law(case, sampler):
    kernel, k, law = case
    size = 20_000 if sampler is rejection else 3_000
    check_draws(dmsgd.KDPP(kernel, k, sampler=sampler), law, size)


def test_draws_follow_the_law_across_blocks_of_proposals():
    """At k = 12 of 14 a draw needs several blocks, so W is used and reflected."""
    L = (lambda A: A @ A.T)(np.random.default_rng(3).normal(size=(14, 14)))
    design = dmsgd.KDPP(dmsgd.kernels.Precomputed(L), 12)
    law = kdpp_law(L, 12)
    check_closed_forms(design, law)
    check_draws(design, law)


@pytest.mark.parametrize("sampler", [rejection, reference])
def test_determinism(sampler):
    check_determinism(dmsgd.KDPP(dmsgd.kernels.Linear(FEATURES), 3, sampler=sampler))


def test_large_draws_do_not_depend_on_workers():
    X = RNG.normal(size=(3000, 150))
    design = dmsgd.diversify(X, k=90)
    alone = design.sample(20, seed=1)
    for workers in (2, 7, -1):
        assert (design.sample(20, seed=1, workers=workers) == alone).all()
    assert (np.sort(alone, axis=1)[:, 1:] != np.sort(alone, axis=1)[:, :-1]).all()


def test_single_draws_of_several_threads_do_not_share_scratch():
    """Scratch is kept between calls, and several threads may take it at once."""
    design = dmsgd.diversify(RNG.normal(size=(200, 40)), k=20)
    alone = design.sample(300, seed=1)

    def draw(t):
        return design.sample(1, seed=1, start=t)[0]

    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            assert (np.array(list(threads.map(draw, range(300)))) == alone).all()


def test_moments_of_large_draws():
    """Beyond enumeration: frequencies of items and of pairs against the closed forms."""
    rng = np.random.default_rng(11)
    design = dmsgd.diversify(rng.normal(size=(60, 45)) * rng.gamma(1, 1, 45), k=36)
    size = 40_000
    seen = np.zeros((size, 60))
    np.put_along_axis(seen, design.sample(size, seed=2), 1, axis=1)
    b = design.inclusion()
    z = (seen.mean(axis=0) - b) / np.sqrt(b * (1 - b) / size)
    assert np.abs(z).max() < 4.5
    everyone = np.arange(60)
    joint = design.joint(everyone[:, None], everyone)
    upper = np.triu_indices(60, 1)
    z = ((seen.T @ seen / size) - joint)[upper] / np.sqrt(joint * (1 - joint) / size)[upper]
    assert np.abs(z).max() < 5.0


def test_order_within_a_row_is_exchangeable():
    check_exchangeable(dmsgd.KDPP(dmsgd.kernels.Linear(FEATURES), 3))


def test_identity_kernel_is_plain_sgd():
    design, plain = (
        dmsgd.KDPP(dmsgd.kernels.Linear(np.eye(8)), 3),
        dmsgd.Uniform(8, 3),
    )
    batches = plain.sample(5, seed=0)
    np.testing.assert_allclose(design.log_prob(batches), plain.log_prob(batches))
    np.testing.assert_allclose(design.inclusion(), plain.inclusion())
    np.testing.assert_allclose(design.joint(0, [1, 2]), plain.joint(0, [1, 2]))


def test_strata_kernel_with_k_equal_to_strata_is_stratified_sampling():
    design = dmsgd.KDPP(
        dmsgd.kernels.exact(dmsgd.kernels.Linear(dmsgd.features.one_hot(STRATA))), 3
    )
    stratified = dmsgd.Stratified(STRATA, 3)
    everyone = np.arange(8)
    np.testing.assert_allclose(design.inclusion(), stratified.inclusion(), atol=1e-12)
    np.testing.assert_allclose(
        design.joint(everyone[:, None], everyone),
        stratified.joint(everyone[:, None], everyone),
        atol=1e-12,
    )
    assert all(set(STRATA[row]) == {0, 1, 2} for row in design.sample(100, seed=0))


def test_strata_with_fewer_items_than_strata_favours_large_ones_unless_balanced():
    """The paper's Proposition 1 holds at k = M only: sizes 3, 2, 3, 1 with k = 2."""
    y = np.repeat([0, 1, 2, 3], [3, 2, 3, 1])
    plain = dmsgd.kernels.Linear(dmsgd.features.one_hot(y))
    kernels = {False: plain, True: balanced_strata(y)}
    share = {
        balanced: np.bincount(y, dmsgd.KDPP(kernel, 2).inclusion()).round(2)
        for balanced, kernel in kernels.items()
    }
    np.testing.assert_allclose(share[False], [0.62, 0.48, 0.62, 0.28])
    np.testing.assert_allclose(share[True], 0.5)


def test_rank_error_names_the_rank_and_the_ways_out():
    with pytest.raises(dmsgd.RankError, match=r"have 4 .* 5 need 5.*; pass k=4, or kernel='rbf'"):
        dmsgd.KDPP(dmsgd.kernels.Linear(FEATURES), 5)
    with pytest.raises(dmsgd.RankError, match="3 classes"):
        dmsgd.diversify(FEATURES, 5, labels=STRATA, w=1.0)
    error = pickle.loads(pickle.dumps(dmsgd.RankError(5, 4, "the data has 4 items")))
    assert (error.k, error.rank, error.found) == (5, 4, "the data has 4 items")
    assert "k=0" not in str(dmsgd.RankError(5, 0, "all features are zero"))


def test_a_set_of_dependent_items_has_probability_zero():
    design = dmsgd.KDPP(dmsgd.kernels.Linear(DUPLICATED), 2)
    assert np.isneginf(design.log_prob([[0, 4], [1, 1]])).all()
    assert np.isfinite(design.log_prob([0, 1]))


def test_designs_survive_pickling_after_use():
    design = dmsgd.diversify(FEATURES, k=3)
    batches, b = design.sample(5, seed=0), design.inclusion()
    again = pickle.loads(pickle.dumps(design))
    assert (again.sample(5, seed=0) == batches).all()
    np.testing.assert_array_equal(again.inclusion(), b)


def test_a_spectrum_that_is_none_is_noticed():
    broken = truncate(np.ones(3), np.ones((6, 3)) / np.sqrt(6), "made up", Rounding())
    with pytest.raises(dmsgd.SamplingError, match="not orthonormal"):
        dmsgd.KDPP(broken, 3).sample(1, seed=0)


def test_a_spectrum_does_not_change_with_what_it_was_made_from():
    values, vectors = np.array([3.0, 2.0]), np.eye(6, 2)
    design = dmsgd.KDPP(dmsgd.spectra.Spectrum(values, vectors), 1)
    before = design.fingerprint()
    values[:], vectors[:] = 1.0, 0.0
    assert design.fingerprint() == before
    np.testing.assert_allclose(design.inclusion(), [0.6, 0.4, 0, 0, 0, 0])


def test_eigenvalues_as_far_apart_as_numbers_go():
    lengths = np.sqrt([1e250, 1.0, 1e-250])
    for spectrum in (
        dmsgd.kernels.exact(dmsgd.kernels.Linear(sparse.diags_array(lengths))),
        dmsgd.spectra.Spectrum(lengths**2, np.eye(3)),
    ):
        design = dmsgd.KDPP(spectrum, 2)
        np.testing.assert_allclose(design.inclusion(), [1, 1, 0], atol=1e-12)
    with pytest.raises(ValueError, match="values are so large that their sum overflows; rescale"):
        dmsgd.spectra.Spectrum([1e308, 1e308], np.eye(2))


@pytest.mark.parametrize(
    "values",
    [[3.8e111, 2e-9], [1e300, 1.0, 1e-280], [1e307, 9e306, 1e-290], [2e-290, 1e-290], [1, 1e-24]],
)
def test_log_prob_of_eigenvalues_far_apart_is_that_of_exact_arithmetic(values):
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0][:, : len(values)]
    with mpmath.workdps(1200):
        L = mpmath.matrix(V) * mpmath.diag(values) * mpmath.matrix(V).T
        for k in range(1, len(values) + 1):
            design = dmsgd.KDPP(dmsgd.spectra.Spectrum(values, V), k)
            subsets = [list(each) for each in combinations(range(5), k)]
            dets = [mpmath.det(mpmath.matrix([[L[i, j] for j in Y] for i in Y])) for Y in subsets]
            expected = [float(mpmath.log(det / mpmath.fsum(dets))) for det in dets]
            np.testing.assert_allclose(design.log_prob(subsets), expected, rtol=1e-11, atol=1e-11)


def test_copies_have_no_probability_however_far_apart_the_eigenvalues():
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 3)))[0]
    twice = np.vstack([V, V[1:2]])
    twice[[1, 4]] /= np.sqrt(2)
    design = dmsgd.KDPP(dmsgd.spectra.Spectrum([1e120, 1.0, 1e-120], twice), 3)
    assert np.isneginf(design.log_prob([0, 1, 4]))
    assert np.isfinite(design.log_prob([0, 1, 2]))


@pytest.mark.parametrize("values", [[5e-324, 5e-324], [1e-310, 1e-311], [1.0, 1e-300]])
def test_eigenvalues_too_small_for_their_digits_are_refused(values):
    with pytest.raises(ValueError, match="digits"):
        dmsgd.spectra.Spectrum(values, np.eye(2))


def test_rows_too_short_for_their_squares_count_as_zero():
    """1e-160 squared has five digits, so that the eigenvector would not have length 1."""
    X = sparse.diags_array([1.0, 2.0, 1e-160])
    assert dmsgd.kernels.exact(dmsgd.kernels.Linear(X)).rank == 2
    with pytest.raises(dmsgd.RankError, match="2 independent"):
        dmsgd.KDPP(dmsgd.kernels.Linear(X), 3)


def test_moments_helper_agrees_with_a_known_law():
    b, joint = moments({(0, 1): 0.25, (1, 2): 0.75}, 3)
    np.testing.assert_allclose(b, [0.25, 1.0, 0.75])
    assert joint[0, 2] == 0
