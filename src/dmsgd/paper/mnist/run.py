"""Both stages: the batches, and the networks trained on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.mnist.batches import Drawn, draw
from dmsgd.paper.mnist.result import METHODS, UNBIASED, Config, Outcome, Result
from dmsgd.paper.protocol import Progress
from dmsgd.paper.trials import run_trials

if TYPE_CHECKING:
    from dmsgd.datasets import Images


def load(config: Config, data_dir: str | None = None) -> Images:
    """Return MNIST."""
    from dmsgd import datasets

    return datasets.mnist(data_dir)


def run(config: Config, data: Images, progress: Progress | None = None) -> Result:
    """Return the accuracy curves of all methods, both stages on this machine."""
    device = _device(config.device)
    drawn = draw(config, data)
    half, tested = drawn.items, slice(config.test_items)
    images = data.x_train[half], data.y_train[half], data.x_test[tested], data.y_test[tested]
    kinds = [(k, method) for k in config.ks for method in METHODS]
    jobs = []
    for k, method in kinds:
        unbiased = method == UNBIASED
        batches = drawn.batches[k, "k-DPP" if unbiased else method]
        weights = drawn.weights[k] if unbiased else None
        jobs += [
            (config, device, images, k, batches[seed], weights, seed)
            for seed in range(config.seeds)
        ]
    found = run_trials(_curve, jobs, progress, config.workers)
    curves = {
        kind: np.array(found[number * config.seeds : (number + 1) * config.seeds])
        for number, kind in enumerate(kinds)
    }
    return assemble(config, drawn, curves)


def _device(name: str) -> str:
    """Return "cpu" or "cuda", and start the GPU here too, so that the result's record names it."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        torch.cuda.init()  # type: ignore[no-untyped-call]
    return name


def _curve(
    config: Config,
    device: str,
    images: tuple[Any, IntArray, Any, IntArray],
    k: int,
    batches: IntArray,
    weights: FloatArray | None,
    seed: int,
) -> list[float]:
    """Return the test accuracies of one training; `images`: training and test images and labels."""
    import torch

    from dmsgd.paper.models import cnn

    # Copies: what another process shares with this one cannot be written to.
    x, y, test_x, test_y = map(np.array, images)
    return cnn.train(
        cnn.pixels(x, device),
        torch.from_numpy(y).to(device),
        cnn.pixels(test_x, device),
        torch.from_numpy(test_y).to(device),
        batches,
        weights,
        config.checkpoints[config.ks.index(k)],
        config.rate,
        config.dropout,
        seed,
    )


def assemble(config: Config, drawn: Drawn, curves: Mapping[tuple[int, str], FloatArray]) -> Result:
    """Return the Result from both stages; curves: (k, method) -> (seeds, checkpoints) accuracy."""
    largest = [drawn.weights[k].max() * k for k in config.ks]  # the mean weight in a batch is 1/k
    outcomes = tuple(
        Outcome(k, method, drawn.shares[k, method], np.asarray(curves[k, method]))
        for k in config.ks
        for method in METHODS
    )
    return Result(config, drawn.scale, drawn.rank, drawn.trace_error, np.array(largest), outcomes)
