"""What the flowers experiment found beyond the paper: other methods, time, and balanced classes."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.flowers.result import Outcome, Result, kernel_methods
from dmsgd.paper.intervals import paired, shown
from dmsgd.paper.protocol import Claim


def baselines(result: Result) -> list[Claim]:
    """Return every other method against random, after one epoch and at the end."""
    found = []
    for k in result.config.ks:
        compared = [
            name
            for name in (
                "shuffled",
                "stratified",
                "clustered",
                "w=0",
                "w=0.9 unbiased",
                "w=0 unbiased",
            )
            if any((o.k, o.method) == (k, name) for o in result.outcomes)
        ]
        for name in compared:
            ours = (
                f"{_gain(result, k, name, 1)} after one epoch, {_gain(result, k, name)} at the end"
            )
            found.append(Claim("beyond", f"{name} against random, k = {k}", "", ours))
        if "stratified" in compared and "w=0.9" in kernel_methods(result, k):
            ours = (
                f"{_gain(result, k, 'w=0.9', 1, 'stratified')} after one epoch, "
                f"{_gain(result, k, 'w=0.9', None, 'stratified')} at the end"
            )
            found.append(Claim("beyond", f"w=0.9 against stratified, k = {k}", "", ours))
    return found


def _gain(
    result: Result, k: int, name: str, epoch: float | None = None, baseline: str = "random"
) -> str:
    ours, theirs = result.accuracy(k, name, epoch), result.accuracy(k, baseline, epoch)
    return shown(*paired(100 * ours, 100 * theirs), sign=True)


def seconds_to(result: Result, k: int, method: str, target: float) -> FloatArray:
    """Return the seconds of sampling and training to an accuracy, one per seed; inf if never.

    Set-up is not counted: it is paid once for all trainings.
    """
    outcome: Outcome = result.outcome(k, method)
    steps = result.config.at() * result.sizes.sum() / k
    reached = outcome.accuracy >= target
    first = np.where(reached.any(axis=1), steps[reached.argmax(axis=1)], np.inf)
    return np.asarray(first * (outcome.sample + outcome.step))


def times(result: Result) -> list[Claim]:
    """Return the seconds that methods take to reach some accuracies."""
    found = []
    for k in result.config.ks:
        for target in result.config.targets:
            texts = []
            for method in ("random", "w=0.9", "stratified"):
                if not any((o.k, o.method) == (k, method) for o in result.outcomes):
                    continue
                outcome = result.outcome(k, method)
                seconds = float(np.median(seconds_to(result, k, method, target)))
                texts.append(
                    f"{method} {seconds:.2f} s ({1e3 * outcome.sample:.2f} + "
                    f"{1e3 * outcome.step:.2f} ms a step, set-up {outcome.setup:.1f} s)"
                )
            statement = f"seconds of sampling and training to {100 * target:g} %, k = {k}"
            note = (
                f"CPU seconds, median over seeds, {result.config.workers} at a time; sampling + "
                f"update; set-up once, not counted"
            )
            found.append(Claim("beyond", statement, "", "; ".join(texts), note=note))
    return found


def balanced_classes(result: Result) -> list[Claim]:
    """Return every method against random where all classes have as many items."""
    found = []
    by_name = {outcome.method: outcome.accuracy for outcome in result.balanced}
    at = result.config.at()
    one = int(np.argmin(np.abs(at - 1)))
    for name, accuracy in by_name.items():
        if name == "random":
            continue
        random = by_name["random"]
        first = paired(100 * accuracy[:, one], 100 * random[:, one])
        end = paired(100 * accuracy[:, -1], 100 * random[:, -1])
        ours = f"{shown(*first, sign=True)} after one epoch, {shown(*end, sign=True)} at the end"
        k, size = result.config.balanced_k, result.config.balanced
        statement = f"balanced classes ({size} items each), k = {k}: {name} against random"
        found.append(Claim("beyond", statement, "", ours))
    return found
