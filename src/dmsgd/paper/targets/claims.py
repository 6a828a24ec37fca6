"""What the targets experiment found, in words and numbers."""

from __future__ import annotations

from dmsgd.paper.halves import SAME_B, Halves, halved
from dmsgd.paper.intervals import holds, paired, show, shown
from dmsgd.paper.protocol import Claim
from dmsgd.paper.targets.result import Outcome, Result


def claims(result: Result) -> list[Claim]:
    """Return early and late accuracy of every method, and paired differences."""
    found, seeds = [], result.config.seeds
    note = (
        f"accuracy in %, {seeds} seeds; in brackets the paired difference from stratified and from "
        f"uniform"
    )
    for outcome in result.outcomes:
        for late in (False, True):
            after = _after(result, outcome.task, late)
            ours = result.accuracy(outcome.task, outcome.method, late)
            gains = (
                _difference(result, outcome, other, late) for other in ("stratified", "uniform")
            )
            statement = f"{outcome.task}: {outcome.method} after {after}"
            text = f"{show(ours)} ({', '.join(gains)})"
            found.append(Claim("beyond", statement, "", text, note=note))
    for task in result.sizes:
        found += _verdicts(result, task)
    return [*found, *halved(halves(result)), *_regimes(result)]


#: The k-DPPs that are told apart, and the design that has their repulsion and a uniform b.
HALVED = {
    "w=0": "w=0, uniform target",
    "w=0.9": "w=0.9, uniform target",
    "w=0.9, balanced target": "w=0.9, uniform target",
}


def halves(result: Result) -> list[Halves]:
    """Return who is seen and who meets on both tasks, early and late."""
    found = []
    for task in result.sizes:
        for kdpp, uniform_b in HALVED.items():
            names = ("uniform", f"{kdpp}, {SAME_B}", kdpp, uniform_b)
            if not set(names) <= set(result.methods(task)):
                continue
            for late in (False, True):
                what = f"{task}, {kdpp}: accuracy after {_after(result, task, late)}, points"
                scores = (100 * result.accuracy(task, name, late) for name in names)
                found.append(Halves("beyond", what, *scores))
    return found


def _after(result: Result, task: str, late: bool) -> str:
    """Return "1 epoch" or "15 epochs"."""
    epochs = result.config.epochs if task == "flowers" else result.config.digits_epochs
    count = epochs[-1 if late else 0]
    return f"{count:g} epoch{'' if count == 1 else 's'}"


def _difference(result: Result, outcome: Outcome, other: str, late: bool) -> str:
    ours = result.accuracy(outcome.task, outcome.method, late)
    theirs = result.accuracy(outcome.task, other, late)
    return shown(*paired(100 * ours, 100 * theirs), sign=True)


def _verdicts(result: Result, task: str) -> list[Claim]:
    """Return whether the balanced target is ahead of each alternative, early and late."""
    found, best = [], "w=0.5, balanced target"
    for other in ("uniform", "stratified", "class-weighted loss", "w=0.7", "w=0.9"):
        for late in (False, True):
            ours, theirs = (result.accuracy(task, name, late) for name in (best, other))
            lead = paired(100 * ours, 100 * theirs)
            statement = f"{task}: {best} ahead of {other}, {'late' if late else 'early'}"
            verdict = holds(*lead, ours.size)
            found.append(Claim("beyond", statement, "", shown(*lead, sign=True), verdict))
    return found


def _regimes(result: Result) -> list[Claim]:
    note = (
        "digits, w=0: variance over uniform batches weighted to follow the same gradient, before "
        "and after training"
    )
    return [
        Claim("beyond", f"noise, {each.name}", "", ", ".join(f"{v:.2f}" for v in each.noise),
              note=note)
        for each in result.regimes
    ]  # fmt: skip
