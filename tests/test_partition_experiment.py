"""The partition experiment: its models, orders and rules, and a tiny run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dmsgd
from dmsgd.commands.reproduce import experiment
from dmsgd.diagnostics import gradient_variance
from dmsgd.paper import storage
from dmsgd.paper.partitions import tasks
from dmsgd.paper.partitions.arms import Drawn, GraB, arms, balanced
from dmsgd.paper.partitions.claims import half, summary
from dmsgd.paper.partitions.result import GRAB, SHUFFLED, UNIFORM, Outcome, ratio
from dmsgd.paper.partitions.training import LOST, deviations, train

partitions = experiment("partitions")

ROOT = Path(__file__).parent.parent


def line(n=32, k=4):
    """Return least squares on one column and a constant; kernels are never drawn from."""
    rng = np.random.default_rng(0)
    A = np.column_stack([rng.standard_normal(n), np.ones(n)])
    T = A[:, :1] + rng.standard_normal((n, 1))
    return tasks.Task(k, A, T, {}, {}, None)


def classes(n=60, k=6):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    A = np.column_stack([rng.standard_normal((n, 4)) + y[:, None], np.ones(n)])
    return tasks.Task(k, A, np.eye(3)[y], {}, {}, (A, y))


# models


@pytest.mark.parametrize("make", [line, classes])
def test_errors_make_the_gradient_of_the_loss(make):
    task = make()
    rng = np.random.default_rng(2)
    weights = rng.standard_normal(task.start().shape)
    slope = task.A.T @ task.errors(weights, slice(None)) / task.n + task.ridge * weights
    direction = rng.standard_normal(weights.shape)
    step = 1e-5
    rise = task.loss(weights + step * direction) - task.loss(weights - step * direction)
    assert rise / (2 * step) == pytest.approx(float(np.sum(slope * direction)), rel=1e-5)


@pytest.mark.parametrize("make", [line, classes])
def test_the_least_loss_is_reached_and_not_passed(make):
    task = make()
    weights = task.start()
    assert task.loss(weights) > 0.01
    for _ in range(20000):
        slope = task.A.T @ task.errors(weights, slice(None)) / task.n + task.ridge * weights
        weights = weights - slope / (2 * task.curvature)
    assert task.loss(weights) == pytest.approx(0, abs=1e-5)


def test_tasks_hold_what_kernels_need():
    for task in (tasks.regression(2, 16, 0), tasks.digits(16, 0)):
        assert task.n % task.k == 0
        assert set(task.kernels) == {"x", "x and y"}
        for design in task.kernels.values():
            assert np.allclose(design.inclusion(), task.k / task.n, rtol=1e-3)
        for strata in task.strata.values():
            assert strata.shape == (task.n,)
    assert np.array_equal(np.bincount(tasks.regression(2, 16, 0).strata["cells of x and y"]),
                          np.full(16, 27))  # fmt: skip
    assert not np.array_equal(tasks.digits(16, 0).A, tasks.digits(16, 1).A)


# orders


def test_a_balanced_order_by_hand():
    """Gradients 1, 1, -1, -1 of mean 0: signs -, +, then against the sum, and minuses backwards."""
    A, errors = np.ones((4, 1)), np.array([[1.0], [1.0], [-1.0], [-1.0]])
    assert balanced(np.arange(4), A, errors).tolist() == [1, 3, 2, 0]


def test_signs_are_those_of_centred_gradients():
    """The short cut by inner products equals sums of centred gradients written out."""
    rng = np.random.default_rng(0)
    A, errors = rng.standard_normal((40, 3)), rng.standard_normal((40, 2))
    order = rng.permutation(40)
    gradients = (A[:, :, None] * errors[:, None, :]).reshape(40, -1)
    gradients -= gradients.mean(axis=0)
    total, front, back = np.zeros(6), [], []
    for i in order:
        plus = np.linalg.norm(total + gradients[i]) < np.linalg.norm(total - gradients[i])
        total += gradients[i] if plus else -gradients[i]
        (front if plus else back).append(int(i))
    assert balanced(order, A, errors).tolist() == front + back[::-1]


def test_grab_keeps_prefixes_near_the_mean():
    task = classes(300, 10)
    weights = task.start()
    random = deviations(task, Drawn(dmsgd.Partition(dmsgd.Uniform(300, 10)), 0), weights, 0, 20)
    ordered = deviations(task, GraB(task, 0), weights, 4, 4)
    assert ordered[1:].max() < 0.5 * random[1:].min()


@pytest.fixture(scope="module")
def regression():
    return tasks.regression(2, 16, 0)


def test_every_arm_but_independent_ones_shows_every_item_once(regression):
    errors = regression.errors(regression.start(), slice(None))
    for name, arm in arms(regression).items():
        epochs = arm(0)
        for number in range(2):
            batches = epochs.epoch(number, None if number == 0 else errors)
            assert batches.shape == (27, 16)
            once = np.array_equal(np.sort(batches.ravel()), np.arange(432))
            assert once != name.startswith("independent"), name


def test_epochs_begin_again(regression):
    for name in (SHUFFLED, GRAB):
        epochs = arms(regression)[name](3)
        first = epochs.epoch(0, None)
        epochs.epoch(1, regression.errors(regression.start(), slice(None)))
        assert np.array_equal(epochs.again().epoch(0, None), first)
        assert epochs.seconds >= 0
        assert epochs.drawn == 54


# training and noise


def test_training_by_hand():
    """One item at x = 1, y = 1: the error shrinks by 1 - rate x what is left of the run."""
    task = tasks.Task(1, np.ones((1, 1)), np.ones((1, 1)), {}, {}, None)
    epochs = Drawn(dmsgd.Uniform(1, 1), 0)
    weights, curve = train(task, epochs, 2, 0.5, (1, 2))
    assert weights[0, 0] == pytest.approx(1 - 0.5 * 0.75)
    assert np.allclose(curve, [0.5**2 / 2, (0.5 * 0.75) ** 2 / 2])
    lost = train(task, epochs, 2000, 4000.0, (2000,))[1]
    assert lost.tolist() == [LOST]


def test_deviations_of_uniform_and_shuffled_batches_are_known():
    task = line(64, 4)
    weights = task.start()
    independent = deviations(task, Drawn(dmsgd.Uniform(64, 4), 0), weights, 0, 1500)
    assert np.allclose(independent, 1, atol=0.1)
    shuffled = Drawn(dmsgd.Partition(dmsgd.Uniform(64, 4)), 0)
    found = deviations(task, shuffled, weights, 0, 1500)
    assert np.allclose(found, [1, (16 - 4) / 15, (16 - 8) / 15], atol=0.07)


def test_deviations_equal_the_exact_variance(regression):
    design = regression.kernels["x and y"]
    errors = regression.errors(regression.start(), slice(None))
    exact = gradient_variance(design, regression.A * errors)
    plain = gradient_variance(dmsgd.Uniform(432, 16), regression.A * errors)
    found = deviations(regression, Drawn(design, 0), regression.start(), 0, 60)
    assert found[0] == pytest.approx(exact.variance / plain.variance, rel=0.1)


def test_any_partition_approaches_the_mean_as_its_batches_do(regression):
    """Batches come in a random order, so a part of an epoch errs as a batch does, times
    (M - m) / (m (M - 1))."""
    epochs = arms(regression)["cells of x and y spread"](0)
    batch, _, halfway = deviations(regression, epochs, regression.start(), 0, 600)
    assert batch < 0.6
    assert halfway / (14 / 26) == pytest.approx(batch, rel=0.15)


# the experiment


@pytest.fixture(scope="module")
def small():
    config = replace(
        partitions.QUICK, seeds=5, late=2, looks=(1, 2), tuning=1, streams=1, measured=2,
        settled=1, rates=(0.06, 0.25, 1.0), class_rates=(8.0, 16.0, 32.0),
    )  # fmt: skip
    return partitions.run(config, partitions.load(config))


def test_every_arm_is_measured(small):
    assert list(small.sizes.items()) == [("2 columns", (432, 16)), ("digits", (1280, 16))]
    for task in small.sizes:
        found = small.arms(task)
        assert list(found)[:2] == [SHUFFLED, UNIFORM]
        assert list(found)[-1] == GRAB
        for each in found.values():
            for values in (each.variance, each.quarter, each.half, each.loss):
                assert values.shape == (5, 2)
                assert np.all(values > 0)
            assert each.accuracy.shape == ((5, 2) if task == "digits" else (5, 0))
            assert np.allclose(each.curve[:, -1], each.loss[:, 1], rtol=1e-6)
            assert each.seconds.shape == (5,)
        assert not small.logs(task, SHUFFLED, "loss", 1).any()
        assert small.update[task] > 0


def test_spread_classes_are_less_noisy(small):
    found = small.arms("digits")
    assert found["classes spread"].variance[:, 0].max() < 0.4
    assert found[GRAB].half[:, 0].max() < 0.5 * found[SHUFFLED].half[:, 0].min()


def test_results_are_stored(small, tmp_path):
    path = tmp_path / "result.json"
    storage.save(small, path)
    again = storage.load(partitions.Result, path)
    assert again.config == small.config
    assert partitions.claims(again) == partitions.claims(small)
    pictures = partitions.plot(again, tmp_path)
    assert len(pictures) == 4
    assert all(picture.stat().st_size > 1000 for picture in pictures)


def outcome(arm, loss, variance):
    loss, variance = (np.stack([np.array(each, float)] * 2, axis=1) for each in (loss, variance))
    none = np.empty((len(loss), 0))
    return Outcome("p", arm, np.array([0.5, 1.0]), variance, variance, variance, loss, none,
                   loss, np.full(len(loss), 2e-3))  # fmt: skip


def test_verdicts_by_hand():
    """Half the loss in every seed is less; half and twice by turns is not."""
    shuffled = outcome(SHUFFLED, [1, 2, 1, 2, 1], [1.0] * 5)
    sure = outcome("sure", [0.5, 1, 0.5, 1.01, 0.5], [0.8, 0.82, 0.81, 0.8, 0.81])
    luck = outcome("luck", [0.5, 4, 0.5, 4, 1], [0.2, 1.8, 0.2, 1.8, 0.9])
    config = replace(partitions.QUICK, rates=(0.5, 1.0, 2.0), class_rates=(0.5, 1.0, 2.0))
    result = partitions.Result(config, {"p": (40, 4)}, {"p": 1e-3}, (shuffled, sure, luck))
    found = partitions.claims(result)
    assert [claim.holds for claim in found] == [True, False, True, False, True, False, None, None]
    assert found[2].ours == "0.50 (0.50 to 0.50)"
    assert found[-2].ours == "shuffled 2; sure 2; luck 2; an update 1.00"
    assert found[-1].ours == "3 of 6"
    assert ratio(np.log([0.5, 0.5, 0.5])) == pytest.approx((0.5, 0.5, 0.5))
    assert half(result, sure)[0] == pytest.approx(0.8 / (5 / 9))
    rows = summary(result)
    assert all(len(row) == len(rows[0]) for row in rows)
    assert rows[2][1:3] == ["sure", "0.81 ± 0.01"]
    few = tuple(
        replace(each, **{name: getattr(each, name)[:2] for name in ("variance", "quarter", "half",
                "loss", "accuracy", "curve", "seconds")})
        for each in result.outcomes
    )  # fmt: skip
    assert all(claim.holds is None for claim in partitions.claims(replace(result, outcomes=few)))


def test_only_what_is_asked_for_is_loaded():
    assert partitions.load(partitions.QUICK) == (None, None)
    with pytest.raises(ValueError, match="unknown task 'plants'"):
        partitions.load(replace(partitions.QUICK, tasks=("plants",)))


def test_large_tasks_have_fewer_seeds():
    config = partitions.Config()
    assert config.reported("digits") == 20
    assert config.reported("mnist") == 10
    assert replace(config, seeds=5).reported("flowers") == 5
    assert config.unreported("flowers") == 2
    assert config.grid("2 columns") == config.rates
    assert config.grid("flowers") == config.class_rates


def test_the_images_and_the_flowers_make_tasks():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    x = (rng.uniform(size=(200, 28, 28)) * 60 + 60 * y[:, None, None]).astype(np.uint8)
    images = dmsgd.datasets.Images(x, y, x[:20], y[:20])
    task = tasks.mnist(images, 150, 16, 0)
    assert task.A.shape == (144, 785)
    assert task.A.dtype == np.float32
    split = np.array(["test"] * 150 + ["train"] * 50)
    features = rng.standard_normal((200, 300)) + y[:, None]
    plants = dmsgd.datasets.Flowers(features, y, split, ("a", "b", "c"))
    task = tasks.flowers(plants, 16, 0)
    assert task.A.shape == (144, 257)
    assert task.test is not None
    assert task.test[0].shape == (50, 257)


def test_the_page_quotes_the_claims():
    """Every interval of the text is one of the stored result's."""
    page = (ROOT / "docs/partitions.md").read_text()
    text = re.sub(r"<!-- (table|claims|mixing).*?<!-- end -->", "", page, flags=re.DOTALL)
    result = storage.load(partitions.Result, ROOT / "docs/results/partitions.json")
    stated = " ".join(claim.ours for claim in partitions.claims(result))
    for pattern in (r"\d+\.\d+\s+\(\d+\.\d+\s+to\s+\d+\.\d+\)", r"\d+\.\d+\s+±\s+\d+\.\d+"):
        quoted = [" ".join(found.split()) for found in re.findall(pattern, text)]
        assert len(quoted) >= 4
        assert all(each in stated for each in quoted)
