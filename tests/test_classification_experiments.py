"""Flowers, MNIST and its cost on small data: directions that hold, and nothing lost on disk."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dmsgd
from dmsgd.commands.reproduce import experiment
from dmsgd.datasets import Flowers, Images
from dmsgd.diagnostics import gradient_variance
from dmsgd.paper import storage
from dmsgd.paper.flowers.beyond import seconds_to
from dmsgd.paper.flowers.gradient_noise import measure
from dmsgd.paper.flowers.methods import Kernels, methods, shuffled
from dmsgd.paper.flowers.result import imbalance
from dmsgd.paper.flowers.training import make_task, start, steps_at, train
from dmsgd.paper.mnist.batches import draw
from dmsgd.paper.mnist.result import METHODS, UNBIASED
from dmsgd.paper.models import softmax

flowers, mnist, mnist_cost = map(experiment, ("flowers", "mnist", "mnist-cost"))

FLOWERS = flowers.Config(
    seeds=5,
    ks=(10, 20),
    ws=(0.0, 0.9, 1.0),
    unbiased=(0.9,),
    halves=((10, 0.9),),
    epochs=3,
    early=(0.25, 0.5),
    rates=(0.01, 0.03, 0.1),
    decays=(0.0,),
    histograms=((10, 0.0), (10, 0.9), (10, 1.0), (20, 1.0)),
    balanced=5,
    balanced_k=10,
    noise_k=10,
    noise_ws=(0.9,),
    noise_epochs=(0.0, 1.0),
    noise_draws=300,
)
MNIST = mnist.Config(
    seeds=1, ks=(10,), checkpoints=((2, 12),), items=300, test_items=50, rank=100, rate=1e-3
)
COST = mnist_cost.Config(seeds=2, ks=(5, 10), items=200, rank=60, draws=3, steps=2)


def long_tailed_digits() -> Flowers:
    """Digits in the paper's split: 'test', to train on, has 120 down to 5 items of a class."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    split = np.full(len(y), "left out")
    for digit in range(10):
        items = np.flatnonzero(y == digit)
        split[items[:30]] = "train"
        split[items[30:50]] = "valid"
        split[items[50:][: round(120 * 0.7**digit)]] = "test"
    used = split != "left out"
    names = tuple("0123456789")
    return Flowers(X[used].astype(np.float32), y[used].astype(np.int64), split[used], names)


def digit_images() -> Images:
    """The same digits as 28 x 28 images."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    large = np.kron(digits.images * 15, np.ones((3, 3))).astype(np.uint8)
    images, y = np.pad(large, ((0, 0), (2, 2), (2, 2))), digits.target.astype(np.int64)
    return Images(images[:600], y[:600], images[600:800], y[600:800])


@pytest.fixture(scope="module")
def bloom() -> flowers.Result:
    return flowers.run(FLOWERS, long_tailed_digits())


@pytest.fixture(scope="module")
def handwriting() -> mnist.Result:
    return mnist.run(MNIST, digit_images())


@pytest.fixture(scope="module")
def seconds() -> mnist_cost.Result:
    return mnist_cost.run(COST, digit_images())


def assert_pictures(paths: list[Path]) -> None:
    from matplotlib.image import imread

    assert {path.suffix for path in paths} == {".png", ".svg"}
    for path in paths:
        if path.suffix == ".png":
            pixels = imread(path)[..., :3]
            assert 0.01 < np.mean(pixels.min(axis=2) < 0.9) < 0.9  # neither blank nor all ink


@pytest.mark.parametrize("k", FLOWERS.ks)
def test_the_k_dpp_learns_rare_classes_sooner_than_random_batches(bloom, k):
    half = bloom.accuracy(k, "w=0.9", 0.5) - bloom.accuracy(k, "random", 0.5)
    assert half.mean() > 0.1
    assert bloom.accuracy(k, "w=0.9").mean() > bloom.accuracy(k, "random").mean()


def test_the_halves_of_a_k_dpp_add_up(bloom):
    found = flowers.halves(bloom)
    assert [each.what.split(",")[0] for each in found] == [
        "accuracy after 10 steps", "accuracy after 39 steps", "accuracy at the end",
    ]  # fmt: skip
    end = found[-1]
    np.testing.assert_array_equal(end.kdpp, 100 * bloom.accuracy(10, "w=0.9"))
    np.testing.assert_array_equal(end.uniform_b, 100 * bloom.accuracy(10, "w=0.9 uniform b"))
    for each in found:
        whole, seen, meets, _ = each.differences.values()
        assert seen[0] + meets[0] == pytest.approx(whole[0])
    assert not any(outcome.method.endswith(" b") for outcome in bloom.outcomes if outcome.k == 20)


def test_the_halves_are_seen_as_often_as_they_should_be():
    task = make_task(FLOWERS, long_tailed_digits())
    every = methods(Kernels(task), 10, (), (0.9,), halved_ws=(0.9,))
    b = {method.name: method.build(0).inclusion() for method in every}
    np.testing.assert_allclose(b["w=0.9 same b"], b["w=0.9"], rtol=1e-8)
    np.testing.assert_allclose(b["w=0.9 uniform b"], 10 / task.y.size, rtol=1e-5)


def test_processes_share_the_trainings_and_change_nothing():
    config = replace(
        FLOWERS, workers=2, seeds=2, ks=(10,), ws=(0.9,), unbiased=(), rates=FLOWERS.rates[1:2],
        balanced=0, noise_draws=0, histograms=(),
    )  # fmt: skip
    shared = flowers.run(config, long_tailed_digits())
    alone = flowers.run(replace(config, workers=1), long_tailed_digits())
    assert len(shared.outcomes) == 7
    for one, two in zip(shared.outcomes, alone.outcomes, strict=True):
        assert one.method == two.method
        np.testing.assert_array_equal(one.accuracy, two.accuracy)


def test_labels_alone_with_k_classes_are_stratified_sampling(bloom):
    assert bloom.strata_gap < 1e-8
    np.testing.assert_allclose(bloom.shares["k=10 w=1"], 0.1, atol=1e-8)


def test_a_larger_w_balances_more(bloom):
    names = ("k=10 w=0", "k=10 w=0.9", "k=10 w=1")
    distances = [imbalance(bloom.shares[name]) for name in names]
    assert imbalance(bloom.sizes.astype(float)) > distances[0]
    assert distances[0] > distances[1] > distances[2]


def test_a_k_dpp_that_does_not_exist_is_named_and_replaced_by_stratified(bloom):
    assert list(bloom.refused) == ["k=20 w=1"]
    assert "rank" in bloom.refused["k=20 w=1"]
    trained = {outcome.method for outcome in bloom.outcomes if outcome.k == 20}
    assert "w=1" not in trained
    assert "stratified" in trained
    claim = next(c for c in flowers.claims(bloom) if c.statement.endswith("k=20 w=1"))
    assert claim.holds is False
    assert "stratified" in claim.note


def test_all_methods_of_a_seed_start_from_the_same_weights():
    task = make_task(FLOWERS, long_tailed_digits())
    first = [
        train(task, design.sample(1, 0), np.array([1]), np.zeros(1), None, 3, task.test)[0]
        for design in (dmsgd.Uniform(task.y.size, 10), dmsgd.Stratified(task.y, 10))
    ]
    assert first[0] == first[1]


def test_the_rate_is_the_best_of_the_grid_for_random_batches(bloom):
    task = make_task(FLOWERS, long_tailed_digits())
    found = []
    for rate in FLOWERS.rates:
        steps = steps_at(FLOWERS.at(), task, 10)
        batches = dmsgd.Uniform(task.y.size, 10).sample(int(steps[-1]), 1000)
        rates = np.full(steps[-1], rate)
        curve, _ = train(task, batches, steps, rates, None, 1000, task.valid)
        found.append(curve[-3:].mean())  # whole epochs
    assert bloom.rate[0] == FLOWERS.rates[int(np.argmax(found))]


def test_unbiased_updates_of_the_k_dpp_follow_the_mean_gradient():
    task = make_task(FLOWERS, long_tailed_digits())
    design = Kernels(task).design(0.9, 10)
    weights = start(task, 0).astype(np.float64)
    a = dmsgd.unbiased_weights(design)
    X, targets = task.inputs.astype(np.float64), task.targets.astype(np.float64)

    def update(batches, item_weights):
        steps = [
            softmax.train(weights, X, targets, row[None], 1.0, item_weights) for row in batches
        ]
        return np.mean(steps, axis=0) - weights

    everything = update(np.arange(task.y.size)[None], None)
    sampled = update(design.sample(4000, 0), a)
    biased = update(design.sample(4000, 0), None)
    size = np.linalg.norm(everything)
    assert np.linalg.norm(sampled - everything) < 0.1 * size
    assert np.linalg.norm(biased - everything) > 0.3 * size


def test_shuffled_epochs_show_every_item_at_most_once():
    batches = shuffled(23, 5, 9, seed=0)
    assert batches.shape == (9, 5)
    for epoch in (batches[:4], batches[4:8]):
        assert np.unique(epoch).size == 20
    assert not np.array_equal(batches[:4], batches[4:8])


@pytest.mark.parametrize("name", ["random", "stratified", "w=0.9", "w=0.9 unbiased"])
def test_noise_from_draws_is_the_exact_gradient_variance(name):
    task = make_task(FLOWERS, long_tailed_digits()).only(np.arange(0, 390, 6))
    X, targets = task.inputs[:, 20:26], task.targets
    errors = np.random.default_rng(0).dirichlet(np.full(10, 0.3), size=len(X)) - targets
    every = methods(Kernels(task), 8, ("random", "stratified"), (0.9,), (0.9,))
    method = next(m for m in every if m.name == name)
    design = method.build(0)
    a = dmsgd.unbiased_weights(design) if method.unbiased else None
    noise = measure(name, design, X, [errors], a, draws=20000)
    inputs = np.column_stack([X, np.ones(len(X))])
    exact = gradient_variance(
        design, np.einsum("id,ic->idc", inputs, errors).reshape(len(X), -1), a
    )
    assert abs(noise.variance[0] - exact.variance) < 4 * noise.error[0]
    assert noise.error[0] < 0.02 * exact.variance
    np.testing.assert_allclose(noise.independent, exact.independent, rtol=1e-6)
    np.testing.assert_allclose(noise.uniform, exact.uniform, rtol=1e-6)
    np.testing.assert_allclose(noise.signal, exact.signal, rtol=1e-6)


def test_noise_falls_below_independent_inclusion(bloom):
    by_name = {noise.method: noise for noise in bloom.noise}
    assert (by_name["w=0.9"].variance < by_name["w=0.9"].independent).all()
    assert "random unbiased" not in by_name
    # The same b without repulsion: a hair from independent inclusion, as sizes are fixed.
    ratio = by_name["w=0.9 same b"].variance / by_name["w=0.9 same b"].independent
    assert np.all(ratio > by_name["w=0.9"].variance / by_name["w=0.9"].independent)


def test_balanced_classes_are_a_part_of_their_own(bloom):
    by_name = {outcome.method: outcome.accuracy for outcome in bloom.balanced}
    assert {"random", "stratified", "w=0", "w=0.9"} <= set(by_name)
    assert by_name["random"].shape == (5, FLOWERS.at().size)


def test_seconds_to_an_accuracy_count_sampling_and_mark_what_is_never_reached(bloom):
    outcome = bloom.outcome(10, "w=0.9")
    reached = seconds_to(bloom, 10, "w=0.9", 0.0)
    first = FLOWERS.at()[0] * bloom.sizes.sum() / 10
    np.testing.assert_allclose(reached, first * (outcome.sample + outcome.step))
    assert np.isinf(seconds_to(bloom, 10, "w=0.9", 1.01)).all()


def test_training_needs_numpy_and_torch_alone():
    source = Path(softmax.__file__).with_name("cnn.py").read_text()
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
    assert names <= {"__future__", "collections", "typing", "numpy", "torch"}


def test_both_stages_of_mnist_give_what_run_gives(handwriting):
    from dmsgd.paper.models import cnn

    data = digit_images()
    drawn = draw(MNIST, data)
    parts = (data.x_train[drawn.items], data.y_train[drawn.items], data.x_test[:50])
    images, labels, test = cnn.pixels(parts[0], "cpu"), parts[1], cnn.pixels(parts[2], "cpu")
    import torch

    curve = cnn.train(
        images,
        torch.from_numpy(labels),
        test,
        torch.from_numpy(data.y_test[:50]),
        drawn.batches[10, "k-DPP"][0].astype(np.int16),
        drawn.weights[10],
        MNIST.checkpoints[0],
        MNIST.rate,
        MNIST.dropout,
        seed=0,
    )
    np.testing.assert_array_equal(handwriting.accuracy(10, UNBIASED)[0], curve)


def test_the_network_learns(handwriting):
    curves = np.array([handwriting.accuracy(10, method)[0] for method in METHODS])
    assert curves[:, -1].mean() > 0.25
    assert curves[:, -1].mean() > curves[:, 0].mean()


def test_mnist_says_how_much_of_the_kernel_it_leaves_out(handwriting):
    assert 0 < handwriting.trace_error < 0.5
    assert handwriting.rank == 100
    assert any("trace" in claim.statement for claim in mnist.claims(handwriting))


def test_mnist_trains_both_halves(handwriting):
    shares = {outcome.method: outcome.shares for outcome in handwriting.outcomes}
    np.testing.assert_allclose(shares["same b"], shares["k-DPP"], atol=1e-9)
    np.testing.assert_allclose(shares["uniform b"], shares["random"], rtol=1e-5)
    end, mean = mnist.halves(handwriting)
    np.testing.assert_array_equal(end.same_b, 100 * handwriting.accuracy(10, "same b")[:, -1])
    np.testing.assert_allclose(mean.uniform_b, 100 * handwriting.accuracy(10, "uniform b").mean(1))
    assert all(claim.holds is None for claim in mnist.claims(handwriting))  # one seed


def test_mnist_refuses_checkpoints_that_do_not_match():
    with pytest.raises(ValueError, match="2 batch sizes, but 1"):
        draw(replace(MNIST, ks=(10, 20)), digit_images())


def test_cost_of_every_k_is_measured_on_one_thread(seconds):
    import torch

    assert seconds.sample.shape == (2, 2)
    assert seconds.step.shape == (2, 2)
    assert (seconds.sample > 0).all()
    assert (seconds.step > 0).all()
    before = torch.get_num_threads()
    mnist_cost.run(replace(COST, ks=(5,)), digit_images())
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("module", "fixture"),
    [(flowers, "bloom"), (mnist, "handwriting"), (mnist_cost, "seconds")],
    ids=["flowers", "mnist", "mnist-cost"],
)
def test_a_stored_result_gives_the_same_claims_and_pictures(module, fixture, request, tmp_path):
    result = request.getfixturevalue(fixture)
    storage.save(result, tmp_path / "result.json")
    assert (tmp_path / "result.json").stat().st_size < 1e6
    again = storage.load(module.Result, tmp_path / "result.json")
    assert again.config == result.config
    assert module.claims(again) == module.claims(result)
    assert all(claim.ours for claim in module.claims(again))
    assert_pictures(module.plot(again, tmp_path))
