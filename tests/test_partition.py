"""Partitions: every item once an epoch, with a law that enumeration knows."""

import pickle
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2

import dmsgd
from contracts import ERROR_RATE
from dmsgd.designs.partition import RandomStream, deal


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def partitions(items, k):
    """Yield all ways to cut a tuple of items into sets of k."""
    if not items:
        yield frozenset()
        return
    from itertools import combinations

    first, rest = items[0], items[1:]
    for others in combinations(rest, k - 1):
        left = tuple(item for item in rest if item not in others)
        for further in partitions(left, k):
            yield further | {frozenset((first, *others))}


def epoch(design, number, seed=0):
    return design.sample(design.batches, seed=seed, start=number * design.batches)


def check_law(design, law, epochs=2500):
    """χ² of the partitions of many epochs against the law."""
    found = Counter(
        frozenset(frozenset(row) for row in rows)
        for rows in design.sample(epochs * design.batches, seed=1)
        .reshape(epochs, design.batches, design.k)
        .tolist()
    )
    assert set(found) <= set(law)
    expected = epochs * np.array(list(law.values()))
    observed = np.array([found[partition] for partition in law])
    rare = expected < 5
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    statistic = np.sum((observed - expected) ** 2 / expected)
    assert chi2.sf(statistic, expected.size - 1) > ERROR_RATE


def test_every_item_comes_once(rng):
    """A thousand random n and k, with and without classes; what is left over is fewer than k."""
    for _ in range(1000):
        n = int(rng.integers(1, 60))
        k = int(rng.integers(1, n + 1))
        kinds = rng.integers(0, 3, n) if rng.random() < 0.5 else None
        numbers = RandomStream(int(rng.integers(2**32)), int(rng.integers(100)))
        batches = deal(kinds, n, k, numbers)
        assert batches.shape == (n // k, k)
        assert np.unique(batches).size == batches.size


@pytest.fixture
def design(rng):
    return dmsgd.Partition(dmsgd.cells(rng.normal(size=(103, 12)), 8))


def test_draw_t_is_a_function_of_seed_and_t(design):
    hundred = design.sample(100, seed=3)
    np.testing.assert_array_equal(design.sample(10, seed=3), hundred[:10])
    np.testing.assert_array_equal(design.sample(30, seed=3, start=70), hundred[70:])
    np.testing.assert_array_equal(design.sample(1, seed=3, start=5), hundred[5:6])
    fresh = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(fresh.sample(100, seed=3, workers=3), hundred)
    assert not np.array_equal(design.sample(100, seed=4), hundred)
    assert design.sample(0, seed=3).shape == (0, 8)


@pytest.mark.long
def test_leftovers_differ_from_epoch_to_epoch_and_are_fair(design):
    seen = np.bincount(design.sample(12 * 2000, seed=0).ravel(), minlength=103)
    missed = 2000 - seen
    assert missed.sum() == 2000 * (103 - 96)
    expected = 2000 * 7 / 103
    assert chi2.sf(np.sum((missed - expected) ** 2 / (expected * (1 - 7 / 103))), 102) > ERROR_RATE


@pytest.mark.long
def test_the_first_batch_and_the_first_place_are_like_all_others(design):
    first = np.bincount(design.sample(12 * 3000, seed=2)[::12, 0], minlength=103)
    assert chi2.sf(np.sum((first - 3000 / 103) ** 2 / (3000 / 103)), 102) > ERROR_RATE


def test_strata_are_spread_evenly_without_bias(rng):
    y = np.repeat([0, 1, 2], [30, 20, 7])
    design = dmsgd.Partition(dmsgd.Stratified(y, 5))
    for number in range(20):
        rows = epoch(design, number)
        counts = np.array([np.bincount(y[row], minlength=3) for row in rows])
        assert (counts.max(axis=0) - counts.min(axis=0)).max() <= 1
    np.testing.assert_allclose(design.inclusion(), 5 / 57)


def test_groups_are_apart_in_any_epoch(rng):
    """A hundred random sets of groups, none with more items than an epoch has batches."""
    for _ in range(100):
        k, batches = rng.integers(1, 8, 2)
        n = int(k * batches + rng.integers(k))
        sizes = [0]
        while sum(sizes) < n:
            sizes.append(min(int(rng.integers(1, batches + 1)), n - sum(sizes)))
        groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        design = dmsgd.designs.OnePerGroup(groups, int(k))
        rows = epoch(design, int(rng.integers(100)))
        assert np.unique(rows).size == rows.size == k * batches
        assert all(np.unique(groups[row]).size == k for row in rows)


@pytest.mark.parametrize("k", [2, 3])
def test_of_groups_of_one_size_all_partitions_are_as_likely(k):
    groups = np.array([0, 0, 1, 1, 2, 2])
    allowed = [
        partition
        for partition in partitions(tuple(range(6)), k)
        if all(len(set(groups[list(B)])) == k for B in partition)
    ]
    check_law(dmsgd.designs.OnePerGroup(groups, k), dict.fromkeys(allowed, 1 / len(allowed)), 800)


@pytest.mark.parametrize("sizes", [[5] * 24, [1] * 40 + [4] * 20])
def test_all_groups_meet_each_other(sizes):
    """None is always with the same ones: pairs of groups meet about as often as by chance."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    design = dmsgd.designs.OnePerGroup(groups, 12)
    together, epochs = np.zeros((len(sizes), len(sizes))), 400
    for row in groups[design.sample(epochs * design.batches, seed=0)]:
        together[np.ix_(row, row)] += 1
    expected = epochs * np.outer(sizes, sizes) / design.batches * 11 / 12
    pairs = ~np.eye(len(sizes), dtype=bool)
    assert np.abs(together / expected - 1)[pairs].max() < 0.6


def test_groups_that_cannot_be_apart():
    groups = ["a"] * 9 + ["b"] * 11 + ["c"] * 16
    with pytest.raises(ValueError, match=r"group c has 16 items.*at most 2"):
        dmsgd.designs.OnePerGroup(groups, 3)
    design = dmsgd.designs.OnePerGroup(groups, 2)
    assert repr(design) == "OnePerGroup(n=36, k=2, 3 groups)"


def test_ranks_of_a_step_have_no_group_in_common(rng):
    pytest.importorskip("torch")
    groups = rng.permutation(np.repeat(np.arange(20), 6))
    design = dmsgd.designs.OnePerGroup(groups, 8)
    options = {"seed": 1, "num_replicas": 2}
    ranks = [list(dmsgd.torch.DiverseSampler(design, rank=r, **options)) for r in (0, 1)]
    steps = np.concatenate([np.reshape(rank, (-1, 4)) for rank in ranks], axis=1)
    assert sorted(steps.ravel().tolist()) == list(range(120))
    assert all(np.unique(groups[step]).size == 8 for step in steps)


def test_classes_of_a_partition_are_not_balanced():
    design = dmsgd.Partition(dmsgd.Stratified(np.repeat([0, 1], [50, 6]), 4))
    assert "not balanced" in repr(design)
    assert "not balanced" not in repr(dmsgd.Partition(dmsgd.Uniform(9, 3)))


def test_uniform_is_shuffling():
    design = dmsgd.Partition(dmsgd.Uniform(20, 4))
    assert sorted(epoch(design, 3).ravel().tolist()) == list(range(20))


def test_plain_averages_over_an_epoch_are_exact(rng):
    g = rng.normal(size=(96, 5))
    design = dmsgd.Partition(dmsgd.cells(rng.normal(size=(96, 12)), 8))
    np.testing.assert_allclose(g[epoch(design, 2)].mean(axis=(0, 1)), g.mean(axis=0))
    np.testing.assert_allclose(dmsgd.unbiased_weights(design), 1 / 8)


def test_a_sampler_shows_every_item_once_an_epoch(rng):
    torch = pytest.importorskip("torch")
    design = dmsgd.Partition(dmsgd.cells(rng.normal(size=(96, 12)), 8))
    sampler = dmsgd.torch.DiverseSampler(design, seed=5)
    data = torch.utils.data.TensorDataset(torch.arange(96))
    loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)
    for number in range(3):
        rows = np.array([batch.tolist() for (batch,) in loader])
        np.testing.assert_array_equal(rows, epoch(design, number, seed=5))
        assert sorted(rows.ravel().tolist()) == list(range(96))


def test_a_schedule_holds_whole_epochs(tmp_path, design):
    schedule = dmsgd.presample(design, 36, seed=1, path=tmp_path / "epochs.npy")
    np.testing.assert_array_equal(schedule.batches, design.sample(36, seed=1))
    np.testing.assert_array_equal(schedule.inclusion(), design.inclusion())


def test_what_it_is_not_made_of(rng):
    X = rng.normal(size=(20, 4))
    k_dpp = dmsgd.diversify(X, k=3)
    for wrong in (3, k_dpp, k_dpp.spectrum, dmsgd.Weighted.like(k_dpp)):
        kind = type(wrong).__name__
        with pytest.raises(TypeError, match=rf"got {kind}; .*Partition\(dmsgd.cells\(X, k\)\)"):
            dmsgd.Partition(wrong)


def test_other_designs_have_another_fingerprint(rng):
    y = np.arange(20) % 2
    designs = [
        dmsgd.Partition(dmsgd.Uniform(20, 3)), dmsgd.Partition(dmsgd.Uniform(20, 4)),
        dmsgd.Partition(dmsgd.Stratified(y, 3)), dmsgd.Partition(dmsgd.Stratified(y[::-1], 3)),
        dmsgd.Uniform(20, 3),
    ]  # fmt: skip
    assert len({each.fingerprint() for each in designs}) == len(designs)
    again = dmsgd.Partition(dmsgd.Stratified(y, 3))
    assert again.fingerprint() == designs[2].fingerprint()
