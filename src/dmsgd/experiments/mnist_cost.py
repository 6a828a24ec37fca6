"""The paper's Table 5: seconds to sample a batch and to make one CNN step on it, MNIST.

CPU seconds on one thread, so that a busy machine changes little; the median over repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

import dmsgd
from dmsgd.experiments import figures
from dmsgd.experiments.intervals import holds, margin, show
from dmsgd.experiments.protocol import CHEAP, Claim, Progress
from dmsgd.inputs.arrays import FloatArray

if TYPE_CHECKING:
    from dmsgd.datasets import Images

TITLE = "MNIST: what a batch costs beside a CNN step (Table 5)"

#: The paper's seconds by k: sampling ("fast k-DPP"), one update of the network.
PAPER = {10: (0.0012, 0.1669), 100: (0.7941, 1.2945), 200: (5.4216, 2.6481)}


@dataclass(frozen=True)
class Config:
    """What is timed.

    items, w, rank: as in the MNIST experiment.
    draws, steps:   batches and CNN steps timed for each k, after one of each that is not.
    seeds:          repetitions of the draws; the table shows the median.
    """

    seeds: int = 5
    ks: tuple[int, ...] = (10, 100, 200)
    items: int = 30000
    w: float = 0.5
    rank: int = 2000
    draws: int = 50
    steps: int = 8


QUICK = Config(seeds=3, items=4000, rank=1000, draws=10, steps=3)


@dataclass(frozen=True, eq=False)
class Result:
    """CPU seconds: `setup` for the kernel's factor, `tables` for the sampler, `sample`, `step`.

    tables is (ks,), sample is (ks, seeds), step is (ks, steps).
    """

    config: Config
    trace_error: float
    setup: float
    tables: FloatArray
    sample: FloatArray
    step: FloatArray


def load(config: Config, data_dir: str | None = None) -> Images:
    """Return MNIST."""
    from dmsgd import datasets

    return datasets.mnist(data_dir)


def run(config: Config, data: Images, progress: Progress | None = None) -> Result:
    """Return the times."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    order = np.random.default_rng(0).permutation(len(data.y_train))
    items = np.sort(order[: config.items])
    X, y = data.x_train[items].reshape(len(items), -1) / 255, data.y_train[items]
    dmsgd.KDPP(dmsgd.exact(dmsgd.identity(8)), 2).sample(1, 0)  # compiled before the clock runs
    tables, samples, steps = [], [], []
    with threadpool_limits(1):
        begun = process_time()
        kernel = dmsgd.RBF(dmsgd.concat(X, y, config.w))
        spectrum = dmsgd.pivoted_cholesky(kernel, rank=config.rank, oversampling=1.0)
        setup = process_time() - begun
        for done, k in enumerate(config.ks, start=1):
            design = dmsgd.KDPP(spectrum, k)
            begun = process_time()
            design.sample(1, 0)
            tables.append(process_time() - begun)
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


def _draw_seconds(design: dmsgd.Design, draws: int, seed: int) -> float:
    begun = process_time()
    design.sample(draws, seed)
    return (process_time() - begun) / draws


def _step_seconds(
    images: np.ndarray, labels: np.ndarray, design: dmsgd.Design, steps: int
) -> list[float]:
    """Return the CPU seconds of each step of the MNIST experiment's network, on one thread."""
    import torch

    from dmsgd.experiments import cnn

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = cnn.network(seed=0, dropout=0.5)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
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


def claims(result: Result) -> list[Claim]:
    """Return both rows of the table, and what sampling costs as a share of a step."""
    found = []
    for number, k in enumerate(result.config.ks):
        sample, step = result.sample[number], float(np.median(result.step[number]))
        share = 100 * sample / step
        theirs = PAPER.get(k)
        paper = f"{theirs[0]} / {theirs[1]} = {theirs[0] / theirs[1]:.0%}" if theirs else ""
        found.append(
            Claim(
                "Table 5",
                f"a batch costs less than {CHEAP:g} % of a CNN step, k = {k}",
                paper,
                f"{sample.mean():.5f} / {step:.3f} = {show(share, 2, 1.0)} %",
                holds(CHEAP - float(share.mean()), margin(share)),
                "CPU seconds on one thread for both, of the median step; the bound is ours; a "
                "GPU would shorten the step and not the draw",
            )
        )
    tables = ", ".join(f"{seconds:.2f}" for seconds in result.tables)
    setup = (
        f"{result.setup:.0f} s once, leaving out {result.trace_error:.1%} of the kernel's trace; "
        f"then {tables} s for the tables of each k"
    )
    return [*found, Claim("beyond", "set-up of the RBF kernel's factor", "", setup)]


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the seconds of a draw and of a step beside the paper's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    ks = result.config.ks
    step, sample = np.median(result.step, axis=1), np.median(result.sample, axis=1)
    axes.plot(ks, step, "o-", color=figures.COLOURS[7], label="CNN step")
    axes.plot(ks, sample, "o-", color=figures.COLOURS[0], label="k-DPP sample")
    known = [k for k in ks if k in PAPER]
    if known:
        paper = np.array([PAPER[k] for k in known])
        axes.plot(known, paper[:, 1], "s:", color=figures.COLOURS[7], label="CNN step, paper")
        axes.plot(known, paper[:, 0], "s:", color=figures.COLOURS[0], label="k-DPP sample, paper")
    axes.set_yscale("log")
    axes.set_xticks(ks, [str(k) for k in ks])
    axes.set_xlabel("batch size k")
    axes.set_ylabel("seconds")
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"MNIST, {result.config.items} items: sampling beside training")
    axes.legend(frameon=False)
    return figures.save(figure, folder, "mnist-cost")
