"""What the paper says about balanced data beside what was found."""

from __future__ import annotations

from dmsgd.paper.halves import SAME_B, UNIFORM_B, Halves, halved
from dmsgd.paper.intervals import holds, paired, show, shown
from dmsgd.paper.mnist.result import Result
from dmsgd.paper.protocol import Claim


def claims(result: Result) -> list[Claim]:
    """Return what the paper says about balanced data beside what we found."""
    found = []
    for number, k in enumerate(result.config.ks):
        for method in ("k-DPP", *(m for m in result.methods if m not in ("random", "k-DPP"))):
            found += _comparisons(result, k, method)
        statement = f"largest weight of the unbiased update over the mean one, k = {k}"
        found.append(Claim("beyond", statement, "", f"{result.largest_weight[number]:.1f}"))
    note = f"RBF scale {result.scale:.2f}; factor of rank {result.rank}"
    error = f"{100 * result.trace_error:.1f} %"
    left_out = Claim("beyond", "trace of the kernel left out", "", error, note=note)
    return [*halved(halves(result)), *found, left_out]


def halves(result: Result) -> list[Halves]:
    """Return who is seen and who meets, at the end and over all checkpoints."""
    if SAME_B not in result.methods:
        return []
    found = []
    for k, checkpoints in zip(result.config.ks, result.config.checkpoints, strict=True):
        curves = [100 * result.accuracy(k, m) for m in ("random", SAME_B, "k-DPP", UNIFORM_B)]
        ends, means = [each[:, -1] for each in curves], [each.mean(axis=1) for each in curves]
        end = f"accuracy after {checkpoints[-1]} steps, k = {k}, points"
        mean = f"accuracy, mean over all checkpoints, k = {k}, points"
        found += [Halves("Fig. 9", end, *ends, digits=2), Halves("Fig. 9", mean, *means, digits=2)]
    return found


def _comparisons(result: Result, k: int, method: str) -> list[Claim]:
    """Return whether a method is ahead of random at the end, and over the whole curve."""
    where, paper = ("Fig. 9", "better than random") if method == "k-DPP" else ("beyond", "")
    ours, random = result.accuracy(k, method), result.accuracy(k, "random")
    steps = result.config.checkpoints[result.config.ks.index(k)]
    end = paired(100 * ours[:, -1], 100 * random[:, -1])
    curve = paired(100 * ours.mean(axis=1), 100 * random.mean(axis=1))
    of_end = (
        f"{shown(*end, 2, sign=True)} ({show(ours[:, -1], 2)} against {show(random[:, -1], 2)})"
    )
    name = f"balanced data, k = {k}: {method} ahead of random"
    note = "points, paired over seeds"
    return [
        Claim(
            where, f"{name} after {steps[-1]} steps", paper, of_end, holds(*end, len(ours)), note
        ),
        Claim(
            where,
            f"{name}, mean over all checkpoints",
            paper,
            shown(*curve, 2, sign=True),
            holds(*curve, len(ours)),
            f"{note}; half of the checkpoints are early, where accuracy is still low",
        ),
    ]
