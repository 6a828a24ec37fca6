"""Weighted batches: the law equals enumeration, b is met, and draws follow it at every size."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

import dmsgd
from contracts import (
    ERROR_RATE,
    check_closed_forms,
    check_determinism,
    check_draws,
    check_exchangeable,
    kdpp_law,
    moments,
)
from dmsgd.designs.weighted import capped_shares
from dmsgd.samplers.conditional_poisson import ConditionalPoisson, as_probability, with_inclusion

RNG = np.random.default_rng(3)


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def law_of(odds, k):
    """P(Y) ∝ Π w_i by enumeration; infinite odds are in every set."""
    sure = np.isinf(odds)
    law = {}
    for Y in combinations(range(odds.size), k):
        chosen = np.isin(np.arange(odds.size), Y)
        law[Y] = np.prod(odds[chosen & ~sure]) * float(chosen[sure].all())
    total = sum(law.values())
    return {Y: value / total for Y, value in law.items()}


def poisson_like(logits, k):
    """Return b = 1 / (1 + exp(-logits - c)) with Σb = k: anything that can be asked for."""
    low, high = -300.0, 300.0
    for _ in range(200):
        c = (low + high) / 2
        low, high = (c, high) if np.sum(1 / (1 + np.exp(-logits - c))) < k else (low, c)
    return 1 / (1 + np.exp(-logits - c))


CASES = {
    "even": ([0.5] * 4, 2),
    "one likely": ([0.98, 0.01, 0.01], 1),
    "almost sure": ([0.999, 0.6, 0.401], 2),
    "two items": ([0.3, 0.7], 1),
    "never and always": ([1.0, 0.0, 0.25, 0.75, 0.5, 0.5], 3),
    "all of them": ([1.0, 1.0, 1.0], 3),
    "no choice": ([0.0, 1.0, 1.0, 0.0], 2),
    "one item": ([1.0], 1),
    "all but one": ([0.9, 0.8, 0.7, 0.95, 0.65], 4),
    "seven": (poisson_like(RNG.normal(size=7), 3).tolist(), 3),
    "eight, uneven": (poisson_like(3 * RNG.normal(size=8), 4).tolist(), 4),
}


@pytest.mark.parametrize("name", CASES)
def test_the_law_has_these_inclusion_probabilities_and_is_what_is_drawn(name):
    b, k = CASES[name]
    design = dmsgd.Weighted(b, k)
    law = law_of(design._distribution.odds, k)
    np.testing.assert_allclose(moments(law, len(b))[0], b, atol=1e-9)
    np.testing.assert_allclose(design.inclusion(), b, atol=1e-9)
    check_closed_forms(design, law)
    check_draws(design, law)


def test_it_is_the_kdpp_of_a_diagonal_kernel(rng):
    odds = np.exp(rng.normal(size=7))
    kernel = dmsgd.KDPP(dmsgd.kernels.Precomputed(np.diag(odds)), 3)
    law = kdpp_law(np.diag(odds), 3)
    design = dmsgd.Weighted(kernel.inclusion(), 3)
    check_closed_forms(design, law)
    batches = np.array(list(law))
    np.testing.assert_allclose(design.log_prob(batches), kernel.log_prob(batches), atol=1e-10)


def test_no_law_with_this_b_has_more_entropy(rng):
    """P(Y) ∝ Π w_i is the maximum: moving along any direction that keeps b and the sum loses."""
    b, k = np.array(CASES["seven"][0]), 3
    law = law_of(dmsgd.Weighted(b, k)._distribution.odds, k)
    p = np.array(list(law.values()))
    members = np.array([[i in Y for i in range(b.size)] for Y in law], dtype=float)
    constraints = np.column_stack([members, np.ones(p.size)])
    for _ in range(20):
        direction = rng.normal(size=p.size)
        direction -= constraints @ np.linalg.lstsq(constraints, direction, rcond=None)[0]
        q = p + 0.5 * p.min() * direction / np.abs(direction).max()
        np.testing.assert_allclose(q @ members, b, atol=1e-12)
        assert -(q @ np.log(q)) < -(p @ np.log(p))


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0, 6.0, 12.0])
def test_any_b_is_met(spread, rng):
    """Also where items are nearly never or nearly always drawn, for few items and for many."""
    for n in (2, 3, 5, 8, 20, 60, 300, 2000):
        for _ in range(6):
            k = int(rng.integers(1, n))
            b = poisson_like(spread * rng.normal(size=n), k)
            law = with_inclusion(b, k)
            found = law.inclusion(as_probability(law.odds))
            np.testing.assert_allclose(found, b, atol=1e-11)
            assert np.abs(found / b - 1)[b > 1e-3].max(initial=0.0) < 1e-10
            assert found.sum() == pytest.approx(k, rel=1e-12)


@pytest.mark.parametrize(
    ("sure", "missing", "rare"),
    [(1, 0.01, 1000), (6, 4e-3, 4000), (20, 0.02, 5000), (100, 1e-3, 10_000), (40, 1e-6, 1000),
     (3, 0.1, 1000), (6, 0.3, 100), (40, 1e-11, 300)],
)  # fmt: skip
def test_a_few_that_are_nearly_sure_beside_many_that_are_rare(sure, missing, rare, rng):
    """Hardly more than one of the k places is ever free: plain steps overshoot."""
    heavy = 1 - missing * rng.uniform(0.1, 1.9, sure)
    light = rng.random(rare) ** 3
    b = np.r_[heavy, light / light.sum() * (sure - heavy.sum())]
    law = dmsgd.Weighted(b, sure)._distribution
    np.testing.assert_allclose(law.inclusion(as_probability(law.odds)), b, atol=1e-11)


def test_series_and_sums_over_nodes_agree(rng):
    """Light items take another route than heavy ones: the same law, cut in two places."""
    from dmsgd.samplers import conditional_poisson

    odds = np.exp(rng.normal(size=400) - 3)
    i, j = rng.integers(0, 400, (2, 500))
    i, j = i[i != j], j[i != j]
    Y = rng.normal(size=(400, 3))
    results = []
    for light in (0.0, 1 / 16, 0.3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conditional_poisson, "SMALL", light)
            law = ConditionalPoisson(odds, 20)
            results.append(
                (law.inclusion(as_probability(odds)), law.joint(i, j), law.second_moment(Y))
            )
    for again in results[1:]:
        for left, right in zip(results[0], again, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-11)


def test_the_second_moment_equals_the_sum_over_pairs(rng):
    design = dmsgd.Weighted(weights=np.exp(rng.normal(size=50)), k=9)
    Y, everyone = rng.normal(size=(50, 4)), np.arange(50)
    pairs = design.joint(everyone[:, None], everyone)
    assert design.second_moment(Y) == pytest.approx(np.sum(pairs * (Y @ Y.T)), rel=1e-11)


def test_joint_probabilities_add_up(rng):
    """Σ_j P(i and j) = k b_i, and nothing attracts."""
    design = dmsgd.Weighted(weights=rng.pareto(1.5, size=300), k=30)
    everyone = np.arange(300)
    pairs = design.joint(everyone[:, None], everyone)
    b = design.inclusion()
    np.testing.assert_allclose(pairs.sum(axis=1), 30 * b, rtol=1e-10)
    assert (pairs - np.outer(b, b))[~np.eye(300, dtype=bool)].max() < 1e-13


@pytest.mark.parametrize(
    ("n", "k", "tail"), [(60, 20, 1.0), (3000, 64, 0.7), (3000, 1500, 2.0), (200_000, 256, 1.5)]
)
def test_draws_have_these_inclusion_probabilities(n, k, tail, rng):
    """Trees of one leaf an item, of shared leaves, and of both: χ² over items pooled by b."""
    design = dmsgd.Weighted(weights=rng.pareto(tail, size=n) + 1e-3, k=k)
    size = 4000
    batches = design.sample(size, seed=1)
    assert all(np.unique(row).size == k for row in batches[:50])
    b = design.inclusion()
    groups = np.array_split(np.argsort(b), 40)
    seen = np.bincount(batches.ravel(), minlength=n)
    statistic = 0.0
    for group in groups:
        expected = size * b[group].sum()
        # at most that of independent items: the places are shared
        variance = size * np.sum(b[group] * (1 - b[group]))
        if variance > 1e-6:
            statistic += (seen[group].sum() - expected) ** 2 / variance
        else:
            assert seen[group].sum() == round(expected)
    assert chi2.sf(statistic, len(groups)) > ERROR_RATE


def test_pairs_are_drawn_as_often_as_they_should_be(rng):
    design = dmsgd.Weighted(weights=rng.uniform(0.3, 1.5, size=12), k=5)
    batches = design.sample(40_000, seed=2)
    member = np.zeros((40_000, 12))
    member[np.arange(40_000)[:, None], batches] = 1
    i, j = np.triu_indices(12, 1)
    found, expected = (member.T @ member)[i, j] / 40_000, design.joint(i, j)
    z = (found - expected) / np.sqrt(expected * (1 - expected) / 40_000)
    assert np.abs(z).max() < 4.5


def test_determinism_order_and_pickling():
    design = dmsgd.Weighted(weights=np.arange(1.0, 21.0), k=6)
    check_determinism(design)
    check_exchangeable(design)
    again = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(again.sample(5, seed=1), design.sample(5, seed=1))
    assert again.fingerprint() == design.fingerprint()


def test_the_same_law_for_the_same_numbers_however_they_are_given():
    b = dmsgd.Weighted(weights=[1, 2, 3, 4], k=2).inclusion()
    np.testing.assert_allclose(b, [0.2, 0.4, 0.6, 0.8], atol=1e-12)
    scaled = dmsgd.Weighted(weights=np.array([1.0, 2, 3, 4]) * 1e-300, k=2)
    np.testing.assert_allclose(scaled.inclusion(), b, atol=1e-12)
    assert dmsgd.Weighted(b, 2).fingerprint() != scaled.fingerprint()


def test_weights_of_any_size_share_what_is_left():
    design = dmsgd.Weighted(weights=[1.0, 1e-305, 3e-305], k=2)
    np.testing.assert_allclose(design.inclusion(), [1, 0.25, 0.75], rtol=1e-12)


def test_weights_beyond_one_are_capped_and_the_rest_shares():
    b = capped_shares(np.array([100.0, 50, 1, 1, 1, 1, 0]), 4)
    np.testing.assert_allclose(b, [1, 1, 0.5, 0.5, 0.5, 0.5, 0])
    assert capped_shares(np.array([3.0, 0, 1]), 2).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "design",
    [
        dmsgd.diversify(RNG.normal(size=(60, 12)), k=8),
        dmsgd.diversify(RNG.normal(size=(40, 3)), k=6, kernel="rbf"),
        dmsgd.Stratified([0, 0, 0, 1, 1, 2], k=3),
        dmsgd.Stratified(np.arange(30) % 4, k=7),
        dmsgd.Uniform(9, 4),
        dmsgd.Weighted(weights=[1.0, 2, 3], k=2),
    ],
    ids=repr,
)
def test_without_repulsion_keeps_b_and_nothing_else(design):
    half = dmsgd.Weighted.like(design)
    assert isinstance(half, dmsgd.Weighted)
    np.testing.assert_allclose(half.inclusion(), design.inclusion(), atol=1e-9)
    found = half._distribution.inclusion(as_probability(half._distribution.odds))
    np.testing.assert_allclose(found, design.inclusion(), atol=1e-9)
    if not isinstance(design, dmsgd.Weighted):
        assert half.fingerprint() != design.fingerprint()
        assert "b of " in repr(half)


def test_uniform_batches_are_those_without_repulsion_already():
    uniform = dmsgd.Uniform(8, 3)
    batches = np.array(list(combinations(range(8), 3)))
    np.testing.assert_allclose(
        dmsgd.Weighted.like(uniform).log_prob(batches), uniform.log_prob(batches), atol=1e-12
    )


def test_it_goes_where_designs_go(tmp_path):
    design = dmsgd.Weighted(weights=np.arange(1.0, 41.0), k=5)
    schedule = dmsgd.presample(design, 30, seed=4, path=tmp_path / "batches.npy")
    np.testing.assert_array_equal(schedule.sample(30, seed=4), design.sample(30, seed=4))
    np.testing.assert_allclose(schedule.inclusion(), design.inclusion())
    weights = dmsgd.unbiased_weights(design)
    assert (weights * design.inclusion()).sum() == pytest.approx(1.0)
    pytest.importorskip("torch")
    sampler = dmsgd.torch.DiverseSampler(design, seed=4)
    assert list(sampler)[:15] == design.sample(3, seed=4).ravel().tolist()


def test_memory_is_a_few_numbers_an_item(rng):
    import tracemalloc

    n = 300_000
    weights = rng.exponential(size=n)
    dmsgd.Weighted(weights=weights[:1000], k=32).sample(1, seed=0)  # compile
    tracemalloc.start()
    design = dmsgd.Weighted(weights=weights, k=32)
    design.sample(1, seed=0)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 30 * n
    assert peak < 40 * n + 2**25  # parts of a fixed size beside


@pytest.mark.parametrize(
    "b",
    [
        [1 - 1e-9, 0.5, 0.499999],
        [1 - 1e-7, 1 - 1e-7, 0.5, 0.4999981],
        [1 + 1e-7, 1 - 1e-7, 1e-9],
        [1 - 1e-12, 0.6, 0.400001],
    ],
)
def test_what_rounding_leaves_of_a_sum_makes_no_item_more_than_sure(b):
    k = round(sum(b))
    design = dmsgd.Weighted(b, k)
    found = design.inclusion()
    assert found.max() <= 1
    assert found.sum() == pytest.approx(k, abs=1e-12)
    np.testing.assert_allclose(found, b, atol=3e-6)
    often = np.bincount(design.sample(2000, seed=0).ravel(), minlength=len(b)) / 2000
    np.testing.assert_allclose(often, found, atol=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"b": [0.5, 0.6], "k": 1}, r"b sums to 1.1.*sum to 1; pass them as weights="),
        ({"b": np.repeat([1, 1e-8], [999_999, 9]), "k": 1_000_000}, "b sums to 999999.*to 1000000"),
        ({"b": [1.5, 0.5], "k": 2}, r"b is 1.5 for item 0.*at most once"),
        ({"b": [0.5, -0.5, 1], "k": 1}, r"b must be at least 0.*-0.5 for item 1"),
        ({"weights": [1, np.nan], "k": 1}, r"weights.*nan for item 1"),
        ({"weights": [1, 0, 0], "k": 2}, r"positive for 1 item, fewer than k=2"),
        ({"weights": [[1, 2]], "k": 1}, r"one number per item, got shape \(1, 2\)"),
        ({"weights": [1.0, 2.0], "k": 3}, r"k=3 exceeds the number of items, 2"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        dmsgd.Weighted(**arguments)


def test_b_or_weights_and_k_are_needed():
    with pytest.raises(TypeError, match="weights holds text"):
        dmsgd.Weighted(weights=["a", "b"], k=1)
    with pytest.raises(TypeError, match="not both"):
        dmsgd.Weighted([0.5, 0.5], 1, weights=[1, 1])
    with pytest.raises(TypeError, match="needs b"):
        dmsgd.Weighted(k=2)
    with pytest.raises(TypeError, match="needs k"):
        dmsgd.Weighted([0.5, 0.5])


@pytest.mark.parametrize(
    ("weights", "k", "b"),
    [
        ([1e-310, 1, 2, 1], 2, [0, 0.5, 1, 0.5]),
        ([1e300, 1e-300, 1e-300, 3e-300], 2, [1, 0.2, 0.2, 0.6]),
        ([1.7e308, 1.7e308, 1.7e308, 1.7e308], 2, [0.5, 0.5, 0.5, 0.5]),
        ([5e-324, 5e-324, 1e308, 1], 3, [0.5, 0.5, 1, 1]),
    ],
)
def test_weights_at_the_ends_of_the_float_range(weights, k, b):
    design = dmsgd.Weighted(weights=weights, k=k)
    np.testing.assert_allclose(design.inclusion(), b, atol=1e-300)
    assert np.isfinite(design.log_prob(design.sample(5, seed=0))).all()


def test_no_batch_is_more_than_certain():
    design = dmsgd.Weighted(weights=np.logspace(-200, 200, 30), k=4)
    assert (design.log_prob(design.sample(5, seed=0)) <= 0).all()


def test_the_rarest_items_have_their_joint_probabilities():
    design = dmsgd.Weighted(weights=[1e-310, 1, 2, 1], k=2)
    assert design.joint(0, 2) == pytest.approx(5e-311, rel=1e-6)
    assert np.isfinite(design.log_prob([0, 2]))
