"""The paper's statements on Figure 3 beside what was found."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.intervals import holds, paired, show, shown, wilson
from dmsgd.paper.protocol import Claim
from dmsgd.paper.synthetic_lda.result import Result


def claims(result: Result) -> list[Claim]:
    """Return the paper's statements on Figure 3 beside the shares of our runs."""
    svi, ours, clustered = (result.complete(method) for method in result.outcomes)
    gain = paired(100 * ours, 100 * svi)
    more = paired(result.recovered("DM-SVI"), result.recovered("SVI"))
    rare = {method: outcome.shares[-1] for method, outcome in result.outcomes.items()}
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
            holds(*gain),
            "the same documents and starting values for both",
        ),
        Claim(
            "Fig. 3",
            "topics recovered on average, DM-SVI minus SVI",
            "5 and 3 (one run)",
            f"{shown(*more, 2, sign=True)} "
            f"({' and '.join(show(result.recovered(m), 2, 1.0) for m in ('DM-SVI', 'SVI'))})",
            holds(*more),
            "the same documents and starting values for both",
        ),
        Claim(
            "beyond",
            "runs with all five topics, pre-clustering",
            "",
            f"{_share(clustered)}, {show(result.recovered('pre-clustered'), 2, 1.0)} topics",
        ),
        Claim(
            "beyond",
            "share of the ten rarest documents in batches, SVI and DM-SVI",
            "",
            f"{100 * rare['SVI']:.1f} % and {100 * rare['DM-SVI']:.1f} %",
            None,
            "in closed form, mean over the seeds' documents",
        ),
    ]


def _most(where: str, statement: str, runs: FloatArray) -> Claim:
    """Return the claim that more than half of all runs, not only of ours, are 1.0."""
    centre, half = wilson(int(runs.sum()), runs.size)
    note = "in brackets the 95 % interval; most is more than half"
    return Claim(where, statement, "yes (one run)", _share(runs), holds(centre - 0.5, half), note)


def _share(runs: FloatArray) -> str:
    """Return "65 % of runs (49.5 to 77.9)", with Wilson's interval."""
    centre, half = wilson(int(runs.sum()), runs.size)
    low, high = 100 * (centre - half), 100 * (centre + half)
    return f"{100 * runs.mean():.0f} % of runs ({low:.1f} to {high:.1f})"
