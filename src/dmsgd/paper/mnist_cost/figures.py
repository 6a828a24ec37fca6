"""Seconds of a draw and of a step beside the paper's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.mnist_cost.result import PAPER, Result


def plot(result: Result, folder: Path) -> list[Path]:
    """Write the seconds of a draw and of a step beside the paper's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    ks = result.config.ks
    step, sample = np.median(result.step, axis=1), np.median(result.sample, axis=1)
    axes.plot(ks, step, "o-", color=pictures.COLOURS[7], label="CNN step")
    axes.plot(ks, sample, "o-", color=pictures.COLOURS[0], label="k-DPP sample")
    known = [k for k in ks if k in PAPER]
    if known:
        paper = np.array([PAPER[k] for k in known])
        axes.plot(known, paper[:, 1], "s:", color=pictures.COLOURS[7], label="CNN step, paper")
        axes.plot(known, paper[:, 0], "s:", color=pictures.COLOURS[0], label="k-DPP sample, paper")
    axes.set_yscale("log")
    axes.set_xticks(ks, [str(k) for k in ks])
    axes.set_xlabel("batch size k")
    axes.set_ylabel("seconds")
    pictures.dress(axes)
    axes.set_title(f"MNIST, {result.config.items} items: sampling beside training")
    axes.legend(frameon=False)
    return pictures.save(figure, folder, "mnist-cost")
