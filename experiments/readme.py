"""The two tables of README.md that quote experiments: what to use when, and the paper's claims."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from experiments.core.compare import compare, values
from experiments.labelling.tables import MEAN, ahead, ranked

#: Claims of the paper: what, its figure, results, case, arm, measure, step, digits.
CLAIMS = [
    ("R8, LDA topics, average class accuracy", "82.1 → 87.2", "r8", "r8", "k-DPP",
     "average accuracy", None, 1),
    ("generated documents, % of runs that find all topics", "one run", "synthetic_lda",
     "synthetic_lda", "k-DPP", "all five topics", None, 0),
    ("Oxford-102, k = 102, after one epoch", "faster", "flowers", "flowers/k=102", "k-DPP w=0.9",
     "accuracy", 60, 1),
    ("Oxford-102, at the end", "84.5 → 86.5", "flowers", "flowers/k=102", "k-DPP w=0.9",
     "accuracy", None, 1),
    ("MNIST, CNN, k = 200, at the end", "better", "mnist", "mnist/k=200", "k-DPP", "accuracy",
     None, 2),
    ("the same, averaged over training", "better", "mnist", "mnist/k=200", "k-DPP",
     "mean accuracy", None, 2),
]  # fmt: skip


def paper(stored: Mapping[str, pl.DataFrame]) -> list[list[str]]:
    """Return the paper's claims: levels, gain over independent and over shuffled batches."""
    rows = [["k-DPP against independent uniform batches", "paper", "here", "gain",
             "against shuffled epochs"]]  # fmt: skip
    for what, said, results, case, arm, measure, step, digits in CLAIMS:
        table = stored[results]
        levels = [values(table, case, each, measure, step).mean() for each in ("uniform", arm)]
        gains = [compare(table, case, arm, against, measure, step).text(digits)
                 for against in ("uniform", "shuffled")]  # fmt: skip
        here = " → ".join(f"{level:.{digits}f}" for level in levels)
        rows.append([what, said, here, *gains])
    return rows


def uses(stored: Mapping[str, pl.DataFrame]) -> list[list[str]]:
    """Return what to use when, with what was measured."""
    tailed = {arm: values(stored["long_tailed"], "long_tailed/mnist", arm, "accuracy").mean()
              for arm in ("stratified", "WeightedRandomSampler", "shuffled")}  # fmt: skip
    ranks, lead = ranked(stored["labelling"], 50, MEAN), ahead(stored["labelling"], 50, MEAN)
    places = [f"{arm} {rank:.2f}" for arm, rank in zip(ranks.arms, ranks.means, strict=True)]
    clients = compare(stored["federated"], "federated/mnist, shards, k=10",
                      "partition of cells by last update", "shuffled", "mean accuracy")  # fmt: skip
    length = [compare(stored["r8"], "r8", arm, "shuffled", "average accuracy").text(1)
              for arm in ("by length", "k-DPP")]  # fmt: skip
    images = [compare(stored["mnist"], "mnist/k=200", "k-DPP", "shuffled", measure).text(2)
              for measure in ("accuracy", "mean accuracy")]  # fmt: skip
    return [
        ["you have", "use", "measured"],
        ["uneven classes of equal weight", "`Stratified(y, k)`",
         f"MNIST 200:1: {tailed['stratified']:.1f} % accuracy; shuffled epochs "
         f"{tailed['shuffled']:.1f}; `WeightedRandomSampler` is level, "
         f"{tailed['WeightedRandomSampler']:.1f}"],
        ["a pool to label", "`select(X, k, quality=u, given=labelled)`",
         f"average rank among {len(ranks.arms)} ways on 12 data sets: {', '.join(places[:3])}; "
         f"{lead['UHerding'].text(1)} points above UHerding, {lead['BADGE'].text(1)} above BADGE"],
        ["clients, sites or sensors to choose from", "`Partition(cells(updates, k))`",
         f"federated averaging, two labels per client: {clients.text(1)} points above shuffling"],
        ["long and short documents, a topic model", "`Weighted(weights=lengths, k=k)`",
         f"R8: {length[0]} points above shuffled epochs; the paper's k-DPP {length[1]}"],
        ["groups that must not share a batch", "`designs.OnePerGroup(groups, k)`",
         "every item once per epoch, no two of a group together"],
        ["**ordinary data, a shuffling loader**", "**`shuffle=True`**",
         f"no design was better at the end; MNIST, k = 200: k-DPP {images[0]} points at the end, "
         f"{images[1]} averaged over training"],
    ]  # fmt: skip
