"""A k-DPP given items has the law of enumeration, wherever its eigenvectors are."""

import pickle
import re
import warnings
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import dmsgd
import precise
from contracts import (
    check_closed_forms,
    check_determinism,
    check_draws,
    check_exchangeable,
    kdpp_law,
)
from dmsgd.features import array
from dmsgd.features.blocks import in_blocks
from dmsgd.kernels.conditioned import conditional
from dmsgd.samplers import reference
from test_kdpp import DUPLICATED, FEATURES, KERNELS, matrix

RNG = np.random.default_rng(11)
CLOUD = RNG.normal(size=(300, 12)) * np.linspace(0.5, 2, 300)[:, None]


def given_law(L, k, items):
    """P(Y) over all k-subsets, conditioned on containing the items."""
    law = kdpp_law(L, k)
    inside = {Y: p if set(items) <= set(Y) else 0.0 for Y, p in law.items()}
    total = sum(inside.values())
    return {Y: p / total for Y, p in inside.items()}


CASES = {
    "linear": ("linear", [2]),
    "linear, one other": ("linear", [5, 2]),
    "linear, k = rank": ("linear, k = rank", [1, 6]),
    "linear, k = rank, one other": ("linear, k = rank", [0, 1, 6]),
    "wide": ("wide", [0, 3]),
    "rbf": ("rbf", [4]),
    "full rank": ("full rank", [7, 0, 3]),
    "all items": ("full rank, k = n", [0, 2]),
    "rank deficient": ("rank deficient", [3]),
    "copies of what is given": ("duplicated rows", [0, 5]),
    "a zero row": ("a zero row", [1, 2]),
    "identity": ("identity", [6]),
    "strata": ("strata", [3]),
    "strata, k = M": ("strata, k = M", [3, 6]),
    "features and labels": ("features and labels", [0, 4, 7]),
    "nothing": ("linear", []),
    "all k items": ("linear", [5, 2, 0]),
    "all k items, k = rank": ("linear, k = rank", [0, 1, 6, 3]),
    "all k items, k = n": ("full rank, k = n", range(5)),
}


@pytest.fixture(params=CASES, scope="module")
def case(request):
    name, items = CASES[request.param]
    kernel, k = KERNELS[name]
    return dmsgd.KDPP(kernel, k), items, given_law(matrix(kernel), k, items)


def test_closed_forms_equal_enumeration(case):
    design, items, law = case
    check_closed_forms(design.given(items), law)


def test_draws_follow_the_law(case):
    design, items, law = case
    check_draws(design.given(items), law, size=5000)


def test_places_carry_nothing(case):
    design, items, _ = case
    check_exchangeable(design.given(items), size=5000)


EXCLUDED = {
    "linear": ("linear", [], [2]),
    "linear, and given": ("linear", [5, 2], [0, 7]),
    "linear, k = rank": ("linear, k = rank", [], [0, 1, 6]),
    "wide": ("wide", [0], [3, 4]),
    "rbf": ("rbf", [4], [1, 2, 6]),
    "full rank, all others": ("full rank", [7, 0, 3], [1, 2]),
    "full rank, all k items": ("full rank", [7, 0, 3, 5], [1, 2]),
    "copies": ("duplicated rows", [], [0, 5]),
    "a zero row": ("a zero row", [1], [2]),
    "strata": ("strata", [3], [0, 6]),
    "features and labels": ("features and labels", [0, 4, 7], [1]),
}


@pytest.mark.parametrize("name", EXCLUDED)
def test_kernels_without_some_items_equal_enumeration(name):
    name, items, exclude = EXCLUDED[name]
    kernel, k = KERNELS[name]
    kept = np.setdiff1d(np.arange(kernel.n), exclude)
    items = np.searchsorted(kept, items)
    design = dmsgd.KDPP(kernel.subset(kept), k).given(items)
    law = given_law(matrix(kernel)[np.ix_(kept, kept)], k, items)
    check_closed_forms(design, law)
    check_draws(design, law, size=2000)


def test_conditions_can_follow_each_other():
    kernel, k = KERNELS["full rank"]
    design = dmsgd.KDPP(kernel, k)
    chained = design.given([7]).given([3, 7])
    law = given_law(matrix(kernel), k, [3, 7])
    check_closed_forms(chained, law)
    check_draws(chained, law, size=2000)
    assert chained.given_items.tolist() == [3, 7]
    once = design.given([3]).given([7])
    assert once.fingerprint() == design.given([3, 7]).fingerprint()
    np.testing.assert_array_equal(once.sample(9, seed=1), design.given([3, 7]).sample(9, seed=1))
    with pytest.raises(ValueError, match="do not fit"):
        once.given([0, 1, 2])


def test_a_batch_that_is_given_is_certain():
    design = dmsgd.KDPP(dmsgd.kernels.Linear(CLOUD), 6).given([5, 1, 299, 7, 30, 80])
    again = pickle.loads(pickle.dumps(design))
    assert np.sort(again.sample(3, seed=0)).tolist() == 3 * [[1, 5, 7, 30, 80, 299]]
    check_determinism(design)
    assert design.greedy_map().tolist() == [1, 5, 7, 30, 80, 299]
    assert dmsgd.KDPP(np.eye(2), 1).given([1]).sample(2, seed=0).tolist() == [[1], [1]]
    assert design.second_moment(CLOUD) == pytest.approx(
        np.sum(CLOUD[design.given_items].sum(0) ** 2)
    )


def test_draws_are_functions_of_seed_and_number():
    design = dmsgd.diversify(CLOUD, 6).given([3, 250])
    check_determinism(design)
    again = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(again.sample(20, seed=1), design.sample(20, seed=1))


def test_another_sampler_draws_the_same_law():
    design = dmsgd.KDPP(dmsgd.kernels.Linear(FEATURES), 3, reference).given([2])
    check_draws(design, given_law(FEATURES @ FEATURES.T, 3, [2]), size=2000)


def test_the_order_of_given_items_does_not_matter():
    design = dmsgd.diversify(CLOUD, 6)
    one, other = design.given([7, 3]), design.given(np.array([3, 7]))
    np.testing.assert_array_equal(one.sample(5, seed=0), other.sample(5, seed=0))
    assert one.fingerprint() == other.fingerprint() != design.given([3, 8]).fingerprint()
    assert one.fingerprint() != design.fingerprint()


def test_items_in_blocks_and_of_texts_are_the_same(monkeypatch):
    whole = dmsgd.diversify(CLOUD, 6).given([3, 250])
    blocks = dmsgd.diversify(in_blocks(CLOUD), 6).given([3, 250])
    monkeypatch.setattr(array, "STORED", 0)
    texts = dmsgd.diversify(sparse.csr_array(CLOUD), 6).given([3, 250])
    for each in (blocks, texts):
        assert not each._rest.spectrum.eigenvectors.stored
        np.testing.assert_allclose(each.inclusion(), whole.inclusion(), atol=1e-12)
        draws = each.sample(20, seed=1)
        assert np.isin([3, 250], draws).all()
        np.testing.assert_allclose(each.log_prob(draws), whole.log_prob(draws), atol=1e-9)
        assert not np.isin(each._rest.sample(200, seed=2), [3, 250]).any()
    assert np.mean(blocks.sample(20, seed=1) == whole.sample(20, seed=1)) == 1.0


def test_a_factor_and_a_target_can_be_conditioned():
    spectrum = dmsgd.kernels.nystrom(dmsgd.kernels.RBF(FEATURES), 5)
    L = (np.asarray(spectrum.vectors) * spectrum.values) @ np.asarray(spectrum.vectors).T
    check_closed_forms(dmsgd.KDPP(spectrum, 3).given([1]), given_law(L, 3, [1]))
    design = dmsgd.diversify(FEATURES, 3, target="uniform")
    V = np.asarray(design.spectrum.vectors)
    L = (V * design.spectrum.values) @ V.T
    check_closed_forms(design.given([1]), given_law(L, 3, [1]))


def test_estimates_are_unbiased_given_the_items():
    y = RNG.normal(size=8)
    design = dmsgd.diversify(FEATURES, 4).given([1, 6])
    weights = dmsgd.unbiased_weights(design)
    sets = np.array(list(combinations(range(8), 4)))
    mean = np.exp(design.log_prob(sets)) @ (weights * y)[sets].sum(axis=1)
    assert mean == pytest.approx(y.mean(), abs=1e-12)


def test_copies_of_given_items_have_no_weights():
    F = np.vstack([CLOUD[:40], CLOUD[3:5]])
    design = dmsgd.diversify(F, 6).given([3])
    assert np.flatnonzero(design.inclusion() == 0).tolist() == [40]
    with pytest.raises(ValueError, match=r"1 item never drawn .* item 40"):
        dmsgd.unbiased_weights(design)


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([1, 1], ValueError, "items must be distinct, but 1 is given more than once"),
        ([0, 1, 2, 3], ValueError, "4 given items do not fit into batches of k=3"),
        ([8], ValueError, r"items must lie in 0\.\.7"),
        ([-1], ValueError, r"items must lie in 0\.\.7"),
        ([1.5], TypeError, "items must hold item numbers"),
        (3, ValueError, "items must be a 1-D list of items"),
        ([0, 4], ValueError, "no batch contains all given items: item 4 is a duplicate"),
    ],
)
def test_wrong_items_are_refused(items, error, message):
    with pytest.raises(error, match=message):
        dmsgd.diversify(DUPLICATED, 3).given(items)


def test_an_item_of_length_zero_is_refused():
    with pytest.raises(ValueError, match=r"item 6 is never drawn .* leave it out"):
        dmsgd.KDPP(KERNELS["a zero row"][0], 3).given([6])


def ill_conditioned(condition, centre=0.0):
    rng = np.random.default_rng(5)
    U, _ = np.linalg.qr(rng.normal(size=(9, 4)))
    V, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    F = (U * np.geomspace(1, 1 / condition, 4)) @ V
    return F + centre * rng.normal(size=4)


@pytest.mark.parametrize("condition", [1e2, 1e5, 1e8, 1e11])
@pytest.mark.parametrize("near", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("centre", [0.0, 1e3])
def test_rounding_is_small_or_told(condition, near, centre):
    """What is given may be near copies, or all that makes the largest eigenvalue."""
    F = ill_conditioned(condition, centre)
    F[1] = F[0] + near * (F[1] - F[0])
    for k, items in ((3, [0]), (4, [0, 5]), (4, [0, 1])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dmsgd.KernelWarning)
            design = dmsgd.KDPP(dmsgd.kernels.Linear(F), k)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            given = design.given(items)
        b = given.inclusion()
        error = np.abs(b - precise.enumerated(F, k, items)).max()
        assert error < 1e-8 or told, (k, items, error)
        estimate = given._rest.spectrum.inclusion_error(k - len(items))
        assert error < max(estimate, 1e-12)


@pytest.mark.parametrize("quality", [1e-3, 1e-5, 1e-6])
def test_rounding_given_a_small_item_of_a_matrix_is_small_or_told(quality):
    """An eigendecomposition rounds the entries of a small item as those of the largest."""
    for seed in range(6):
        F = np.random.default_rng([11, seed]).normal(size=(6, 9))
        F[4] *= quality
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            given = dmsgd.KDPP(F @ F.T, 3).given([4])
        error = np.abs(given.inclusion() - precise.enumerated(F, 3, [4])).max()
        assert error < given._rest.spectrum.inclusion_error(2), seed
        assert error < 1e-9 or told, seed


def hard_case(seed):
    """Features of condition 1 to 1e8 with near and exact ties, k, and items to be given."""
    rng = np.random.default_rng([37, seed])
    n = int(rng.integers(4, 9))
    d = int(rng.integers(2, n + 3))
    r = min(n, d)
    small, half = 10 ** -rng.uniform(0, 8), np.arange(r) < (r + 1) // 2
    two_levels = np.where(half, 1, small)
    near_ties = two_levels * np.where(np.arange(r) % 2, 1, 1 + 10 ** rng.uniform(-12, -1))
    spread = np.sort(small ** rng.random(r))[::-1]
    values = [np.geomspace(1, small, r), two_levels, near_ties, spread, np.ones(r), None]
    chosen = values[rng.integers(len(values))]
    if chosen is None:  # of deficient rank, but for the rounding of float32
        rank = max(1, r // 2)
        low = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
        F = low.astype(np.float32).astype(float)
    else:
        U, V = (np.linalg.qr(rng.normal(size=(size, r)))[0] for size in (n, d))
        F = (U * chosen) @ V.T
    k = int(rng.integers(2, r + 1))
    return F, k, np.sort(rng.permutation(n)[: rng.integers(1, k)]).tolist()


def said(caught):
    """Return how far the warnings say that b may be off; 1e-8 where there are none."""
    words = [re.search(r"by up to (\S+):", str(each.message)) for each in caught]
    return max([float(found[1]) for found in words], default=1e-8)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(250 * i, marks=pytest.mark.long) for i in range(1, 20))]
)
def test_hard_spectra_equal_enumeration(first):
    """Small eigenvalues that are close but not equal were once taken for equal."""
    for seed in range(first, first + 250):
        F, k, items = hard_case(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            design = dmsgd.KDPP(dmsgd.kernels.Linear(F), k)
            error = np.abs(design.inclusion() - precise.enumerated(F, k)).max()
            assert error <= said(caught), seed
            del caught[:]
            b = design.given(items).inclusion()
            assert np.abs(b - precise.enumerated(F, k, items)).max() <= said(caught), seed
            if seed % 3:
                continue
            del caught[:]
            others = [i for i in range(len(F)) if i not in items]
            kept = np.setdiff1d(np.arange(len(F)), others[: (len(F) - k) // 2])
            if kept.size == len(F):
                continue
            places = np.searchsorted(kept, items).tolist()
            b = dmsgd.KDPP(dmsgd.kernels.Linear(F).subset(kept), k).given(places).inclusion()
            true = precise.enumerated(F[kept], k, places)
            assert np.abs(b - true).max() <= said(caught), seed


def test_what_is_left_of_the_spectrum_is_the_schur_complement():
    F = CLOUD[:60]
    left = conditional(dmsgd.kernels.exact(dmsgd.kernels.Linear(F)), np.array([3, 9]))
    L, G = F @ F.T, [3, 9]
    schur = L - L[:, G] @ np.linalg.solve(L[np.ix_(G, G)], L[G])
    V = np.asarray(left.vectors)
    np.testing.assert_allclose((V * left.values) @ V.T, schur, atol=1e-12 * L.max())
    np.testing.assert_allclose(V.T @ V, np.eye(left.rank), atol=1e-13)
    assert left.rank == 10
    assert not V[G].any()


def test_it_goes_where_designs_go(tmp_path):
    design = dmsgd.diversify(CLOUD, 6).given([3])
    schedule = dmsgd.presample(design, 20, seed=2, path=tmp_path / "batches.npy")
    np.testing.assert_array_equal(schedule.batches, design.sample(20, seed=2))
    assert "given(1 item)" in design.provenance()["design"]
    half = dmsgd.Weighted.like(design)
    np.testing.assert_allclose(half.inclusion(), design.inclusion(), atol=1e-9)
