"""CPU seconds of set-up, of draws and of the network's steps."""

from __future__ import annotations

from functools import partial
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.paper.mnist import result as mnist
from dmsgd.paper.mnist.batches import chosen, factor
from dmsgd.paper.mnist_cost.result import Config, Result
from dmsgd.paper.protocol import Progress
from dmsgd.paper.timing import timed

if TYPE_CHECKING:
    from dmsgd.datasets import Images


def load(config: Config, data_dir: str | None = None) -> Images:
    """Return MNIST."""
    from dmsgd import datasets

    return datasets.mnist(data_dir)


def run(config: Config, data: Images, progress: Progress | None = None) -> Result:
    """Return the times."""
    from threadpoolctl import threadpool_limits

    items, X, y = chosen(data, config.items)
    dmsgd.KDPP(dmsgd.exact(dmsgd.identity(8)), 2).sample(1, 0)  # compiled before the clock runs
    tables, samples, steps = [], [], []
    with threadpool_limits(1):
        (_, spectrum), setup = timed(partial(factor, X, y, config.w, config.rank))
        for done, k in enumerate(config.ks, start=1):
            design = dmsgd.KDPP(spectrum, k)
            tables.append(timed(partial(design.sample, 1, 0))[1])
            samples.append([_draw_seconds(design, config.draws, s) for s in range(config.seeds)])
            steps.append(_step_seconds(data.x_train[items], y, design, config.steps))
            if progress is not None:
                progress(done / len(config.ks))
    return Result(
        config,
        spectrum.trace_error,
        setup,
        np.array(tables),
        np.array(samples),
        np.array(steps),
    )


def _draw_seconds(design: dmsgd.ClosedForm, draws: int, seed: int) -> float:
    return timed(partial(design.sample, draws, seed))[1] / draws


def _step_seconds(
    images: np.ndarray, labels: np.ndarray, design: dmsgd.ClosedForm, steps: int
) -> list[float]:
    """Return the CPU seconds of each step of the MNIST experiment's network, on one thread."""
    import torch

    from dmsgd.paper.models import cnn

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = cnn.network(seed=0, dropout=mnist.Config.dropout)
        optimizer = torch.optim.Adam(model.parameters(), lr=mnist.Config.rate)
        seconds = []
        for batch in design.sample(steps + 1, 0):
            begun = process_time()
            inputs, targets = cnn.pixels(images[batch], "cpu"), torch.from_numpy(labels[batch])
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            seconds.append(process_time() - begun)
    finally:
        torch.set_num_threads(before)
    return seconds[1:]
