"""What noise, targets and subgroups are made of: exact variances, the network, who is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dmsgd
from dmsgd.diagnostics import gradient_variance
from experiments import noise, subgroups, targets
from experiments.core import protocol
from experiments.core.compare import values
from experiments.models import mlp
from experiments.models.gradient_variance import (
    Moments,
    joint_probabilities,
    reasons,
    uniform_variance,
)
from experiments.models.softmax import softmax_gradients


@pytest.mark.parametrize("target", [None, "uniform"])
def test_variance_is_that_of_the_diagnostics(target):
    rng = np.random.default_rng(0)
    design = dmsgd.diversify(rng.normal(size=(30, 6)), 4, target=target)
    g, weights = rng.normal(size=(30, 5)) + 3, dmsgd.unbiased_weights(design)
    weighted, plain = gradient_variance(design, g, weights), gradient_variance(design, g)
    assert Moments(design).variance(g, weights) == pytest.approx(weighted.variance, rel=1e-9)
    assert Moments(design).variance(g) == pytest.approx(plain.variance, rel=1e-9)
    assert uniform_variance(g, 4) == pytest.approx(plain.uniform, rel=1e-9)


@pytest.mark.parametrize(("features", "k"), [(5, 3), (5, 5), (12, 6), (1, 1)])
def test_joint_probabilities_are_those_of_the_design(features, k):
    design = dmsgd.diversify(np.random.default_rng(0).normal(size=(12, features)), k)
    i, j = np.triu_indices(12, 1)
    assert np.allclose(joint_probabilities(design)[i, j], design.joint(i, j), atol=1e-12)
    assert np.allclose(joint_probabilities(design).diagonal(), design.inclusion())


def test_softmax_gradients_keep_inner_products():
    rng = np.random.default_rng(0)
    X, errors = rng.normal(size=(9, 4)), rng.normal(size=(9, 3))
    full = np.einsum("id,ic->idc", np.column_stack([X, np.ones(9)]), errors).reshape(9, -1)
    short = softmax_gradients(X, errors)
    assert np.allclose(short @ short.T, full @ full.T)


def test_reasons_give_the_ratio():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    kernel = dmsgd.targets.prescribe(dmsgd.kernels.RBF(X, 0.3), 15, "uniform")
    design = dmsgd.KDPP(kernel, 15)
    smooth = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1]])
    unrelated = rng.normal(size=(150, 2))
    for g, low, high in ((smooth, 0.0, 0.4), (unrelated, 0.8, 1.1)):
        why, ratio = reasons(design, g), Moments(design).variance(g) / uniform_variance(g, 15)
        assert low < ratio < high
        assert ratio == pytest.approx(1 - why["likeness"] * why["strength"], abs=0.05)
    assert reasons(design, smooth)["seen"] > 0.9
    assert abs(reasons(design, unrelated)["seen"]) < 0.2


def test_uniform_batches_have_no_strength():
    design = dmsgd.KDPP(dmsgd.kernels.Linear(np.eye(20)), 5)
    why = reasons(design, np.random.default_rng(0).normal(size=(20, 3)))
    assert why["strength"] == pytest.approx(0, abs=1e-12)


def test_noise_is_low_where_the_kernel_sees_the_gradient():
    """And repulsion takes variance off there only: elsewhere the frequency-matched has as much."""
    task = noise.regression(noise.Size(120, 8, (0, 200), (1, 10), (3.0,)), 0)
    found = {
        arm: {
            name: value
            for step, name, value in noise.run(task, noise.designs(arm, 8, task, 0), 0, 1.0)
            if step == 200
        }
        for arm in ("uniform", "k-DPP", noise.MATCHED, noise.EVEN)
    }
    sees, random = ("variance, " + name for name in ("1 column and y, scale x 3",
                                                     "3 random numbers, scale x 3"))  # fmt: skip
    assert found["uniform"][sees] == pytest.approx(100)
    assert found[noise.EVEN][sees] < 80
    assert 90 < found[noise.EVEN][random] < 110
    assert found["k-DPP"][sees] < 0.8 * found[noise.MATCHED][sees]
    assert found["k-DPP"][random] == pytest.approx(found[noise.MATCHED][random], rel=0.1)
    _, _, gradients = task[0]
    before, after = (np.linalg.norm(g.mean(axis=0)) for g in gradients.values())
    assert after < 0.3 * before


def shares(case, arm, classes):
    """Return the expected share of each class in a batch, and of the loss it gives them."""
    task = case.task(0)
    found = case.arms[arm](task, 0)
    design, weights = found if isinstance(found, tuple) else (found, np.full(task.y.size, 1 / 20))
    b = design.inclusion()
    return np.bincount(classes(task), b) / design.k, np.bincount(classes(task), b * weights)


def test_shares_of_classes_by_target():
    case = targets.tiny()[1]
    seen = {arm: shares(case, arm, lambda task: task.y) for arm in case.arms}
    for arm in ("k-DPP w=0, balanced target", targets.BALANCED, "stratified"):
        assert np.allclose(seen[arm][0], 0.1, rtol=1e-4)
    assert np.allclose(seen["class-weighted loss"][1], 0.1)
    for arm in ("shuffled", "k-DPP w=0, uniform frequency", "k-DPP w=0.9, uniform frequency"):
        assert np.allclose(seen[arm][0], seen["uniform"][0], rtol=1e-4)
    for arm in ("k-DPP w=0", "k-DPP w=0.9", "k-DPP w=0.9, balanced target"):
        assert seen[f"{arm}, frequency-matched"][0] == pytest.approx(seen[arm][0], abs=1e-8)


def test_shares_of_hidden_digits():
    (case,) = subgroups.tiny()
    digits = case.task(0).digit
    sizes = np.bincount(digits)
    assert sizes.tolist() == [45, 23, 12, 6, 3, 22, 11, 6, 3, 2]
    seen = {arm: shares(case, arm, lambda task: task.digit)[0] for arm in case.arms}
    assert np.allclose(seen["uniform"], sizes / digits.size)
    assert np.allclose(seen["k-DPP linear, uniform frequency"], sizes / digits.size, rtol=1e-4)
    for arm in ("stratified by parity", "k-DPP linear, balanced target"):
        assert seen[arm][:5].sum() == pytest.approx(0.5, rel=1e-4)
    assert seen["k-DPP rbf"][[4, 9]].sum() > 1.2 * seen["uniform"][[4, 9]].sum()
    assert np.allclose(seen[subgroups.ORACLE], 0.1)


def test_balanced_targets_learn_rare_classes_sooner_and_parity_is_learnt():
    digits, (parity,) = targets.tiny()[1], subgroups.tiny()

    def last(case, arm, measure):
        one = replace(case, arms={arm: case.arms[arm]}, seeds=1, rates=(0.5,))
        return values(protocol.results([one]), case.name, arm, measure)[0]

    uniform = last(digits, "uniform", "accuracy")
    assert last(digits, targets.BALANCED, "accuracy") > uniform + 5
    worst, rarest, mean = (last(parity, "uniform", each) for each in subgroups.MEASURES)
    assert worst <= rarest <= 100
    assert mean > 80


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
    network, one_hot = mlp.initial(4, 8, 2, rng), np.eye(2, dtype=np.float32)[y]
    batch = np.arange(10)[None]
    mean = mlp.train(network, X, one_hot, batch, 0.1)
    weighted = mlp.train(network, X, one_hot, batch, 0.1, np.full(30, 0.1, dtype=np.float32))
    assert np.allclose(mean.hidden, weighted.hidden, atol=1e-6)
    weights = np.where(np.arange(30) < 5, 0.2, 0.0).astype(np.float32)
    fewer = mlp.train(network, X, one_hot, batch, 0.1, weights)
    half = mlp.train(network, X, one_hot, batch[:, :5], 0.1)
    assert np.allclose(fewer.output, half.output, atol=1e-6)
