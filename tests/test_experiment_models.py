"""Models and orders of the experiments on repulsion and partitions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import dmsgd
from dmsgd.diagnostics import gradient_variance
from experiments import partitions
from experiments.partitions.tasks import Task
from experiments.repulsion import problems
from experiments.repulsion.descent import best, checkpoints, descend, smooth, steps_to
from experiments.repulsion.models import least_squares

PROBLEMS = ("density, 2-d", "noisy regression, 1-d", "softmax, digits", "k-means, 2-d")


@pytest.fixture(scope="module", params=PROBLEMS)
def model(request):
    return problems.PROBLEMS[request.param].make(64, 0)[1]


def test_gradients_are_those_of_the_loss_and_means_over_items(model):
    rng, everyone = np.random.default_rng(1), np.arange(64)[None]
    theta = model.start + 0.01 * rng.standard_normal((1, 2, model.start.size))
    slopes, step = model.gradient(theta, everyone), 1e-5 * rng.standard_normal(model.start.size)
    rise = model.excess(theta[0] + step) - model.excess(theta[0] - step)
    assert np.allclose(slopes[0] @ step, rise / 2, rtol=1e-4, atol=1e-12)
    batch = np.array([[3, 9, 27]])
    few = model.gradient(theta, batch)[0, 1] - model.item_gradients(theta[0, 1])[batch[0]].mean(0)
    all_of_them = slopes[0, 1] - model.item_gradients(theta[0, 1]).mean(0)
    assert np.allclose(few, all_of_them)  # nothing, or the ridge


def test_the_optimum_is_one(model):
    assert model.excess(model.optimum) == pytest.approx(0, abs=1e-9)
    slope = model.gradient(model.optimum[None, None], np.arange(64)[None])
    assert np.allclose(slope, 0, atol=1e-3)
    assert model.excess(model.start) > 0.001


def test_descent_by_hand():
    """One item at x = 1, y = 1: the error shrinks by (1 - rate) a step; a rate of 3 diverges."""
    model = least_squares(np.ones((1, 1)), np.ones(1))
    found = descend(model, np.zeros((40, 2, 1), dtype=int), np.array([0.5, 1.0, 3.0]))
    for stream in (0, 1):
        assert np.allclose(found[:, stream, 0], 0.25 ** checkpoints(40).astype(float))
        assert np.all(found[:, stream, 1] == 0)
        assert np.isinf(found[-1, stream, 2])


def test_steps_and_rates_by_hand():
    at, curves = np.array([1, 2, 4, 8, 16]), np.array([[8.0, 8], [6, 8], [4, 8], [2, 8], [0, 8]])
    assert np.allclose(smooth(curves)[:, 0], [8, 7.5, 6.5, 5, 3])
    assert np.array_equal(steps_to(5.0, smooth(curves), at), [8, 16])
    assert best(np.array([9.0, 1.0, 9.0, 3.0, 2.0, 3.0])) == 4  # not the lucky one


# partitions


def classes(n=60, k=6):
    rng, y = np.random.default_rng(1), np.arange(n) % 3
    A = np.column_stack([rng.standard_normal((n, 4)) + y[:, None], np.ones(n)])
    return Task(k, A, np.eye(3)[y], {}, {}, (A, y))


def line(n=64, k=4):
    rng = np.random.default_rng(0)
    A = np.column_stack([rng.standard_normal(n), np.ones(n)])
    return Task(k, A, A[:, :1] + rng.standard_normal((n, 1)), {}, {})


@pytest.mark.parametrize("make", [line, classes])
def test_slopes_are_those_of_the_loss_whose_least_is_reached(make):
    task, rng = make(), np.random.default_rng(2)
    weights, step = (scale * rng.standard_normal(task.start.shape) for scale in (1.0, 1e-5))
    rise = task.loss(weights + step) - task.loss(weights - step)
    assert rise / 2 == pytest.approx(float(np.sum(task.slope(weights) * step)), rel=1e-4)
    for _ in range(5000):
        weights = weights - task.slope(weights) / (2 * task.curvature)
    assert -1e-6 < task.loss(weights) < 2e-3 < task.loss(task.start)


def test_the_next_order_takes_signs_by_hand():
    """Gradients 3, 1, -1, -3 (mean 0): signs -, +, +, + keep the signed sums small."""
    errors = np.array([[3.0], [1.0], [-1.0], [-3.0]])
    order = partitions.balanced(np.arange(4), np.ones((4, 1)), errors)
    assert order.tolist() == [1, 3, 2, 0]


def test_orders_balance_half_an_epoch_and_show_every_item_once():
    task = line()
    epochs = partitions.grab(task, 0)
    for number in range(4):
        batches = epochs.send(task.errors(task.start)) if number else next(epochs)
        assert sorted(batches.ravel()) == list(range(task.n))
    found = [
        {measure: value for step, measure, value in
         partitions.run_noise(20, task, arm, 0, 0.1) if step == 0}
        for arm in (partial(partitions.grab, task), dmsgd.Partition(dmsgd.Uniform(64, 4)))
    ]  # fmt: skip
    assert found[0]["error of half an epoch"] < 0.3 < 0.7 < found[1]["error of half an epoch"] < 1.4


def test_noise_is_the_exact_variance():
    task = line()
    design = dmsgd.cells(task.A[:, :1], 4)
    (_, measure, found), *_ = partitions.run_noise(400, task, design, 0, 0.1)
    exact = gradient_variance(design, task.A * task.errors(task.start))
    assert measure == "variance"
    assert found == pytest.approx(exact.variance / exact.uniform, rel=0.1)
