"""Long-tailed labels: tasks, arms and loops by hand."""

from __future__ import annotations

import numpy as np
import pytest

import dmsgd
from experiments import long_tailed

MNIST, FLOWERS = long_tailed.tiny()


def test_class_sizes_fall_and_no_item_is_used_twice() -> None:
    y = np.repeat(np.arange(4), [60, 60, 60, 3])
    train, spare, classes = long_tailed.long_tail(y, 27, 1, 2, np.random.default_rng(0))
    sizes = [np.sum(y[train] == each) for each in classes]
    expected = np.where(classes == 3, np.minimum([27, 9, 3, 1], 1), [27, 9, 3, 1])
    assert sizes == expected.tolist()  # class 3 has one item left
    assert np.bincount(y[spare]).tolist() == [2] * 4
    assert np.unique([*train, *spare]).size == train.size + spare.size


@pytest.mark.parametrize("case", [MNIST, FLOWERS])
def test_ranks_follow_sizes_and_other_seeds_have_other_rare_classes(case) -> None:
    task, other = case.task(0), case.task(1)
    sizes = np.bincount(task.y)
    assert np.all(np.diff(sizes) <= 0)
    assert sizes[-1] < sizes[0]
    assert set(task.test[1]) == set(task.valid[1]) == set(range(10))
    assert not np.array_equal(task.X[:5], other.X[:5])


def test_arms_draw_classes_as_they_say() -> None:
    task = FLOWERS.task(0)
    sizes, k = np.bincount(task.y), 12

    def shares(arm: str) -> np.ndarray:
        return np.bincount(task.y, FLOWERS.arms[arm](task, 0).inclusion()) / k

    even = np.full(10, 0.1)
    np.testing.assert_allclose(shares("stratified"), even)
    np.testing.assert_allclose(shares("weighted by class"), even, atol=1e-9)
    np.testing.assert_allclose(shares("shuffled"), sizes / sizes.sum())
    np.testing.assert_allclose(shares("partition of stratified"), sizes / sizes.sum())
    root = np.sqrt(sizes)
    np.testing.assert_allclose(shares("weighted by square root"), root / root.sum(), atol=1e-9)
    batches = FLOWERS.arms[long_tailed.SAMPLER](task, 0).sample(4000, 0)
    drawn = np.bincount(task.y[batches].ravel()) / batches.size
    np.testing.assert_allclose(drawn, even, atol=0.01)
    assert any(np.unique(batch).size < k for batch in batches)  # with replacement


def test_a_weighted_loss_follows_the_balanced_gradient() -> None:
    task = FLOWERS.task(0)
    arm = FLOWERS.arms["shuffled, weighted loss"](task, 0)
    by_class = np.bincount(task.y, arm.weights * arm.design.inclusion())
    np.testing.assert_allclose(by_class, 0.1)


def test_decoupled_training_begins_as_shuffled_epochs_do() -> None:
    task = MNIST.task(0)
    found = {
        arm: {step: value for step, measure, value in MNIST.run(
            task, MNIST.arms[arm](task, 0), 0, 1e-3) if measure == "accuracy"}
        for arm in ("shuffled", "decoupled")
    }  # fmt: skip
    assert found["shuffled"][2] == found["decoupled"][2]
    assert isinstance(MNIST.arms["decoupled"](task, 0).refit, dmsgd.Stratified)
