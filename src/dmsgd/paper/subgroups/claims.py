"""Accuracies, the share of rare digits, and paired differences from uniform."""

from __future__ import annotations

from dmsgd.paper.intervals import holds, show, shown
from dmsgd.paper.protocol import Claim
from dmsgd.paper.subgroups.result import EARLY, MEASURES, RAREST, Result


def claims(result: Result) -> list[Claim]:
    """Return accuracies, the share of rare digits, and paired differences from uniform."""
    found = []
    steps = result.config.checkpoints
    note = (
        f"worst / rarest / mean digit accuracy after {steps[-1]} steps, %, and what the rarest "
        f"digits make of a batch; the oracle is told the digits"
    )
    for outcome in result.outcomes:
        cells = [show(result.accuracy(outcome.method, measure)) for measure in MEASURES]
        rare = outcome.shares[:, RAREST].sum(axis=1)
        text = f"{' / '.join(cells)}; {show(rare)} of a batch"
        found.append(Claim("beyond", outcome.method, "", text, note=note))
    for outcome in result.outcomes[1:]:
        for measure in MEASURES:
            for checkpoint in (EARLY, -1):
                gain = result.gain(outcome.method, measure, checkpoint)
                statement = (
                    f"{outcome.method} ahead of uniform, {measure} digit, {steps[checkpoint]} steps"
                )
                ours = shown(*gain, sign=True)
                found.append(Claim("beyond", statement, "", ours, holds(*gain)))
    return found
