"""Flowers, MNIST and its cost: their arms, and what the contract of experiments does not see."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from dmsgd.diagnostics import gradient_variance
from experiments import flowers, mnist, mnist_cost
from experiments.core.protocol import results
from experiments.models import softmax

FLOWERS, MNIST = ({case.name: case for case in module.tiny()} for module in (flowers, mnist))


def test_labels_alone_are_stratified_sampling_up_to_the_number_of_classes() -> None:
    table = results([FLOWERS["flowers/classes"]]).filter(seed=0)
    found = {row[1]: row[5] for row in table.filter(measure="imbalance").iter_rows()}
    by_w = [found["uniform"], *(found[f"k=102 w={w:g}"] for w in flowers.WS)]
    assert np.all(np.diff(by_w) < 0)
    gap = table.filter(arm="k=102 w=1", measure="distance from stratified")["value"][0]
    assert (
        gap < 1e-8 < table.filter(arm="k=102 w=0.9", measure="distance from stratified")["value"][0]
    )
    refused = table.filter(measure="refused", value=1.0)
    assert refused["arm"].to_list() == ["k=150 w=1"]


@pytest.mark.parametrize(
    ("case", "kdpp"), [(FLOWERS["flowers/k=80"], flowers.KDPP), (MNIST["mnist/k=10"], "k-DPP")]
)
def test_controls_differ_from_the_k_dpp_in_one_thing_each(case, kdpp) -> None:
    task = case.task(0)
    b = {name: case.arms[name](task, 0).inclusion() for name in case.arms if "unbiased" not in name}
    np.testing.assert_allclose(b[f"{kdpp}, frequency-matched"], b[kdpp], rtol=1e-8)
    np.testing.assert_allclose(b[f"{kdpp}, uniform frequency"], b["uniform"], rtol=1e-5)
    assert np.ptp(b[kdpp]) > 1e-3 * b[kdpp].mean()


def test_an_unbiased_update_weights_by_inclusion() -> None:
    case = MNIST["mnist/k=200"]
    design, weights = case.arms["k-DPP, unbiased"](case.task(0), 0)
    np.testing.assert_allclose(weights * design.inclusion(), 1 / design.n)


def test_even_classes_are_equally_many_others_for_every_seed() -> None:
    first, second = (flowers.even("tiny", 2, seed) for seed in (0, 1))
    assert np.bincount(first.y).tolist() == [2] * 10
    assert not np.array_equal(first.X, second.X)


@pytest.mark.parametrize("arm", ["uniform", "stratified", "k-DPP w=0.9"])
def test_noise_from_draws_is_the_exact_gradient_variance(arm) -> None:
    case = FLOWERS["flowers/noise"]
    task, seed, draws = case.task(0), 0, 4000
    design = case.arms[arm](task, seed)
    _, _, found = next(flowers.noise(task, design, seed, 0.1, draws))
    error = softmax.probabilities(task.start(seed), task.inputs) - task.targets
    inputs = np.column_stack([task.inputs, np.ones(len(error))])
    gradients = np.einsum("id,ic->idc", inputs, error).reshape(len(error), -1)
    exact = gradient_variance(design, gradients)
    assert found == pytest.approx(exact.variance / exact.independent, rel=0.03)


def test_mnist_trains_with_numpy_and_torch_alone() -> None:
    """So that it can be done on a machine with a GPU and little else."""
    tree = ast.parse(Path(softmax.__file__).with_name("cnn.py").read_text(encoding="utf-8"))
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.partition(".")[0] for name in names}
    assert roots <= {"__future__", "collections", "typing", "numpy", "torch"}


def test_the_network_learns() -> None:
    torch = pytest.importorskip("torch")
    from experiments.models import cnn

    data, items = mnist.load("tiny"), np.arange(10)
    part = cnn.pixels(data.x_train[items], "cpu"), torch.from_numpy(data.y_train[items])
    batches = np.tile(items, (10, 1))
    found = [
        float((cnn.predict(model, part[0]) == part[1]).double().mean())
        for _, model in cnn.stages(*part, batches, (1, 10), 3e-3, 0, units=64, dropout=0.0)
    ]
    assert found[1] > max(0.6, found[0])


def test_costs_are_measured_on_one_thread_and_threads_come_back() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    (case,) = mnist_cost.tiny()
    table = results([case])
    assert torch.get_num_threads() == before
    assert set(table.filter(measure="sample")["step"]) == set(mnist_cost.PAPER)
    assert (table.filter(measure="share of a step")["value"] > 0).all()
