"""Both stages: the batches, and the networks trained on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.inputs.arrays import FloatArray, IntArray
from dmsgd.paper.mnist.batches import Drawn, draw
from dmsgd.paper.mnist.result import METHODS, UNBIASED, Config, Outcome, Result
from dmsgd.paper.protocol import Progress

if TYPE_CHECKING:
    import torch

    from dmsgd.datasets import Images


def load(config: Config, data_dir: str | None = None) -> Images:
    """Return MNIST."""
    from dmsgd import datasets

    return datasets.mnist(data_dir)


def run(config: Config, data: Images, progress: Progress | None = None) -> Result:
    """Return the accuracy curves of all methods, both stages on this machine."""
    import torch

    from dmsgd.paper.models import cnn

    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    drawn = draw(config, data)
    half, tested = drawn.items, slice(config.test_items)
    train_set = cnn.pixels(data.x_train[half], device), _labels(data.y_train[half], device)
    test_set = cnn.pixels(data.x_test[tested], device), _labels(data.y_test[tested], device)
    jobs = [
        (k, method, seed) for seed in range(config.seeds) for k in config.ks for method in METHODS
    ]
    curves: dict[tuple[int, str], list[list[float]]] = {job[:2]: [] for job in jobs}
    for done, (k, method, seed) in enumerate(jobs, start=1):
        unbiased = method == UNBIASED
        curve = cnn.train(
            *train_set,
            *test_set,
            drawn.batches[k, "k-DPP" if unbiased else method][seed],
            drawn.weights[k] if unbiased else None,
            config.checkpoints[config.ks.index(k)],
            config.rate,
            config.dropout,
            seed,
        )
        curves[k, method].append(curve)
        if progress is not None:
            progress(done / len(jobs))
    return assemble(config, drawn, {key: np.array(rows) for key, rows in curves.items()})


def assemble(config: Config, drawn: Drawn, curves: Mapping[tuple[int, str], FloatArray]) -> Result:
    """Return the Result from both stages; curves: (k, method) -> (seeds, checkpoints) accuracy."""
    largest = [drawn.weights[k].max() * k for k in config.ks]  # the mean weight in a batch is 1/k
    outcomes = tuple(
        Outcome(k, method, drawn.shares[k, method], np.asarray(curves[k, method]))
        for k in config.ks
        for method in METHODS
    )
    return Result(config, drawn.scale, drawn.rank, drawn.trace_error, np.array(largest), outcomes)


def _labels(labels: IntArray, device: str) -> torch.Tensor:
    import torch

    return torch.from_numpy(labels).to(device)
