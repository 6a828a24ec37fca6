"""The experiments on prescribed targets: tiny runs, and what must come out of them."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import dmsgd
from dmsgd.commands.reproduce import experiment
from dmsgd.datasets import Flowers, Images
from dmsgd.diagnostics import gradient_variance
from dmsgd.diagnostics.variance import uniform_variance
from dmsgd.paper import storage
from dmsgd.paper.flowers.training import start as start_weights
from dmsgd.paper.models import mlp, softmax
from dmsgd.paper.models.softmax import softmax_gradients
from dmsgd.paper.noise.problems import regression
from dmsgd.paper.noise.run import Data
from dmsgd.paper.noise.variance import Batches, joint_matrix, reasons, smooth_pairs
from dmsgd.paper.subgroups.methods import METHODS, ORACLE
from dmsgd.paper.subgroups.result import Outcome
from dmsgd.paper.subgroups.run import _trial
from dmsgd.paper.subgroups.task import make_task
from dmsgd.paper.targets.methods import class_weights
from dmsgd.paper.targets.tasks import digits_task
from dmsgd.polynomials.symmetric import pair_selection

noise, targets, subgroups = map(experiment, ("noise", "targets", "subgroups"))


@pytest.fixture(scope="module")
def few_flowers():
    """Seven kinds of flowers, one column each that tells the kind, and noise."""
    rng = np.random.default_rng(0)
    sizes = {"test": [40, 30, 20, 15, 12, 10, 9], "train": [10] * 7, "valid": [10] * 7}
    y = np.concatenate([np.repeat(np.arange(7), counts) for counts in sizes.values()])
    split = np.repeat(list(sizes), [sum(counts) for counts in sizes.values()])
    X = 2 * np.eye(7, 20)[y] + rng.uniform(size=(y.size, 20))
    return Flowers(X.astype(np.float32), y, split, tuple("abcdefg"))


@pytest.fixture(scope="module")
def few_digits():
    """Images whose rows of ink tell the digit."""
    rng = np.random.default_rng(1)

    def images(per_digit):
        y = np.repeat(np.arange(10), per_digit)
        x = rng.integers(0, 60, size=(y.size, 28, 28))
        for row in range(2):
            x[np.arange(y.size), 2 * y + 4 + row] += 150
        return x.astype(np.uint8), y.astype(np.int64)

    return Images(*images(90), *images(15))


def check_stored(module, result, folder):
    """Saved and read back, a result makes the same claims and pictures."""
    path = folder / "result.json"
    storage.save(result, path)
    again = storage.load(module.Result, path)
    assert again.config == result.config
    assert module.claims(again) == module.claims(result)
    pictures = module.plot(again, folder)
    assert pictures
    assert all(picture.stat().st_size > 1000 for picture in pictures)


# gradient_noise


@pytest.mark.parametrize("target", [None, "uniform"])
def test_variance_is_that_of_the_diagnostics(target):
    rng = np.random.default_rng(0)
    design = dmsgd.diversify(rng.normal(size=(30, 6)), 4, target=target)
    g = rng.normal(size=(30, 5)) + 3
    batches, weights = Batches(design), dmsgd.unbiased_weights(design)
    assert batches.variance(g, weights) == pytest.approx(
        gradient_variance(design, g, weights).variance, rel=1e-9
    )
    assert batches.variance(g) == pytest.approx(gradient_variance(design, g).variance, rel=1e-9)


@pytest.mark.parametrize(("features", "k"), [(5, 3), (5, 5), (12, 6), (1, 1)])
def test_joint_matrix_is_joint(features, k):
    design = dmsgd.diversify(np.random.default_rng(0).normal(size=(12, features)), k)
    i, j = np.triu_indices(12, 1)
    assert np.allclose(joint_matrix(design)[i, j], design.joint(i, j), atol=1e-12)
    assert np.allclose(joint_matrix(design).diagonal(), design.inclusion())


def test_softmax_gradients_keep_inner_products():
    rng = np.random.default_rng(0)
    X, errors = rng.normal(size=(9, 4)), rng.normal(size=(9, 3))
    full = np.einsum("id,ic->idc", np.column_stack([X, np.ones(9)]), errors).reshape(9, -1)
    short = softmax_gradients(X, errors)
    assert np.allclose(short @ short.T, full @ full.T)


def test_reasons_tell_the_ratio():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    kernel = dmsgd.RBF(X, 0.3)
    design = dmsgd.KDPP(dmsgd.exact(dmsgd.prescribe(kernel, 15, "uniform")), 15)
    smooth = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1]])
    unrelated = rng.normal(size=(150, 2))
    for g, low, high in ((smooth, 0.0, 0.4), (unrelated, 0.8, 1.1)):
        why, ratio = reasons(design, g), Batches(design).variance(g) / uniform_variance(g, 15)
        assert low < ratio < high
        assert ratio == pytest.approx(1 - why.likeness * why.strength, abs=0.05)
    assert reasons(design, smooth).seen > 0.9
    assert abs(reasons(design, unrelated).seen) < 0.2


def test_uniform_batches_have_no_strength():
    design = dmsgd.KDPP(dmsgd.exact(dmsgd.identity(20)), 5)
    why = reasons(design, np.random.default_rng(0).normal(size=(20, 3)))
    assert why.strength == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("decay", [1.0, 0.9, 0.5])
def test_smooth_pairs_are_pairs_and_of_small_rank(decay):
    values = 3.0 * decay ** np.arange(60.0)
    smooth = smooth_pairs(values, 12)
    off = ~np.eye(60, dtype=bool)
    assert np.allclose(smooth[off], pair_selection(values, 12)[off], atol=1e-12)
    sizes = np.abs(np.linalg.eigvalsh(smooth))
    assert np.count_nonzero(sizes > 1e-12 * sizes.max()) <= 15


# noise


@pytest.fixture(scope="module")
def small_noise(few_flowers, few_digits):
    config = replace(
        noise.QUICK, items=90, regression_items=120, k=8, columns=(1, 10), stretches=(3.0,),
        steps=(0, 5), directions=15, rank=40,
    )  # fmt: skip
    return noise.run(config, Data(few_flowers, few_digits))


def test_noise_is_low_where_the_kernel_sees_the_gradient(small_noise):
    by_kernel = {each.kernel: each for each in small_noise.outcomes}
    assert by_kernel["1 column and y, scale x 3"].prescribed.max() < 0.8
    random = by_kernel["3 random numbers, scale x 3"].prescribed
    assert np.all((random > 0.9) & (random < 1.1))
    for each in small_noise.outcomes:
        assert each.prescribed.shape == (2, 2)
        assert np.all(each.spread >= 1)


def test_repulsion_and_b_have_their_shares_of_the_noise(small_noise):
    regression = noise.halves(small_noise)[0]
    of = [each for each in small_noise.outcomes if each.problem == "regression"]
    ratio = np.mean([each.same_b for each in of], axis=(0, 2))
    assert regression.same_b == pytest.approx(100 - 100 * ratio)
    assert not regression.uniform.any()
    by_kernel = {each.kernel: each for each in of}
    seeing = by_kernel["1 column and y, scale x 3"]
    assert np.all(seeing.reweighted < seeing.same_b)  # repulsion pays where the kernel sees
    random = by_kernel["3 random numbers, scale x 3"]
    assert random.reweighted == pytest.approx(random.same_b, rel=0.1)  # and not elsewhere


def test_the_same_b_has_the_variance_of_draws():
    rng = np.random.default_rng(0)
    design = dmsgd.diversify(rng.normal(size=(30, 6)) * rng.uniform(0.5, 2, size=(30, 1)), 4)
    g, weights = rng.normal(size=(30, 5)), dmsgd.unbiased_weights(design)
    same_b = design.without_repulsion()
    batches = same_b.sample(20000, seed=0)
    drawn = np.einsum("tb,tbp->tp", weights[batches], g[batches]).var(axis=0).sum()
    assert gradient_variance(same_b, g, weights).variance == pytest.approx(drawn, rel=0.05)


def test_worth_follows_the_ratio(small_noise):
    for each in small_noise.outcomes:
        assert np.array_equal(each.worth > small_noise.config.k, each.prescribed < 1)


def test_noise_is_stored(small_noise, tmp_path):
    check_stored(noise, small_noise, tmp_path)


def test_noise_loads_only_what_it_needs():
    data = noise.load(replace(noise.QUICK, problems=("regression",)))
    assert all(getattr(data, field.name) is None for field in fields(data))
    with pytest.raises(ValueError, match="unknown problem 'plants'"):
        noise.load(replace(noise.QUICK, problems=("plants",)))


def test_regression_trains():
    gradients = regression(200, 20, 3, (1.0,), (0, 500), 0).gradients
    lengths = [np.linalg.norm(each.mean(axis=0)) for each in gradients]
    assert lengths[1] < 0.3 * lengths[0]


# targets


@pytest.fixture(scope="module")
def small_targets(few_flowers):
    config = replace(targets.QUICK, k=7, directions=15, epochs=(1, 4), digits_epochs=(1, 8))
    return targets.run(config, few_flowers)


def test_balanced_targets_balance(small_targets):
    shares = {(each.task, each.method): each.shares for each in small_targets.outcomes}
    for task, classes in (("flowers", 7), ("digits", 10)):
        for w in ("w=0", "w=0.5"):
            assert np.allclose(shares[task, f"{w}, balanced target"], 1 / classes, rtol=1e-4)
        sizes = small_targets.sizes[task]
        assert np.allclose(shares[task, "w=0, uniform target"], sizes / sizes.sum(), rtol=1e-4)


def test_balanced_targets_learn_rare_classes_sooner(small_targets):
    for method in ("w=0.5, balanced target", "stratified"):
        lead = small_targets.accuracy("digits", method, late=False) - small_targets.accuracy(
            "digits", "uniform", late=False
        )
        assert lead.mean() > 0.05


def test_the_same_b_has_the_same_shares(small_targets, small_subgroups):
    for task in ("flowers", "digits"):
        shares = {o.method: o.shares for o in small_targets.outcomes if o.task == task}
        for name in ("w=0", "w=0.9", "w=0.9, balanced target"):
            assert shares[f"{name}, same b"] == pytest.approx(shares[name], abs=1e-8)
    seen = {each.method: each.shares for each in small_subgroups.outcomes}
    for name in ("k-DPP linear", "k-DPP rbf", "linear, density, strength 1"):
        assert seen[f"{name}, same b"] == pytest.approx(seen[name], abs=1e-8)


def test_halves_of_targets_and_subgroups(small_targets, small_subgroups):
    for module, result, count in ((targets, small_targets, 12), (subgroups, small_subgroups, 12)):
        found = module.halves(result)
        assert len(found) == count
        stated = {claim.statement: claim for claim in module.claims(result)}
        for each in found:
            whole, seen, meets, _ = each.differences.values()
            assert seen[0] + meets[0] == pytest.approx(whole[0])
            assert stated[f"{each.what}: who is seen, same b minus uniform"].holds is None


def test_regimes_are_those_of_draws(small_targets):
    """Frequencies, weights and noise of each regime, counted on batches of designs made anew."""
    task, k, draws = digits_task(0), 20, 6000
    n, y = task.y.size, task.y
    given = dmsgd.diversify(task.X, k)
    weights = dmsgd.unbiased_weights(given)
    plain = np.full(n, 1 / k)
    ways = {
        "as the kernel gives it": (given, plain),
        "prescribed: uniform": (dmsgd.diversify(task.X, k, target="uniform"), plain),
        "prescribed: balanced": (dmsgd.diversify(task.X, k, labels=y, target="balanced"), plain),
        "re-weighted by 1/(N b)": (given, weights),
    }
    start = start_weights(task, 0).astype(np.float64)
    inputs, classes = task.inputs.astype(np.float64), task.targets.astype(np.float64)
    errors = softmax.probabilities(start, inputs) - classes
    gradients = softmax_gradients(inputs, errors)
    assert [each.name for each in small_targets.regimes] == list(ways)
    for each in small_targets.regimes:
        design, a = ways[each.name]
        batches = design.sample(draws, seed=1)
        frequency = np.bincount(batches.ravel(), minlength=n) / draws
        slack = 5 * np.sqrt(each.seen * k / n / draws) * n / k
        assert np.all(np.abs(n * frequency / k - each.seen) < slack), each.name
        assert np.all(np.abs(n * frequency * a - each.weight) < slack * a * k), each.name
        uniform = dmsgd.Uniform(n, k).sample(draws, seed=2)
        same = each.weight / k  # uniform batches with these weights follow the same gradient
        spread = [
            np.einsum("tb,tbd->td", of[rows], gradients[rows]).var(axis=0).sum()
            for of, rows in ((a, batches), (same, uniform))
        ]
        assert spread[0] / spread[1] == pytest.approx(each.noise[0], rel=0.1), each.name


def test_regimes_differ_in_what_they_are_for(small_targets):
    regimes = {each.name: each for each in small_targets.regimes}
    assert regimes["as the kernel gives it"].seen.max() > 1.5
    assert np.allclose(regimes["prescribed: uniform"].weight, 1, rtol=1e-5)
    balanced = np.bincount(small_targets.labels, regimes["prescribed: balanced"].weight)
    assert np.allclose(balanced, balanced[0], rtol=1e-5)
    assert np.all(regimes["prescribed: balanced"].noise < 0.5)


def test_class_weights_balance_the_loss():
    y = np.repeat([0, 1, 2], [5, 3, 2])
    weights = class_weights(dmsgd.Uniform(10, 4), y)
    assert np.allclose(np.bincount(y, weights), 10 / 3 / 4)


def test_targets_are_stored(small_targets, tmp_path):
    check_stored(targets, small_targets, tmp_path)


def test_processes_share_the_trainings_of_targets():
    config = replace(
        targets.QUICK, tasks=("digits",), digits_epochs=(1, 2), workers=2, seeds=2,
    )  # fmt: skip
    shared, alone = (targets.run(replace(config, workers=n), None) for n in (2, 1))
    for one, two in zip(shared.outcomes, alone.outcomes, strict=True):
        assert one.method == two.method
        assert np.array_equal(one.accuracy, two.accuracy)


def test_targets_refuse_unknown_tasks():
    with pytest.raises(ValueError, match="unknown task 'r8'"):
        targets.load(replace(targets.QUICK, tasks=("r8",)))


# subgroups


@pytest.fixture(scope="module")
def small_subgroups(few_digits):
    config = replace(
        subgroups.QUICK, k=12, largest=45, ratio=15, rank=60, units=16, checkpoints=(20, 60),
        test_per_digit=10,
    )  # fmt: skip
    return subgroups.run(config, few_digits)


def test_subgroup_sizes_fall_inside_each_class(small_subgroups):
    even, odd = small_subgroups.sizes[:5], small_subgroups.sizes[5:]
    assert even[0] == 45
    assert even[-1] == 3
    for sizes in (even, odd):
        assert np.all(np.diff(sizes) < 0)


def test_subgroup_shares(small_subgroups):
    sizes = small_subgroups.sizes / small_subgroups.sizes.sum()
    shares = {each.method: each.shares.mean(axis=0) for each in small_subgroups.outcomes}
    assert np.allclose(shares["uniform"], sizes)
    assert np.allclose(shares["linear, uniform target"], sizes, rtol=1e-4)
    assert shares["linear, balanced target"][:5].sum() == pytest.approx(0.5, rel=1e-4)
    assert shares["stratified by parity"][:5].sum() == pytest.approx(0.5)
    rare = [4, 9]
    assert shares["k-DPP rbf"][rare].sum() > 1.2 * sizes[rare].sum()
    assert shares[ORACLE][rare].sum() > 0.15


def test_subgroup_measures_by_hand():
    """Two seeds, two checkpoints; digits 4 and 9 are the rarest of their classes."""
    late = np.array([[9, 8, 7, 6, 4, 9, 8, 7, 3, 5], [9, 9, 9, 9, 2, 9, 9, 9, 9, 8]]) / 10
    uniform, shares = np.stack([late / 2, late - 0.1], axis=1), np.full((2, 10), 0.1)
    outcomes = (
        Outcome("uniform", uniform, shares),
        Outcome("other", np.stack([late, late], axis=1), shares),
    )
    result = subgroups.Result(subgroups.QUICK, 0.3, np.arange(10), outcomes)
    assert result.accuracy("other", "worst") == pytest.approx([0.3, 0.2])
    assert result.accuracy("other", "rarest") == pytest.approx([0.45, 0.5])
    assert result.accuracy("other", "mean") == pytest.approx([0.66, 0.82])
    assert result.accuracy("uniform", "worst", 0) == pytest.approx([0.15, 0.1])
    assert result.gain("other", "mean") == pytest.approx((10, 0), abs=1e-6)
    mean, half = result.gain("other", "rarest", 0)
    assert mean == pytest.approx(23.75)
    assert half == pytest.approx(12.706205 * 1.25, rel=1e-6)  # Student's t for two seeds


def test_subgroup_accuracy_is_that_of_parity(few_digits):
    """A network that knows the rows of ink is right on every digit."""
    config = replace(
        subgroups.QUICK, seeds=1, k=30, largest=45, ratio=1, minority=1, units=64,
        checkpoints=(300,), test_per_digit=10,
    )  # fmt: skip
    task = make_task(config, few_digits, 0)
    accuracy, _ = _trial(config, task, METHODS[0], 0.3, 0)
    assert accuracy.shape == (1, 10)
    assert accuracy.min() > 0.8


def test_subgroups_are_stored(small_subgroups, tmp_path):
    check_stored(subgroups, small_subgroups, tmp_path)


def test_a_network_learns_what_no_line_can():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    network = mlp.initial(2, 32, 2, rng)
    batches = dmsgd.Uniform(400, 20).sample(1500, seed=0)
    trained = mlp.train(network, X, np.eye(2, dtype=np.float32)[y], batches, 0.3)
    assert np.mean(trained.predict(X) == y) > 0.95


def test_a_network_follows_item_weights():
    """Weights 1/k are the mean; a weight of 0 leaves an item out."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)).astype(np.float32), np.arange(30) % 2
    network, targets_of = mlp.initial(4, 8, 2, rng), np.eye(2, dtype=np.float32)[y]
    batch = np.arange(10)[None]
    mean = mlp.train(network, X, targets_of, batch, 0.1)
    weighted = mlp.train(network, X, targets_of, batch, 0.1, np.full(30, 0.1, dtype=np.float32))
    assert np.allclose(mean.hidden, weighted.hidden, atol=1e-6)
    weights = np.where(np.arange(30) < 5, 0.2, 0.0).astype(np.float32)
    fewer = mlp.train(network, X, targets_of, batch, 0.1, weights)
    half = mlp.train(network, X, targets_of, batch[:, :5], 0.1)
    assert np.allclose(fewer.output, half.output, atol=1e-6)
