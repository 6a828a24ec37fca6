"""The order of Figure 2's panels, in numbers."""

from __future__ import annotations

from dmsgd.paper.intervals import holds, paired, show, shown
from dmsgd.paper.protocol import Claim
from dmsgd.paper.toy.result import PANELS, TITLES, Result


def claims(result: Result) -> list[Claim]:
    """Return the order of the panels that the paper shows, and the imbalances behind it."""
    values = result.imbalance
    rows = [
        Claim("Fig. 2", f"imbalance of {TITLES[name]}", "picture", show(values[name], 3, 1.0))
        for name in PANELS[1:]
    ]
    for name in ("stratified", "clustered"):
        lead = paired(values[name], values["k-DPP"])
        verdict = holds(*lead, values[name].size)
        statement = f"the k-DPP restores the balance better than {TITLES[name][4:].lower()}"
        rows.append(Claim("Fig. 2", statement, "yes", shown(*lead, 3, True), verdict))
    return rows
