"""The paper's statements on Figure 3 beside what was found."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import SAME_B, Halves, halved
from dmsgd.paper.intervals import holds, paired, show, shown, wilson
from dmsgd.paper.protocol import Claim
from dmsgd.paper.synthetic_lda.result import COMPARED, Result


def claims(result: Result) -> list[Claim]:
    """Return the paper's statements on Figure 3 beside the shares of our runs."""
    svi, ours = (result.complete(method) for method in COMPARED)
    runs = svi.size
    gain = paired(100 * ours, 100 * svi)
    more = paired(result.recovered("DM-SVI"), result.recovered("SVI"))
    missed, lost = 1 - svi, result.outcomes["SVI"].distance[:, -1] > result.config.threshold
    return [
        _most("Fig. 3 (c)", "DM-SVI recovers all five topics in most runs", ours),
        _most("Fig. 3 (b)", "SVI misses a topic in most runs", missed),
        _most("Fig. 3 (b)", "SVI loses topic 5 in most runs", lost.astype(np.float64)),
        Claim(
            "Fig. 3",
            "runs with all five topics, DM-SVI minus SVI",
            "",
            f"{shown(*gain, sign=True)} points",
            holds(*gain, runs),
            "the same documents and starting values for both",
        ),
        Claim(
            "Fig. 3",
            "topics recovered on average, DM-SVI minus SVI",
            "5 and 3 (one run)",
            f"{shown(*more, 2, sign=True)} "
            f"({' and '.join(show(result.recovered(m), 2, 1.0) for m in COMPARED[::-1])})",
            holds(*more, runs),
            "the same documents and starting values for both",
        ),
        *halved(halves(result)),
        *_every(result),
    ]


def halves(result: Result) -> list[Halves]:
    """Return who is seen and who meets, in runs with all five topics and in topics recovered."""
    names = ("SVI", SAME_B, "DM-SVI")
    whole, topics = (
        [measure(name) for name in names] for measure in (result.complete, result.recovered)
    )
    return [
        Halves("Fig. 3", "runs with all five topics, points", *(100 * each for each in whole)),
        Halves("Fig. 3", "topics recovered of five", *topics, digits=2),
    ]


def _every(result: Result) -> list[Claim]:
    """Return what every method recovers, and how often it shows the rarest documents."""
    note = (
        "then topics recovered, and the share of the ten rarest documents in batches, in closed "
        "form"
    )
    return [
        Claim(
            "beyond",
            f"runs with all five topics, {method}",
            "",
            f"{_share(result.complete(method))}, {show(result.recovered(method), 2, 1.0)} topics, "
            f"{100 * outcome.shares[-1]:.1f} % rare",
            None,
            note,
        )
        for method, outcome in result.outcomes.items()
    ]


def _most(where: str, statement: str, runs: FloatArray) -> Claim:
    """Return the claim that more than half of all runs, not only of ours, are 1.0."""
    centre, half = wilson(int(runs.sum()), runs.size)
    note = "in brackets the 95 % interval; most is more than half"
    verdict = holds(centre - 0.5, half, runs.size)
    return Claim(where, statement, "yes (one run)", _share(runs), verdict, note)


def _share(runs: FloatArray) -> str:
    """Return "65 % of runs (49.5 to 77.9)", with Wilson's interval."""
    centre, half = wilson(int(runs.sum()), runs.size)
    low, high = 100 * (centre - half), 100 * (centre + half)
    return f"{100 * runs.mean():.0f} % of runs ({low:.1f} to {high:.1f})"
