"""What the sections of Debian gain by design and clock, half by half, and who is seen."""

from __future__ import annotations

import numpy as np

from dmsgd.paper.debian.result import CLOCKS, MEASURES, PAIRS, UNIFORM, Result
from dmsgd.paper.halves import Halves, halved
from dmsgd.paper.intervals import holds, paired, show, shown
from dmsgd.paper.protocol import Claim


def claims(result: Result) -> list[Claim]:
    """Return what every design gains over uniform batches, at equal words and updates."""
    return [
        *(
            _gain(result, arm, clock, number)
            for number in range(len(MEASURES))
            for clock in CLOCKS[::-1]
            for arm in result.updates
            if arm != UNIFORM
        ),
        *halved(halves(result)),
        *_seen(result),
    ]


def halves(result: Result) -> list[Halves]:
    """Return who is seen and who meets at equal words, for either k-DPP."""
    found = []
    for kdpp, same_b in PAIRS.items():
        arms = [result.measured(arm, "words") for arm in (UNIFORM, same_b, kdpp)]
        for (name, unit, digits), *values in zip(MEASURES, *arms, strict=True):
            what = f"{kdpp}: {name} at equal words, {unit}"
            found.append(Halves("beyond", what, *values, digits=digits))
    return found


def _gain(result: Result, arm: str, clock: str, number: int) -> Claim:
    """Return the claim that a design is better than uniform batches in one measure."""
    name, unit, digits = MEASURES[number]
    ours, theirs = (result.measured(each, clock)[number] for each in (arm, UNIFORM))
    lead = paired(ours, theirs)
    last = result.config.budgets[-1]
    when = f"{last} updates" if clock == "updates" else f"the words of {last} uniform batches"
    levels = " and ".join(show(np.abs(values), 1, 1.0) for values in (ours, theirs))
    text = f"{shown(*lead, digits, sign=True)} ({levels})"
    note = "uses the sections, which the others do not know" if "section" in arm else ""
    statement = f"{name} after {when}, {unit}: {arm} minus uniform"
    return Claim("beyond", statement, "", text, holds(*lead, ours.size), note)


def _seen(result: Result) -> list[Claim]:
    """Return how often small sections are seen, by design and kernel."""
    note = (
        "how often a document is drawn over uniform batches, in closed form: mean over sections, "
        "and over the documents of the smaller half of the sections; the correlation with length; "
        "words a batch over uniform ones"
    )
    return [
        Claim(
            "beyond",
            f"small sections are seen more, {name}",
            "",
            f"{each.average:.2f}, {each.small(result.sizes):.2f}; {each.length:.2f}; "
            f"{each.words:.2f}",
            None,
            note,
        )
        for name, each in result.seen.items()
    ]


def summary(result: Result) -> list[list[str]]:
    """Return the cells of a table: every design at equal words, and less uniform batches."""
    found = [["batches", "words a batch", "small sections seen"]]
    for name, _, _ in MEASURES[:4]:
        found[0] += [name, "- uniform"]
    found[0] += ["perplexity", "lower by"]
    base = result.measured(UNIFORM, "words")
    for arm, outcome in result.words.items():
        who = result.seen[arm]
        row = [arm, f"{who.words:.2f}", f"{who.average:.2f}"]
        own = result.measured(arm, "words")
        levels = [show(values, 1, 1.0) for values in own[:-1]]
        levels.append(show(outcome.perplexity[:, -1], 0, 1.0))
        for level, ours, theirs in zip(levels, own, base, strict=True):
            lead = "" if arm == UNIFORM else shown(*paired(ours, theirs), sign=True)
            row += [level, lead]
        found.append(row)
    return found


def kernels(result: Result) -> list[list[str]]:
    """Return the cells of a table: who is seen, by design and kernel, the fairest first."""
    found = [["kernel or design", "mean over sections", "smaller half", "b and length",
              "words a batch"]]  # fmt: skip
    for name, each in sorted(result.seen.items(), key=lambda item: -item[1].average):
        numbers = (each.average, each.small(result.sizes), each.length, each.words)
        found.append([name, *(f"{number:.2f}" for number in numbers)])
    return found
