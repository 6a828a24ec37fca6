"""DPPs by L or by K, given items, and their sizes equal enumeration."""

import pickle
from itertools import combinations

import mpmath
import numpy as np
import pytest
from scipy import sparse

import dmsgd
from contracts import check_closed_forms, check_determinism, check_draws, kdpp_law
from dmsgd.features import array
from dmsgd.features.blocks import in_blocks
from dmsgd.polynomials import log_polynomials
from dmsgd.spectra import Spectrum

RNG = np.random.default_rng(31)
N = 6
#: Eigenvalues of marginal kernels: general, projections, mixed, of any rank.
MARGINALS = {
    "below 1": [0.9, 0.6, 0.5, 0.4, 0.2, 0.1],
    "low rank": [0.9, 0.5, 0.3],
    "projection": [1.0, 1.0, 1.0],
    "mixed": [1.0, 1.0, 0.7, 0.5, 0.3, 0.1],
    "mixed, low rank": [1.0, 0.4],
    "nearly 1": [1.0, 1 - 1e-9, 0.5],
}
CASES = [[], [1], [0], [4], [3, 2], [0, 1, 2], [5, 3, 0], range(6)]


def marginal(values, seed=0):
    V = np.linalg.qr(np.random.default_rng(seed).normal(size=(N, N)))[0][:, : len(values)]
    return (V * values) @ V.T, V


def subsets():
    return [Y for size in range(N + 1) for Y in combinations(range(N), size)]


NO_SET = dict.fromkeys(subsets(), 0.0)


def marginal_law(K):
    """P(Y) = |det(K - I restricted to the items that are not in Y)|, for all sets."""
    law = {}
    for Y in subsets():
        others = np.ones(N)
        others[list(Y)] = 0.0
        law[Y] = abs(np.linalg.det(K - np.diag(others)))
    return {Y: p if p > 1e-14 else 0.0 for Y, p in law.items()}


def likelihood_law(L):
    dets = {Y: np.linalg.det(L[np.ix_(Y, Y)]) if Y else 1.0 for Y in subsets()}
    dets = {Y: det if det > 1e-12 * max(dets.values()) else 0.0 for Y, det in dets.items()}
    return {Y: det / sum(dets.values()) for Y, det in dets.items()}


def conditioned(law, items):
    held = {Y: p * (set(items) <= set(Y)) for Y, p in law.items()}
    return {Y: p / sum(held.values()) for Y, p in held.items()}


def check(design, law):
    """Probabilities, sizes and the marginal kernel are those of the law."""
    check_closed_forms(design, law)
    sizes = design.size_distribution()
    by_size = np.bincount([len(Y) for Y in law], weights=list(law.values()), minlength=N + 1)
    np.testing.assert_allclose(sizes, by_size[: sizes.size], atol=1e-12)
    assert by_size[sizes.size :].sum() < 1e-12
    assert design.expected_size == pytest.approx(by_size @ np.arange(N + 1), abs=1e-12)
    K = design.marginal_kernel()
    for A in ((0,), (1, 2), (0, 3, 5)):
        held = sum(p for Y, p in law.items() if set(A) <= set(Y))
        assert np.linalg.det(K[np.ix_(A, A)]) == pytest.approx(held, abs=1e-12)


@pytest.mark.parametrize("name", MARGINALS)
def test_a_dpp_of_a_marginal_kernel_equals_enumeration(name):
    K, V = marginal(MARGINALS[name])
    law = marginal_law(K)
    for source in (K, Spectrum(np.array(MARGINALS[name]), V)):
        design = dmsgd.DPP.from_marginal(source)
        check(design, law)
        np.testing.assert_allclose(design.marginal_kernel(), K, atol=1e-14)
    if name in ("projection", "mixed"):
        check_draws(design, law, size=3000)


@pytest.mark.parametrize("items", CASES)
@pytest.mark.parametrize("name", MARGINALS)
def test_a_marginal_kernel_given_items_equals_enumeration(name, items):
    K, _ = marginal(MARGINALS[name])
    law = marginal_law(K)
    design = dmsgd.DPP.from_marginal(K)
    if sum(conditioned_mass(law, items)) < 1e-12:
        with pytest.raises(ValueError, match="items"):
            design.given(items)
        return
    given = design.given(items)
    check(given, conditioned(law, items))
    assert (given.inclusion()[items] == 1).all()


def conditioned_mass(law, items):
    return [p for Y, p in law.items() if set(items) <= set(Y)]


@pytest.mark.parametrize("items", CASES)
@pytest.mark.parametrize("rank", [3, 6])
def test_a_dpp_given_items_equals_enumeration(rank, items):
    F = RNG.normal(size=(N, rank))
    if len(items) > rank:
        with pytest.raises(ValueError, match=f"rank {rank}"):
            dmsgd.DPP(dmsgd.kernels.Linear(F)).given(items)
        return
    law = conditioned(likelihood_law(F @ F.T), items)
    design = dmsgd.DPP(dmsgd.kernels.Linear(F)).given(items)
    check(design, law)
    draws = design.sample(200, seed=1)
    assert all(set(items) <= set(row.tolist()) for row in draws)


@pytest.mark.filterwarnings("ignore::dmsgd.KernelWarning")
@pytest.mark.parametrize("values", [(3.8e111, 1e40, 2.0, 2e-3), (1e307, 1.0, 1e-3, 1e-290)])
def test_eigenvalues_may_differ_by_any_factor(values):
    V = np.linalg.qr(RNG.normal(size=(N, 4)))[0]
    V[4] = V[3]
    V = np.linalg.qr(V)[0]  # items 3 and 4 stay duplicates
    design = dmsgd.DPP(Spectrum(values, V))
    with mpmath.workdps(400):
        L = mpmath.matrix(V) * mpmath.diag(values) * mpmath.matrix(V).T
        sets = [Y for size in (2, 3, 4) for Y in combinations(range(N), size) if {0, 1} <= set(Y)]
        law = {Y: mpmath.det(mpmath.matrix([[L[i, j] for j in Y] for i in Y])) for Y in sets}
        total = mpmath.fsum(law.values())
        b = [float(sum(p for Y, p in law.items() if i in Y) / total) for i in range(N)]
    np.testing.assert_allclose(design.given([0, 1]).inclusion(), b, atol=1e-12)
    assert np.isfinite(design.log_prob([design.greedy_map()])).all()
    with pytest.raises(ValueError, match="duplicate"):
        design.given([3, 4])


def test_draws_of_a_conditioned_dpp_follow_the_law():
    F = RNG.normal(size=(N, 4))
    law = conditioned(likelihood_law(F @ F.T), [1])
    design = dmsgd.DPP(F @ F.T).given([1])
    check_draws(design, law, size=3000)
    check_determinism(design)
    again = pickle.loads(pickle.dumps(design))
    assert [a.tolist() for a in again.sample(5, seed=1)] == [
        a.tolist() for a in design.sample(5, seed=1)
    ]


def test_conditions_can_follow_each_other():
    F = RNG.normal(size=(N, 5))
    law = likelihood_law(F @ F.T)
    design = dmsgd.DPP(F @ F.T).given([1]).given([3]).given([3, 4])
    check(design, conditioned(law, [1, 3, 4]))


@pytest.mark.parametrize("seed", range(40))
def test_random_marginal_kernels_given_items(seed):
    """Eigenvalues of 1, near 1 and near 0, given items at random."""
    rng = np.random.default_rng([7, seed])
    some = [1.0, 1.0, 1 - 10 ** -rng.uniform(1, 8), rng.random(), 10 ** -rng.uniform(1, 6), 0.5]
    K, _ = marginal(sorted(rng.permutation(some)[: rng.integers(1, N + 1)], reverse=True), seed)
    order = rng.permutation(N)
    items = order[: rng.integers(3)].tolist()
    law = marginal_law(K)
    left = [Y for Y in conditioned_mass(law, items) if Y > 1e-6]
    if len(left) < 2:  # nothing, or the given items alone
        return
    design = dmsgd.DPP.from_marginal(K).given(items)
    held = conditioned(law, items)
    b = [sum(p for Y, p in held.items() if i in Y) for i in range(N)]
    np.testing.assert_allclose(design.inclusion(), b, atol=1e-8)
    found = np.exp(design.log_prob([list(Y) for Y in held]))
    np.testing.assert_allclose(found, list(held.values()), atol=1e-8)


def test_sizes_are_exact_for_many_eigenvalues():
    values = np.geomspace(1e9, 1e-9, 80)
    V = np.linalg.qr(RNG.normal(size=(90, 80)))[0]
    design = dmsgd.DPP(Spectrum(values, V))
    sizes = design.size_distribution()
    assert sizes.shape == (81,)
    assert sizes.sum() == pytest.approx(1, abs=1e-13)
    log_e = log_polynomials(values, 80)[:, -1]  # P(|Y| = j) = e_j / det(L + I)
    exact = log_e - np.log1p(values).sum()
    seen = sizes > 1e-300
    np.testing.assert_allclose(np.log(sizes[seen]), exact[seen], atol=1e-10)


def test_duplicates_of_given_items_are_never_drawn():
    F = np.vstack([RNG.normal(size=(N, 4)), np.zeros((2, 4))])
    F[6] = F[1]
    design = dmsgd.DPP(dmsgd.kernels.Linear(F)).given([1])
    assert np.flatnonzero(design.inclusion() == 0).tolist() == [6, 7]
    with pytest.raises(ValueError, match="never drawn"):
        dmsgd.unbiased_weights(design)


@pytest.mark.parametrize("kind", [in_blocks, sparse.csr_array])
def test_other_features_give_the_same(kind, monkeypatch):
    F = RNG.normal(size=(40, 5))
    whole = dmsgd.DPP(dmsgd.kernels.Linear(F))
    monkeypatch.setattr(array, "STORED", 0)
    other = dmsgd.DPP(dmsgd.kernels.Linear(kind(F)))
    assert not other.spectrum.eigenvectors.stored
    for items in ([], [2], [2, 5]):
        one, two = (each.given(items) for each in (whole, other))
        np.testing.assert_allclose(two.inclusion(), one.inclusion(), atol=1e-12)
        draws = two.sample(20, seed=0)
        np.testing.assert_allclose(two.log_prob(draws), one.log_prob(draws), atol=1e-9)


@pytest.mark.parametrize(
    ("K", "word"),
    [
        (np.eye(3) * 1.01, "DPP"),
        (np.ones((2, 3)), "square"),
        (np.triu(np.ones((3, 3))), "symmetric"),
        (-np.eye(3), "semi-definite"),
        (np.zeros((3, 3)), "zeros"),
    ],
)
def test_what_is_no_marginal_kernel_is_refused(K, word):
    with pytest.raises(ValueError, match=f"^K .*{word}"):
        dmsgd.DPP.from_marginal(K)


def test_rounding_of_a_projection_is_no_error():
    V = np.linalg.qr(RNG.normal(size=(100, 20)))[0]
    design = dmsgd.DPP.from_marginal(V @ V.T)
    assert (design.size_distribution()[:20] == 0).all()
    assert design.sample(3, seed=0)[0].size == 20


@pytest.mark.parametrize(
    ("items", "word"),
    [
        ([0, 0], "distinct"),
        ([0, 1, 2, 3], "rank"),
        ([0, 5], "duplicate"),
        ([6], "items"),
    ],
)
def test_impossible_conditions_are_refused(items, word):
    F = np.vstack([np.eye(3), np.ones((2, 3)), np.eye(3)[:1]])
    for design in (dmsgd.DPP(F @ F.T), dmsgd.DPP.from_marginal(F @ F.T / 10)):
        with pytest.raises(ValueError, match=word):
            design.given(items)


def test_a_condition_that_leaves_one_set_makes_it_certain():
    both = dmsgd.DPP(np.eye(2)).given([0, 1])
    assert [sorted(Y.tolist()) for Y in both.sample(3, seed=0)] == 3 * [[0, 1]]
    every = tuple(range(N))
    check(dmsgd.DPP(np.eye(N)).given([0, 1]).given(every), {**NO_SET, every: 1.0})


def test_quality_counts_in_the_greedy_set():
    S = dmsgd.kernels.RBF(RNG.normal(size=(N, 2)), 1.0)
    q = np.array([1.0, 9.0, 1.0, 1.0, 1.0, 5.0])
    design = dmsgd.KDPP(dmsgd.kernels.with_quality(S, q), 2)
    L = q[:, None] * S.block(range(N), range(N)) * q
    pairs = {Y: np.linalg.det(L[np.ix_(Y, Y)]) for Y in combinations(range(N), 2)}
    assert tuple(sorted(design.greedy_map().tolist())) == max(pairs, key=pairs.get)


def greedy_by_hand(L):
    """Items that each multiply det(L_Y) by most, while that is more than 1."""
    Y, det = [], 1.0
    while len(Y) < len(L):
        more = {i: np.linalg.det(L[np.ix_([*Y, i], [*Y, i])]) for i in range(len(L)) if i not in Y}
        best = max(more, key=more.get)
        if more[best] <= det * (1 + 1e-9):
            break
        Y, det = [*Y, best], more[best]
    return Y


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1e12])
@pytest.mark.parametrize("rank", [3, 6])
def test_the_greedy_set_of_a_dpp(rank, scale):
    F = np.sqrt(scale) * RNG.normal(size=(N, rank))
    design, expected = dmsgd.DPP(dmsgd.kernels.Linear(F)), greedy_by_hand(F @ F.T)[:rank]
    assert design.greedy_map().tolist() == expected
    others = [i for i in range(N) if i != 3]
    left = F @ F.T - np.outer(F @ F[3], F @ F[3]) / (F[3] @ F[3])
    rest = greedy_by_hand(left[np.ix_(others, others)])[: rank - 1]
    assert design.given([3]).greedy_map().tolist() == [3, *(others[i] for i in rest)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", MARGINALS)
def test_the_greedy_set_of_a_marginal_kernel(name, seed):
    """Eigenvalues of 1 are as large ones of L."""
    K, V = marginal(MARGINALS[name], seed)
    p = np.array(MARGINALS[name])
    odds = np.where(p == 1, 1e10, p / np.where(p == 1, 1.0, 1 - p))
    expected = greedy_by_hand((V * odds) @ V.T)
    found = dmsgd.DPP.from_marginal(K).greedy_map()
    assert found.dtype == np.int64
    assert found.tolist() == expected[: p.size]
    assert found.size >= np.count_nonzero(p == 1)


def test_greedy_sets_may_be_empty():
    assert dmsgd.DPP(np.eye(N)).greedy_map().tolist() == []
    assert dmsgd.DPP(1.1 * np.eye(N)).greedy_map().tolist() == list(range(N))


def test_a_projection_from_a_basis_needs_no_matrix_over_pairs():
    V = np.linalg.qr(RNG.normal(size=(N, 3)))[0]
    design = dmsgd.DPP.from_marginal(dmsgd.kernels.Linear(V))
    check(design, marginal_law(V @ V.T))
    check_draws(design, marginal_law(V @ V.T), size=3000)
    many = np.linalg.qr(RNG.normal(size=(200_000, 5)))[0]  # V Vᵀ would take 298 GB
    assert {Y.size for Y in dmsgd.DPP.from_marginal(dmsgd.kernels.Linear(many)).sample(5)} == {5}


def test_three_items_of_a_dpp_and_of_a_k_dpp():
    L = RNG.normal(size=(N, 5)) @ RNG.normal(size=(5, N))
    L, A = L @ L.T, (0, 2, 5)
    kdpp, law = dmsgd.KDPP(L, 4), kdpp_law(L, 4)
    held = sum(p for Y, p in law.items() if set(A) <= set(Y))
    assert kdpp.joint(0, 2) * kdpp.given([0, 2]).inclusion()[5] == pytest.approx(held, abs=1e-10)


def test_one_flat_set_is_refused_with_the_way_to_write_it() -> None:
    with pytest.raises(ValueError, match=r"\[\[0, 1, 2\]\]"):
        dmsgd.DPP(np.eye(4)).log_prob([1, 3])
