"""Average ranks over data sets, and which of them differ (Friedman's and Nemenyi's tests)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.core.figures import COLOURS, save


@dataclass(frozen=True)
class Ranks:
    """Average ranks, 1 being the best, from the first to the last.

    arms:     their names in that order, and means, their average ranks.
    critical: average ranks that are closer than this do not differ at 5 % (Nemenyi).
    p:        of Friedman's test that all are alike.
    """

    arms: tuple[str, ...]
    means: np.ndarray
    critical: float
    p: float

    @property
    def alike(self) -> list[tuple[int, int]]:
        """The first and last place of each longest row of arms that do not differ."""
        ends = [int(np.flatnonzero(self.means - low <= self.critical)[-1]) for low in self.means]
        return [(at, end) for at, end in enumerate(ends)
                if end > at and (at == 0 or end > ends[at - 1])]  # fmt: skip


def ranks_of(arms: Sequence[str], levels: np.ndarray) -> Ranks:
    """Return ranks of arms, the columns, on data sets, the rows; higher levels are better."""
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    sets, count = levels.shape
    means = rankdata(-levels.round(6), axis=1).mean(0)  # what rounding parts is a tie
    order = np.argsort(means, kind="stable")
    wide = studentized_range.ppf(0.95, count, np.inf) / np.sqrt(2)
    critical = float(wide * np.sqrt(count * (count + 1) / (6 * sets)))
    p = float(friedmanchisquare(*levels.T).pvalue)
    return Ranks(tuple(arms[at] for at in order), means[order], critical, p)


def diagram(path: Path, panels: Mapping[str, Ranks]) -> Path:
    """Write critical-difference diagrams: arms on an axis of ranks, bars join what is alike."""
    from matplotlib.figure import Figure

    most = max(len(found.arms) for found in panels.values())
    figure = Figure(figsize=(8.0, len(panels) * (1.3 + 0.11 * most)), layout="constrained")
    every = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (title, found) in zip(every, panels.items(), strict=True):
        _draw(axes, title, found)
    return save(figure, path)


def _draw(axes: Any, title: str, found: Ranks) -> None:
    count, alike = len(found.arms), found.alike
    half = (count + 1) // 2
    below = 0.5 + 0.28 * len(alike)
    for level, (first, last) in enumerate(alike):
        ends = found.means[first] - 0.06, found.means[last] + 0.06
        axes.plot(ends, [0.35 + 0.28 * level] * 2, color="black", linewidth=3)
    for at, (arm, rank) in enumerate(zip(found.arms, found.means, strict=True)):
        left = at < half
        depth, edge = below + 0.5 * (at if left else count - 1 - at), 0.6 if left else count + 0.4
        colour = COLOURS[0] if at == 0 else "black"
        axes.plot([rank, rank, edge], [0, depth, depth], color=colour, linewidth=0.8)
        text = f"{arm} {rank:.2f} " if left else f" {rank:.2f} {arm}"
        axes.text(edge, depth, text, ha="right" if left else "left", va="center", fontsize=8,
                  color=colour)  # fmt: skip
    axes.plot([1, 1 + found.critical], [-0.95] * 2, color="#777777", linewidth=2)
    words = f" critical difference {found.critical:.1f}"
    axes.text(1 + found.critical, -0.95, words, va="center", fontsize=8, color="#777777")
    axes.hlines(0, 1, count, color="black", linewidth=0.8)
    for rank in range(1, count + 1):
        axes.plot([rank] * 2, [-0.1, 0], color="black", linewidth=0.8)
        axes.text(rank, -0.15, str(rank), ha="center", va="bottom", fontsize=8)
    axes.set(title=title, xlim=(-1.6, count + 2.6), ylim=(below + 0.5 * half, -1.3))
    axes.axis("off")
