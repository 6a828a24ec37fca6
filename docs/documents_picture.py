"""Makes docs/images/documents.png: what `dmsgd demo` finds, and the same for strata of k-means.

python docs/documents_picture.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import dmsgd
from dmsgd.commands.demo import K, compare_batches, documents

SEEDS = 10
COLOURS = {
    "shuffled": "#777777",
    "clustered": "#E69F00",
    "frequency-matched": "#D55E00",
    "k-DPP": "#0072B2",
}
STYLE = {
    "font.size": 17, "axes.titlesize": 18, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#dddddd", "axes.axisbelow": True,
}  # fmt: skip


def found(seed: int) -> dict[str, tuple[float, np.ndarray]]:
    """Return the % of batches with the rare topic, and how often odd documents are drawn."""
    X, topic = documents(seed)
    design = dmsgd.designs.clustered(X, K, seed=seed)
    held = (topic == 5)[design.sample(1000, seed)].any(axis=1)
    times = design.inclusion()[topic > 5] * len(X) / K
    return {**compare_batches(seed), "clustered": (100 * held.mean(), times)}


@rc_context(STYLE)
def main() -> None:
    """Write the picture."""
    every = [found(seed) for seed in range(SEEDS)]
    figure = Figure(figsize=(8, 7), layout="constrained")
    above, below = figure.subplots(2, 1)
    for at, (name, colour) in enumerate(COLOURS.items()):
        mean = np.mean([each[name][0] for each in every])
        times = np.concatenate([each[name][1] for each in every])
        above.barh(at, mean, height=0.66, color=colour)
        above.text(mean + 1.5, at, f"{mean:.0f} %", va="center")
        place = at + np.linspace(-0.3, 0.3, times.size)
        below.scatter(times, place, s=40, color=colour, alpha=0.5, linewidth=0)
    above.set(title="A topic of 10 in 1000 generated documents", xlim=(0, 118))
    above.set(xlabel=f"% of batches of {K} that hold it", xticks=range(0, 101, 25))
    below.set(title="10 documents that are like no other", xscale="log")
    below.set(xlabel="how often each is drawn, shuffled = 1")
    below.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    below.set_xticks([], minor=True)
    for axes in (above, below):
        axes.set_yticks(range(len(COLOURS)), list(COLOURS))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
    figure.savefig(Path(__file__).parent / "images" / "documents.png", dpi=100)


if __name__ == "__main__":
    main()
