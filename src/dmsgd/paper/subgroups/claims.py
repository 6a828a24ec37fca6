"""Accuracies, the share of rare digits, and paired differences from uniform."""

from __future__ import annotations

from dmsgd.paper.halves import SAME_B, Halves, halved
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
                verdict = holds(*gain, result.config.seeds)
                found.append(Claim("beyond", statement, "", ours, verdict))
    return [*found, *halved(halves(result))]


#: The k-DPPs that are told apart, and the design that has their repulsion and a uniform b.
HALVED = {
    "k-DPP linear": "linear, uniform target",
    "k-DPP rbf": "rbf, uniform target",
    "linear, density, strength 1": "linear, uniform target",
}


def halves(result: Result) -> list[Halves]:
    """Return who is seen and who meets, for the worst and the mean digit, early and late."""
    found = []
    for kdpp, uniform_b in HALVED.items():
        names = ("uniform", f"{kdpp}, {SAME_B}", kdpp, uniform_b)
        if not set(names) <= set(result.methods):
            continue
        for measure in ("worst", "mean"):
            for checkpoint in (EARLY, -1):
                what = (
                    f"{kdpp}: accuracy of the {measure} digit after "
                    f"{result.config.checkpoints[checkpoint]} steps, points"
                )
                scores = (100 * result.accuracy(name, measure, checkpoint) for name in names)
                found.append(Halves("beyond", what, *scores))
    return found
