"""What was found of generated topics, against uniform batches and half by half."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import Halves, halved
from dmsgd.paper.intervals import holds, paired, show, shown
from dmsgd.paper.protocol import Claim
from dmsgd.paper.topics.result import CLOCKS, PAIRS, UNIFORM, UNIT, Outcome, Result

#: Other distances at which a topic might count as found.
THRESHOLDS = (0.2, 0.4)


def claims(result: Result) -> list[Claim]:
    """Return what every design finds more than uniform batches, at equal updates and words."""
    return [
        *(
            _lead(result, each, clock)
            for clock in CLOCKS
            for each in result.outcomes
            if each.arm != UNIFORM
        ),
        *halved(halves(result)),
        *(
            _stricter(result, size, threshold)
            for size in result.config.sizes
            for threshold in THRESHOLDS
        ),
    ]


def halves(result: Result) -> list[Halves]:
    """Return who is seen and who meets, in topics found by either k-DPP after all updates."""
    found = []
    for size in result.config.sizes:
        for kdpp, same_b in PAIRS.items():
            arms = (result.of(size, arm).by_updates[:, -1] for arm in (UNIFORM, same_b, kdpp))
            what = f"{kdpp}: topics found of {result.config.true_topics}, N = {size:,}"
            found.append(Halves("beyond", what, *arms))
    return found


def _lead(result: Result, each: Outcome, clock: str) -> Claim:
    """Return the claim that a design finds more topics than uniform batches do."""
    last = result.config.budgets[-1]
    ours, theirs = (of.found(clock)[:, -1] for of in (each, result.of(each.size, UNIFORM)))
    lead = paired(ours, theirs)
    when = f"{last} updates" if clock == "updates" else f"the words of {last} uniform batches"
    text = f"{shown(*lead, sign=True)} ({show(ours, 1, 1.0)} and {show(theirs, 1, 1.0)})"
    return Claim(
        "beyond",
        f"N = {each.size:,}: topics found after {when}, {each.arm} minus uniform",
        "",
        text,
        holds(*lead, ours.size),
        "the same documents and starting values for all",
    )


def _stricter(result: Result, size: int, threshold: float) -> Claim:
    """Return the lead of the k-DPP of unit rows if a topic counts as found at another distance."""
    ours, theirs = (
        result.of(size, arm).hits("updates", threshold).sum(axis=1) for arm in (UNIT, UNIFORM)
    )
    lead = paired(ours, theirs)
    return Claim(
        "beyond",
        f"N = {size:,}: topics within {threshold}, {UNIT} minus uniform",
        "",
        f"{shown(*lead, sign=True)} ({show(ours, 1, 1.0)} and {show(theirs, 1, 1.0)})",
        holds(*lead, ours.size),
    )


def summary(result: Result) -> list[list[str]]:
    """Return the cells of a table, one row a size and design."""
    config = result.config
    heads = ["documents", "batches", "words a batch"]
    heads += [f"found after {budget} updates" for budget in config.budgets[::2]]
    last = config.budgets[-1]
    heads += [f"{last}", "- uniform", f"after the words of {last}", "- uniform", "rarest half"]
    found = [heads]
    for number, each in enumerate(result.outcomes):
        first = number == 0 or result.outcomes[number - 1].size != each.size
        row = [f"{each.size:,}" if first else "", each.arm, f"{each.words:.2f}"]
        row += [f"{found:.1f}" for found in each.by_updates.mean(axis=0)[: len(config.budgets) : 2]]
        for clock in CLOCKS:
            ours, theirs = (of.found(clock)[:, -1] for of in (each, result.of(each.size, UNIFORM)))
            lead = "" if each.arm == UNIFORM else shown(*paired(ours, theirs), sign=True)
            row += [show(ours, 1, 1.0), lead]
        found.append([*row, _percent(rarest(result, each))])
    return found


def rarest(result: Result, each: Outcome) -> float:
    """Return the share of the rarest topic that at least half of the runs find, 1 if none."""
    often = each.hits("updates", result.config.threshold).mean(axis=0) >= 0.5
    shares: FloatArray = result.config.shares[np.flatnonzero(often)]
    return float(shares.min(initial=1.0))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
