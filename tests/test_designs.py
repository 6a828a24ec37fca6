import pickle
from itertools import combinations, product

import numpy as np
import pytest

import dmsgd
import precise
from contracts import check_closed_forms, check_determinism, check_draws, check_exchangeable

RNG = np.random.default_rng(5)
ITEMS, CLASSES = RNG.normal(size=(40, 6)), np.repeat(["a", "b", "c"], [20, 15, 5])
PICKLED = {
    "diversify": lambda: dmsgd.diversify(ITEMS, 4, CLASSES, 0.5, normalize=True),
    "target": lambda: dmsgd.diversify(ITEMS, 4, target="uniform"),
    "target as numbers": lambda: dmsgd.diversify(ITEMS, 4, target=np.arange(40) + 40),
    "nystrom": lambda: dmsgd.diversify(ITEMS, 4, kernel="rbf", spectrum="nystrom", rank=20),
    "pivoted": lambda: dmsgd.diversify(ITEMS, 4, spectrum="pivoted_cholesky", rank=5),
    "KDPP": lambda: dmsgd.KDPP(ITEMS @ ITEMS.T + np.eye(40), 4),
    "given": lambda: dmsgd.diversify(ITEMS, 4).given([3]),
    "DPP": lambda: dmsgd.DPP(ITEMS @ ITEMS.T),
    "Uniform": lambda: dmsgd.Uniform(40, 4),
    "Stratified": lambda: dmsgd.Stratified(CLASSES, 4),
    "clustered": lambda: dmsgd.designs.clustered(ITEMS, 4),
    "cells": lambda: dmsgd.cells(ITEMS, 4),
    "Weighted": lambda: dmsgd.Weighted(weights=np.arange(40) + 1, k=4),
    "Weighted.like": lambda: dmsgd.Weighted.like(dmsgd.diversify(ITEMS, 4)),
    "Partition": lambda: dmsgd.Partition(dmsgd.Stratified(CLASSES, 4)),
    "SwapChain": lambda: dmsgd.designs.SwapChain(dmsgd.kernels.RBF(ITEMS), 4),
}


def dpp_law(L):
    n = len(L)
    sets = [Y for size in range(n + 1) for Y in combinations(range(n), size)]
    dets = np.array([np.linalg.det(L[np.ix_(Y, Y)]) if Y else 1.0 for Y in sets])
    dets = np.where(dets < 1e-12, 0.0, dets)
    return dict(zip(sets, dets / np.linalg.det(L + np.eye(n)), strict=True))


def stratified_law(y, k):
    """Enumerate: counts as equal as the sizes allow, ties broken at random."""
    strata = [np.flatnonzero(y == c) for c in np.unique(y)]
    options = [
        counts for counts in product(*(range(s.size + 1) for s in strata)) if sum(counts) == k
    ]
    # the most equal allocation is the one whose sorted counts are the flattest
    flattest = min(sum(c * c for c in counts) for counts in options)
    best = [counts for counts in options if sum(c * c for c in counts) == flattest]
    law = dict.fromkeys(combinations(range(y.size), k), 0.0)
    for counts in best:
        parts = [list(combinations(s.tolist(), c)) for s, c in zip(strata, counts, strict=True)]
        ways = list(product(*parts))
        for way in ways:
            law[tuple(sorted(sum(way, ())))] += 1 / (len(best) * len(ways))
    return law


STRATIFIED = {
    "k = M": ([0, 0, 0, 1, 1, 2], 3),
    "k = 2M": ([0, 0, 0, 1, 1, 2, 2, 2], 6),
    "k not a multiple of M": ([0, 0, 0, 1, 1, 1, 2, 2], 5),
    "k < M": ([0, 0, 1, 1, 2, 3], 2),
    "a small stratum gives all it has": ([0, 0, 0, 0, 1, 2, 2, 2], 6),
    "a small stratum and a remainder": ([0, 0, 0, 0, 1, 2, 2, 2], 4),
    "k = n": ([0, 0, 1], 3),
    "one stratum": ([4, 4, 4, 4], 2),
}


@pytest.mark.parametrize("name", STRATIFIED)
def test_stratified(name):
    y, k = STRATIFIED[name]
    design, law = dmsgd.Stratified(y, k), stratified_law(np.array(y), k)
    check_closed_forms(design, law)
    check_draws(design, law)


def test_stratified_takes_names_as_strata():
    design = dmsgd.Stratified(["b", "a", "a", "b", "c"], 3)
    assert design.strata.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(design.inclusion(), [0.5, 0.5, 0.5, 0.5, 1.0])


@pytest.mark.parametrize(("n", "k"), [(7, 3), (5, 5), (6, 1), (1, 1)])
def test_uniform(n, k):
    sets = list(combinations(range(n), k))
    law = dict.fromkeys(sets, 1 / len(sets))
    design = dmsgd.Uniform(n, k)
    check_closed_forms(design, law)
    check_draws(design, law)


@pytest.mark.parametrize("rank", [3, 7])
def test_dpp(rank):
    B = RNG.normal(size=(7, rank))
    design, law = dmsgd.DPP(dmsgd.kernels.Linear(B)), dpp_law(B @ B.T)
    check_closed_forms(design, law)
    check_draws(design, law, size=5000)
    mean_size = sum(len(Y) * probability for Y, probability in law.items())
    assert design.expected_size == pytest.approx(mean_size)
    impossible = np.isneginf(design.log_prob([np.arange(7), [1, 1]]))
    assert impossible.tolist() == [rank < 7, True]


@pytest.mark.parametrize(
    "design",
    [
        dmsgd.Uniform(20, 4),
        dmsgd.Stratified(np.arange(20) % 3, 7),
        dmsgd.DPP(dmsgd.kernels.Linear(RNG.normal(size=(20, 6)))),
        dmsgd.designs.clustered(RNG.normal(size=(20, 2)), 4),
    ],
    ids=repr,
)
def test_determinism_and_pickling(design):
    check_determinism(design)
    again = pickle.loads(pickle.dumps(design))
    assert [a.tolist() for a in again.sample(5, seed=1)] == [
        a.tolist() for a in design.sample(5, seed=1)
    ]


def test_pairs_of_more_items_than_memory_has_numbers_for():
    design = dmsgd.Uniform(2**40, 3)
    assert design.joint(0, [1, 2**40 - 1]) == pytest.approx(6 / (2**40 * (2**40 - 1)))
    with pytest.raises(MemoryError, match=r"each of them is 3/n"):
        design.joint(5, 5)


@pytest.mark.parametrize("design", [dmsgd.Uniform(9, 3), dmsgd.Stratified([0, 0, 0, 1, 1, 2], 4)])
def test_order_within_a_row_is_exchangeable(design):
    check_exchangeable(design)


def test_clustered_is_stratified_over_clusters():
    centres = np.array([[0, 0], [50, 0], [0, 50]])
    group = np.repeat([0, 1, 2], [30, 6, 4])
    X = centres[group] + RNG.normal(size=(40, 2))
    design = dmsgd.designs.clustered(X, 6, clusters=3, seed=0)
    assert isinstance(design, dmsgd.Stratified)
    assert all(np.bincount(group[row]).tolist() == [2, 2, 2] for row in design.sample(50, seed=0))
    same = dmsgd.designs.clustered(X, 6, clusters=3, seed=0)
    np.testing.assert_array_equal(same.inclusion(), design.inclusion())


def test_correlation_is_the_papers_and_strongest_for_similar_items():
    X = np.array([[1, 0.0], [1, 0.1], [0, 1.0], [0.1, 1.0]])
    design = dmsgd.diversify(X, k=2)
    b = design.inclusion()
    C = design.joint(0, [1, 2]) / (b[0] * b[[1, 2]]) - 1
    assert C[0] < -0.9 < C[1] < 0
    assert design.joint(1, 1) == pytest.approx(b[1])


def test_items_of_a_kdpp_never_attract():
    """The paper expects C_ij > 0 for dissimilar items; k-DPPs are strongly Rayleigh, so C <= 0."""
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(9, 6)) ** 3
        everyone = np.arange(9)
        design = dmsgd.diversify(X, k=1 + seed % 6)
        b = design.inclusion()
        C = design.joint(everyone[:, None], everyone) / np.outer(b, b) - 1
        assert C[~np.eye(9, dtype=bool)].max() < 1e-9


def test_identity_has_slightly_negative_correlation_not_zero():
    design = dmsgd.KDPP(dmsgd.kernels.Linear(np.eye(6)), 2)
    assert design.joint(0, 1) == pytest.approx(2 * 1 / (6 * 5))
    assert design.joint(0, 1) < design.inclusion()[0] * design.inclusion()[1]


@pytest.mark.parametrize("small", [1e-3, 1e-5, 1e-6])
def test_unbiased_weights_are_as_exact_as_they_say(small):
    """Item 3 alone has the last direction; entries of F Fᵀ are rounded as those of the largest."""
    F = np.random.default_rng(0).normal(size=(7, 4))
    F[:, 3], F[3] = 0.0, [0.0, 0.0, 0.0, small]
    F = F @ np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    b = precise.enumerated(F, 3)
    for L in (dmsgd.kernels.Linear(F), F @ F.T):
        design = dmsgd.KDPP(L, 3)
        error = np.abs(7 * b * dmsgd.unbiased_weights(design) - 1)
        assert (error <= design.spectrum.inclusion_error(3) / b).all()
    assert b[3] < 10 * small**2


def test_unbiased_weights_estimate_the_mean_exactly():
    X, g = RNG.normal(size=(8, 4)), RNG.normal(size=(8, 3))
    design = dmsgd.diversify(X, k=3)
    weights = dmsgd.unbiased_weights(design)
    batches = np.array(list(combinations(range(8), 3)))
    estimates = (weights[batches][..., None] * g[batches]).sum(axis=1)
    expectation = np.exp(design.log_prob(batches)) @ estimates
    np.testing.assert_allclose(expectation, g.mean(axis=0), atol=1e-12)
    # the paper's (1/k) Σ g/b is too long by N/k
    printed = (g[batches] / design.inclusion()[batches][..., None]).mean(axis=1)
    np.testing.assert_allclose(
        np.exp(design.log_prob(batches)) @ printed, 8 / 3 * g.mean(axis=0), atol=1e-12
    )


def test_no_weights_for_items_that_are_never_drawn():
    design = dmsgd.diversify(np.vstack([np.eye(3), np.zeros((1, 3))]), k=2)
    with pytest.raises(ValueError, match=r"1 item never drawn .*item 3"):
        dmsgd.unbiased_weights(design)


def test_batches_of_the_wrong_shape_are_refused():
    design = dmsgd.Uniform(5, 2)
    with pytest.raises(ValueError, match=r"rows of k=2"):
        design.log_prob([[0, 1, 2]])
    with pytest.raises(ValueError, match=r"0..4"):
        design.joint(0, 5)
    with pytest.raises(TypeError, match="item numbers"):
        design.joint(0.5, 1)


@pytest.mark.parametrize("name", PICKLED)
def test_every_design_pickles(name):
    design = PICKLED[name]()
    design.sample(2, seed=0)  # tables are made, and not pickled
    again = pickle.loads(pickle.dumps(design))
    batches = zip(design.sample(5, seed=1), again.sample(5, seed=1), strict=True)
    assert all(np.array_equal(one, other) for one, other in batches)
    if name != "DPP":
        assert again.fingerprint() == design.fingerprint()


@pytest.mark.parametrize("make", [dmsgd.KDPP, dmsgd.designs.SwapChain])
def test_designs_of_a_kernel_take_its_matrix(make):
    kernel = dmsgd.kernels.Linear(np.random.default_rng(0).normal(size=(9, 30)))
    L = kernel.block(np.arange(9), np.arange(9))
    of_matrix, of_kernel = make(L.tolist(), 2), make(dmsgd.kernels.Precomputed(L), 2)
    assert of_matrix.fingerprint() == of_kernel.fingerprint()
    np.testing.assert_array_equal(of_matrix.sample(9, seed=0), of_kernel.sample(9, seed=0))
    with pytest.raises(TypeError, match="array or a Kernel, got the class Linear"):
        make(dmsgd.kernels.Linear, 2)
