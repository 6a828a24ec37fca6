"""Makes docs/images/quality.png: ten of 400 points by quality, by `dmsgd.select` and by MMR.

python docs/quality_picture.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import dmsgd

HERE = Path(__file__).parent
#: Points, and how many of them are chosen.
N, K = 400, 10
#: Groups of points: centre, spread, and share of all.
GROUPS = (
    ((0.0, 0.0), 0.55, 0.4),
    ((2.6, 0.8), 0.5, 0.3),
    ((0.9, 2.6), 0.45, 0.2),
    ((3.0, 3.0), 0.35, 0.1),
)


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return points in the plane and their quality, which is highest near one place."""
    rng = np.random.default_rng(3)
    parts = [rng.normal(c, s, size=(int(N * share), 2)) for c, s, share in GROUPS]
    X = np.vstack(parts)
    quality = np.exp(-((X - (1.2, 0.3)) ** 2).sum(1) / 6) * rng.uniform(0.7, 1.0, len(X))
    return X, quality / quality.max()


def mmr(X: np.ndarray, quality: np.ndarray, diversity: float) -> list[int]:
    """Return K items by maximal marginal relevance, with the similarity of `dmsgd.select`."""
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    S = np.exp(-D / np.median(D[np.triu_indices(len(X), 1)]))
    items = [int(np.argmax(quality))]
    while len(items) < K:
        score = (1 - diversity) * quality - diversity * S[:, items].max(1)
        score[items] = -np.inf
        items.append(int(np.argmax(score)))
    return items


@rc_context({"font.size": 14, "axes.titlesize": 14})
def main() -> None:
    """Write the picture, one panel for each way to choose."""
    X, quality = data()
    panels = {"the ten best": np.argsort(-quality)[:K]}
    for diversity in (0.2, 0.5, 0.8):
        items = dmsgd.select(X, K, quality=quality, diversity=diversity, how="greedy")
        panels[f"greedy, diversity={diversity}"] = items
    design = dmsgd.diversify(X, K, kernel="rbf", quality=quality)
    panels["a draw from the k-DPP"] = design.sample(1, seed=0)[0]
    panels["MMR, λ = 0.5"] = np.array(mmr(X, quality, 0.5))
    figure = Figure(figsize=(10, 7.1), layout="constrained")
    axes = figure.subplots(2, 3)
    for axis, (title, items) in zip(axes.flat, panels.items(), strict=True):
        dots = axis.scatter(*X.T, c=quality, cmap="cividis", s=16, vmin=0, vmax=1, linewidths=0)
        axis.scatter(*X[items].T, s=170, facecolors="none", edgecolors="#D55E00", linewidths=2.5)
        axis.set_title(f"{title}\nmean quality {quality[items].mean():.2f}")
        axis.set(xticks=[], yticks=[], aspect="equal")
    figure.colorbar(dots, ax=axes, label="quality", shrink=0.6, pad=0.01)
    figure.savefig(HERE / "images" / "quality.png", dpi=100)


if __name__ == "__main__":
    main()
