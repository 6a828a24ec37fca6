"""Pictures of the flowers experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dmsgd.paper import pictures
from dmsgd.paper.flowers.result import Result, imbalance, kernel_methods
from dmsgd.paper.halves import SAME_B, UNIFORM_B
from dmsgd.paper.intervals import margin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colour and line of a method; k-DPPs get darker with w.
BASELINES = {
    "random": ("#777777", "-"),
    "shuffled": ("#000000", ":"),
    "stratified": (pictures.COLOURS[2], "-"),
    "clustered": (pictures.COLOURS[1], "-"),
    "w=0.9 unbiased": (pictures.COLOURS[5], "--"),
    "w=0 unbiased": (pictures.COLOURS[3], "--"),
    f"w=0.9 {SAME_B}": (pictures.COLOURS[4], "-"),
    f"w=0.9 {UNIFORM_B}": (pictures.COLOURS[4], "-."),
}


def plot(result: Result, folder: Path) -> list[Path]:
    """Write all pictures."""
    paths = _histograms(result, folder) if result.shares else []
    paths += _accuracy(result, folder)
    if result.noise:
        paths += _noise(result, folder)
    if result.balanced:
        paths += _balanced(result, folder)
    return paths


def _histograms(result: Result, folder: Path) -> list[Path]:
    from matplotlib.figure import Figure

    order = np.argsort(-result.sizes, kind="stable")
    panels = {"training data": result.sizes / result.sizes.sum(), **result.shares}
    columns = 5 if len(panels) > 5 else len(panels)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(2.7 * columns, 2.3 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for each, (name, shares) in zip(axes, panels.items(), strict=False):
        each.bar(np.arange(shares.size), 100 * shares[order], width=1.0, color=pictures.COLOURS[0])
        each.axhline(100 / shares.size, color="black", linewidth=0.8, linestyle="--")
        each.set_title(f"{name}\nimbalance {imbalance(shares):.2f}", fontsize=10)
        each.set_xticks([])
        each.spines[["top", "right"]].set_visible(False)
    for each in axes[len(panels) :]:
        each.set_visible(False)
    figure.supylabel("share of a batch, %", fontsize=10)
    figure.supxlabel(
        f"the {result.sizes.size} classes, largest first; dashed: equal shares", fontsize=10
    )
    return pictures.save(figure, folder, "flowers-classes")


def _accuracy(result: Result, folder: Path) -> list[Path]:
    from matplotlib.figure import Figure

    ks = result.config.ks
    figure = Figure(figsize=(max(4.4 * len(ks), 9), 7.6), layout="constrained")
    axes = figure.subplots(2, len(ks), squeeze=False, sharey="row")
    for column, k in enumerate(ks):
        kernels = kernel_methods(result, k)
        styles = {"random": BASELINES["random"], **_shades(kernels)}
        _curves(axes[0, column], result, k, styles)
        others = [o.method for o in result.outcomes if o.k == k and o.method in BASELINES]
        styles = {name: BASELINES[name] for name in others}
        if "w=0.9" in kernels:
            styles["w=0.9"] = (pictures.COLOURS[0], "-")
        _curves(axes[1, column], result, k, styles)
        axes[0, column].set_title(f"k = {k}")
        axes[1, column].set_xlabel("epochs")
    for row in axes:
        row[0].set_ylabel("test accuracy, %")
        row[0].legend(frameon=False, loc="lower right", fontsize=9)
    figure.suptitle(
        f"Oxford-102, {result.config.features} features: mean of {result.config.seeds} seeds, "
        f"95 % intervals.\nAbove: k-DPPs by w. Below: w=0.9, its halves, and other methods."
    )
    return pictures.save(figure, folder, "flowers-accuracy")


def _shades(names: list[str]) -> dict[str, tuple[str, str]]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale = np.linspace(0.05, 0.85, max(len(names), 2))[::-1]
    return {
        name: (to_hex(colormaps["viridis"](at)), "-")
        for name, at in zip(names, scale, strict=False)
    }


def _curves(axes: Axes, result: Result, k: int, styles: dict[str, tuple[str, str]]) -> None:
    at = result.config.at()
    for name, (colour, line) in styles.items():
        accuracy = 100 * result.outcome(k, name).accuracy
        _line(axes, at, accuracy, colour, line, name)
    _dress_epochs(axes)


def _line(
    axes: Axes, at: np.ndarray, accuracy: np.ndarray, colour: str, line: str, name: str
) -> None:
    mean, half = accuracy.mean(axis=0), np.array([margin(column) for column in accuracy.T])
    axes.fill_between(at, mean - half, mean + half, color=colour, alpha=0.12, linewidth=0)
    axes.plot(at, mean, line, color=colour, label=name, linewidth=1.4)


def _noise(result: Result, folder: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(result.config.noise_epochs))
    designs = list(dict.fromkeys(_design(noise.method) for noise in result.noise))
    for noise in result.noise:
        name = noise.method.removesuffix(" unbiased")
        colour = pictures.COLOURS[designs.index(_design(name)) % len(pictures.COLOURS)]
        line = f"{'s' if name.endswith(SAME_B) else 'o'}{'-' if name == noise.method else '--'}"
        if name == noise.method:
            left.plot(places, noise.variance / noise.independent, line, color=colour, label=name)
        right.plot(places, noise.variance / noise.uniform, line, color=colour)
    left.set_title("Biased update / independent inclusion, same $b_i$\n(the paper's theorem)")
    right.set_title("/ random batches of the same size\n(dashed: unbiased update; squares: same b)")
    for axes in (left, right):
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xticks(places, [f"{epoch:g}" for epoch in result.config.noise_epochs])
        axes.set_xlabel("epochs of training with random batches")
        axes.set_yscale("log")
        axes.set_yticks(ticks := [0.3, 0.4, 0.5, 0.7, 1, 1.4, 2], [str(tick) for tick in ticks])
        axes.set_yticks([], minor=True)
        pictures.dress(axes)
    left.set_ylabel(f"ratio of gradient variances, k = {result.config.noise_k}")
    figure.legend(frameon=False, fontsize=9, loc="outside right center")
    return pictures.save(figure, folder, "flowers-noise")


def _design(method: str) -> str:
    """Return the design whose colour a method has: its halves and updates are its marks."""
    return method.removesuffix(" unbiased").removesuffix(f" {SAME_B}")


def _balanced(result: Result, folder: Path) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    styles = {**BASELINES, "w=0": (pictures.COLOURS[3], "-"), "w=0.9": (pictures.COLOURS[0], "-")}
    for outcome in result.balanced:
        colour, line = styles.get(outcome.method, (pictures.COLOURS[3], "-"))
        _line(axes, result.config.at(), 100 * outcome.accuracy, colour, line, outcome.method)
    axes.set_xlabel("epochs")
    axes.set_ylabel("test accuracy, %")
    axes.set_title(
        f"Balanced classes: {result.config.balanced} items each, k = {result.config.balanced_k}"
    )
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    _dress_epochs(axes)
    return pictures.save(figure, folder, "flowers-balanced")


def _dress_epochs(axes: Axes) -> None:
    axes.set_xscale("log")
    ticks = [0.1, 0.3, 1, 3, 10, 30]
    low, high = axes.get_xlim()
    axes.set_xticks([tick for tick in ticks if low <= tick <= high])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(20, 100)
    pictures.dress(axes)
