"""`DiverseSampler.update` with features of any rank: a run that can go on is not ended."""

import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import dmsgd
from dmsgd.torch import DiverseSampler, embed, loader

N, K, STEPS = 60, 8, 7
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 20))
LABELS = np.arange(N) % 3
#: Features that a network may have in the next epoch: as before, with dead units, or hardly any.
FINE = RNG.normal(size=(N, 16))
LOW = np.maximum(FINE, 0) * (np.arange(16) < 5)
ITEMS_DEAD = np.where(np.arange(N)[:, None] < 57, 0.0, FINE)
USELESS = {
    "all zero": np.zeros((N, 16)),
    "all equal": np.ones((N, 16)),
    "most items zero": ITEMS_DEAD,
    "five distinct": np.repeat(FINE[:5], N // 5, axis=0),
}
OPTIONS = {
    "plain": {},
    "labels": {"labels": LABELS, "w": 0.4},
    "quality": {"quality": np.linspace(0.5, 1, N), "diversity": 0.6},
    "length": {"quality": "length"},
    "uniform": {"target": "uniform"},
    "uniform, labels": {"target": "uniform", "labels": LABELS, "w": 0.4},
    "numbers": {"target": np.linspace(1, 2, N)},
    "standardize": {"standardize": True},
    "nystrom": {"spectrum": "nystrom", "rank": 15},
    "pivoted_cholesky": {"spectrum": "pivoted_cholesky", "rank": 15},
}
each_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def sampler_of(**options):
    return DiverseSampler(dmsgd.diversify(X, K, **options), steps=STEPS)


def test_the_kernel_is_chosen_again_where_the_rank_falls():
    r = np.random.default_rng(0)
    X, y = r.normal(size=(900, 200)), r.integers(10, size=900)
    s = DiverseSampler(dmsgd.diversify(X, k=64, labels=y, w=0.9))
    F = np.maximum(X @ r.normal(size=(200, 64)), 0)
    F[:, :20] = 0
    assert s.update(F)
    expected = dmsgd.diversify(F, k=64, labels=y, w=0.9)
    assert s.design.kernel == expected.kernel
    assert s.design.kernel.startswith("RBF")
    assert s.design.kernel in repr(s.design)
    assert list(s) == expected.sample(len(s) // 64, seed=0).ravel().tolist()
    assert s.update(X)
    assert s.design.kernel.startswith("Linear")


@each_option
def test_all_that_diversify_was_given_survives_another_kernel(options):
    sampler = sampler_of(**options)
    first = sampler.design
    for features, kernel in ((LOW, "RBF"), (FINE, "Linear"), (LOW, "RBF"), (X, "Linear")):
        assert sampler.update(features)
        design = dmsgd.diversify(features, K, **options)
        assert kernel in sampler.design.kernel
        assert sampler.design.fingerprint() == design.fingerprint()
        np.testing.assert_array_equal(sampler.design.inclusion(), design.inclusion())
    assert sampler.design.fingerprint() == first.fingerprint()


@each_option
@pytest.mark.parametrize("kernel", ["auto", "linear", "rbf"])
@pytest.mark.parametrize("features", USELESS.values(), ids=USELESS)
def test_features_without_batches_leave_the_last_ones_in_use(features, kernel, options):
    sampler = sampler_of(kernel=kernel, **options)
    assert sampler.update(FINE)
    kept = sampler.design
    with pytest.warns(dmsgd.KernelWarning, match="at least 10 columns, before its ReLU") as told:
        assert not sampler.update(features)
    assert sampler.design is kept
    assert [each.filename for each in told] == [__file__]


@pytest.mark.parametrize(
    ("options", "features", "words"),
    [
        ({"kernel": "linear"}, LOW, 'have 5 .*directions; batches of 8 need 8.*kernel="auto"'),
        ({"kernel": "rbf", "scale": 5.0}, 1e-7 * LOW, "direction .* 8 need 8.*leave out scale"),
        ({"kernel": "linear", "target": "uniform"}, LOW, "before its ReLU"),
    ],
)
def test_it_warns_once_of_a_kernel_that_was_named(options, features, words):
    sampler = sampler_of(**options)
    first = sampler.design
    with pytest.warns(dmsgd.KernelWarning, match=words) as told:
        assert not sampler.update(features)
    assert len(told) == 1
    for again in (features, features[:, :3]):  # a warning is an error here
        assert not sampler.update(again)
    assert list(sampler) == first.sample(STEPS, seed=0).ravel().tolist()


@pytest.mark.parametrize("kernel", ["auto", "linear"])
@pytest.mark.parametrize(
    ("features", "word"),
    [
        (np.where(np.arange(16) == 3, np.nan, LOW), "NaN|finite|missing"),
        (np.where(np.arange(16) == 3, np.inf, LOW), "inf|finite"),
        (LOW[1:], "59 rows for the 60 items"),
        (np.zeros((N + 1, 16)), "61 rows for the 60 items"),
        (LOW[:, 0], "shape|2"),
        (LOW[:, :0], "empty|shape"),
        (LOW.astype(str), "number|text"),
    ],
)
def test_wrong_features_are_still_refused(kernel, features, word):
    sampler = sampler_of(kernel=kernel)
    kept = sampler.design
    with pytest.raises((TypeError, ValueError), match=word):
        sampler.update(features)
    assert sampler.design is kept


def test_weights_and_designs_are_taken_as_they_are():
    sampler = DiverseSampler(dmsgd.Weighted(weights=np.ones(N), k=K))
    assert sampler.update(weights=np.arange(1, N + 1))
    assert sampler.update(dmsgd.Uniform(N, K))


@pytest.mark.parametrize("kernel", ["auto", "linear"])
def test_a_loop_in_which_units_die(kernel):
    """Most units of a ReLU die after two epochs; a loop that begins anew in mid-epoch goes on."""
    data = torch.from_numpy(X.astype(np.float32))
    dataset = TensorDataset(data, torch.from_numpy(LABELS), torch.arange(N))
    design, stop = dmsgd.diversify(data, K, kernel=kernel), 2 * STEPS + 3

    def run(epochs, state=None, features=None):
        """Return the batches, what `update` returned, and the state and features to go on with."""
        torch.manual_seed(0)
        body = torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.ReLU())
        model = torch.nn.Sequential(body, torch.nn.Linear(16, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches, seen, taken, saved = loader(dataset, design, steps=STEPS), [], [], None
        if state is not None:
            assert batches.sampler.update(features)
            batches.load_state_dict(state)
        for epoch in range(epochs):
            if epoch == 2:
                with torch.no_grad():
                    body[0].bias[5:] = -1e3
            if epoch > 0:
                fresh = embed(body, dataset)
                taken.append(batches.sampler.update(fresh))
                features = fresh if taken[-1] else features
            for inputs, targets, items in batches:
                seen.append(items.tolist())
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs), targets).backward()
                optimizer.step()
                if len(seen) == stop:
                    saved = batches.state_dict(), features
        return seen, taken, saved

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        seen, taken, saved = run(epochs=4)
    chosen = kernel == "auto"
    assert (taken, len(told)) == ([True, chosen, chosen], not chosen)
    rest, _, _ = run(1, *saved)
    assert rest == seen[stop : 3 * STEPS]
