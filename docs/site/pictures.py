"""Draws the five pictures of docs/concepts.md into docs/images/how; they are committed.

    python docs/site/pictures.py

Every number in them comes from the package: kernel, spectrum, draws, inclusion and cost of the same
150 points in the plane.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dmsgd

FOLDER = Path(__file__).resolve().parents[1] / "images" / "how"
GREEN, GREY, RED = "#00796b", "#9aa5ae", "#d84315"
K = 10
SIZES = {"common": 110, "less common": 32, "rare": 8}

matplotlib.use("agg")
plt.rcParams |= {
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
    "savefig.facecolor": "white", "figure.dpi": 130, "svg.hashsalt": "dmsgd",
}  # fmt: skip


def points() -> tuple[np.ndarray, np.ndarray]:
    """Return 150 points in three groups of 110, 32 and 8, group by group."""
    rng = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [3.2, 1.0], [1.2, 3.2]])
    spread = np.array([0.75, 0.5, 0.35])
    group = np.repeat(np.arange(3), list(SIZES.values()))
    return centres[group] + spread[group, None] * rng.normal(size=(len(group), 2)), group


def kernel_picture(X: np.ndarray, design: dmsgd.KDPP) -> Figure:
    """Points, and the matrix of how similar they are."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    one = 5
    L = dmsgd.kernels.RBF(X, scale=0.8).block(np.arange(len(X)), np.arange(len(X)))
    shown = left.scatter(*X.T, c=L[one], cmap="YlGnBu", s=26, edgecolor=GREY, linewidth=0.4)
    left.scatter(*X[one], marker="*", s=170, color=RED, zorder=3)
    plain(left, "How similar is each point to the star?")
    figure.colorbar(shown, ax=left, shrink=0.8)
    right.imshow(L, cmap="YlGnBu", vmin=0, vmax=1, interpolation="nearest")
    right.set_title("The kernel L: all of them to all", fontsize=10)
    ends = np.cumsum(list(SIZES.values()))
    right.set_yticks(ends - np.array(list(SIZES.values())) / 2, list(SIZES))
    right.set_xticks([])
    right.tick_params(length=0)
    return figure


def spectrum_picture(X: np.ndarray, design: dmsgd.KDPP) -> Figure:
    """Eigenvalues with the probability that each is used, and three eigenvectors as maps."""
    spectrum = design.spectrum
    figure = plt.figure(figsize=(8, 3.2), layout="constrained")
    grid = figure.add_gridspec(1, 5)
    axes = figure.add_subplot(grid[:2])
    shown = spectrum.values[:40]
    axes.bar(np.arange(len(shown)), shown / spectrum.values.sum(), color=GREEN)
    axes.set_xlabel("eigenvector")
    axes.set_title("Eigenvalues, as shares of the trace", fontsize=10)
    for place, number in enumerate((0, 1, 2)):
        small = figure.add_subplot(grid[2 + place])
        vector = spectrum.vectors[:, number]
        bound = np.abs(vector).max()
        small.scatter(*X.T, c=vector, cmap="BrBG", vmin=-bound, vmax=bound, s=9)
        plain(small, f"eigenvector {number + 1}")
    return figure


def draw_picture(X: np.ndarray, design: dmsgd.KDPP) -> Figure:
    """Uniform and diverse draws beside each other."""
    figure, axes = plt.subplots(2, 3, figsize=(8, 4.9), layout="constrained")
    laws = (("uniform", dmsgd.Uniform(len(X), K), RED), ("diverse", design, GREEN))
    for row, (name, law, colour) in zip(axes, laws, strict=True):
        for number, (place, batch) in enumerate(zip(row, law.sample(3, seed=1), strict=True)):
            place.scatter(*X.T, s=9, color=GREY, alpha=0.5)
            place.scatter(*X[batch].T, s=46, color=colour)
            plain(place, f"{name}, batch {number + 1}")
    return figure


def seen_picture(X: np.ndarray, design: dmsgd.KDPP) -> Figure:
    """Inclusion probabilities, and the share of a batch that each group has."""
    group = points()[1]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    times = design.inclusion() * len(X) / K
    shown = left.scatter(*X.T, c=times, s=12 * times + 4, cmap="viridis")
    figure.colorbar(shown, ax=left, label="times as often as uniform", shrink=0.85)
    plain(left, "How often each point is seen")
    names, where = list(SIZES), np.arange(3)
    uniform = np.array(list(SIZES.values())) / len(X)
    diverse = [design.inclusion()[group == each].sum() / K for each in range(3)]
    for shift, shares, colour, name in (
        (-0.2, uniform, RED, "uniform"),
        (0.2, diverse, GREEN, "diverse"),
    ):
        bars = right.bar(where + shift, shares, 0.4, color=colour, label=name)
        right.bar_label(bars, [f"{100 * share:.0f} %" for share in shares], fontsize=9)
    right.set_xticks(where, names)
    right.set_yticks([])
    right.legend(frameon=False)
    right.set_title("Share of a batch", fontsize=10)
    return figure


def cost_picture(X: np.ndarray, design: dmsgd.KDPP) -> Figure:
    """CPU time of a draw as the data grows, beside the paper's algorithm."""
    from dmsgd.samplers import reference

    counts, k = [1_000, 4_000, 16_000, 64_000, 256_000], 32
    ours, classic = [], []
    for n in counts:
        spectrum = dmsgd.kernels.exact(
            dmsgd.kernels.Linear(np.random.default_rng(0).normal(size=(n, 64)))
        )
        ours.append(_seconds(dmsgd.KDPP(spectrum, k), draws=300))
        if n <= 16_000:
            classic.append(_seconds(dmsgd.KDPP(spectrum, k, sampler=reference), draws=1))
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.loglog(counts, 1e3 * np.array(ours), "o-", color=GREEN, label="dmsgd")
    axes.loglog(
        counts[: len(classic)],
        1e3 * np.array(classic),
        "s--",
        color=RED,
        label="the paper's algorithm",
    )
    axes.set_xlabel("items n (64 features, k = 32)")
    axes.set_ylabel("one draw, ms of CPU time")
    axes.legend(frameon=False)
    axes.set_title("A draw does not look at all items", fontsize=10)
    return figure


def _seconds(design: dmsgd.KDPP, draws: int) -> float:
    design.sample(draws, seed=0)
    found = []
    for seed in range(5):
        start = time.process_time()
        design.sample(draws, seed=seed)
        found.append((time.process_time() - start) / draws)
    return statistics.median(found)


def plain(axes: Axes, title: str) -> None:
    """Give a map of points a title and no axes."""
    axes.set_title(title, fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal")
    for side in axes.spines.values():
        side.set_visible(False)


def main() -> None:
    """Draw all five."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    X, _ = points()
    design = dmsgd.diversify(X, K, kernel="rbf", scale=0.8)
    for draw in (kernel_picture, spectrum_picture, draw_picture, seen_picture, cost_picture):
        name = draw.__name__.removesuffix("_picture")
        draw(X, design).savefig(FOLDER / f"{name}.png")
        plt.close("all")


if __name__ == "__main__":
    main()
