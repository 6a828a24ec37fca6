"""Draws docs/images/label_next.png from stored results, and runs the tutorial's loop on real data.

    python docs/tutorials/label_next.py                        # the picture
    DMSGD_DATA=data python docs/tutorials/label_next.py        # and one run on Oxford-102

The run takes half a minute on one core: ten rounds of 50 labels, a softmax on 100 components of
features of images, one seed. The picture has the means of 20 seeds, the stored results of
`python -m experiments labelling`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # for experiments, which are not installed

from experiments.core.compare import mean
from experiments.core.table import read
from experiments.labelling import NEXT
from experiments.labelling.rounds import run, task

#: Arms of the tutorial, and their colours.
ARMS = {"select": "#0b7a75", "BADGE": "#d1495b", "margin": "#e9a23b", "random": "#7a7a7a"}


def curve(data: str, arm: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of labels, mean accuracy and half of its 95 % interval, as stored."""
    kind = {"experiment": f"labelling/{data}, k=50", "arm": arm, "measure": "accuracy"}
    own = read("labelling").filter(**kind)
    grouped = own.sort("step", "seed").group_by("step", maintain_order=True).agg("value")
    found = [mean(np.asarray(each)) for each in grouped["value"].to_list()]
    middle, half = (np.array([getattr(f, name) for f in found]) for name in ("mean", "half"))
    return grouped["step"].to_numpy(), middle, half


def labels_needed(data: str, arm: str, accuracy: float) -> int:
    """Return after how many labels the mean accuracy of an arm is reached."""
    labels, middle, _ = curve(data, arm)
    return int(labels[np.argmax(middle >= accuracy)])


@rc_context({"font.size": 12})
def draw(path: Path) -> None:
    """Write the picture: where `select` helps, and where simpler rules do."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = {"Oxford-102: 102 kinds of flowers": "Oxford-102", "R8: 8 topics of news": "R8"}
    for axes, (title, data) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        for arm, colour in ARMS.items():
            labels, middle, half = curve(data, arm)
            axes.fill_between(labels, middle - half, middle + half, color=colour, alpha=0.15, lw=0)
            axes.plot(labels, middle, color=colour, label=arm, lw=2 if arm == "select" else 1.4)
        axes.set(title=title, xlabel="labels", ylabel="test accuracy, %")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=110)


@threadpool_limits.wrap(limits=1)  # products are small, and more threads would wait for each other
def main() -> None:
    """Write the picture, and print the accuracies of one run where there are data."""
    draw(ROOT / "docs" / "images" / "label_next.png")
    if not Path(os.environ.get("DMSGD_DATA", ""), "flowers102").is_dir():
        print("no run: set DMSGD_DATA to a folder that holds flowers102/features.npz")
        return
    start = task(0, "Oxford-102", k=50, pool=4000, tested=4000)
    for arm in ARMS:
        rows = run(start, NEXT[arm], seed=0, rate=0.0, rounds=10)
        found = [f"{value:.0f}" for _, measure, value in rows if measure == "accuracy"]
        print(f"{arm}: test accuracy, % after 50, 100, ... 550 labels: {' '.join(found)}")


if __name__ == "__main__":
    main()
