"""Where diverse partitions beat shuffled epochs, and where they do not."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.intervals import holds, margin, paired, show
from dmsgd.paper.partitions.result import SHUFFLED, Outcome, Result, ratio
from dmsgd.paper.protocol import Claim

#: The place of the trained weights among the points, and of both lengths of training.
TRAINED, EARLY, LATE = 1, 0, 1


def claims(result: Result) -> list[Claim]:
    """Return noise, early and late losses of each way against shuffled epochs, costs and rates."""
    found = []
    for task in result.sizes:
        ways = [arm for arm in result.arms(task) if arm != SHUFFLED]
        found += [_noise(result, task, arm) for arm in ways]
        found += [_loss(result, task, arm, at) for at in (EARLY, LATE) for arm in ways]
    return [*found, *(_cost(result, task) for task in result.sizes), _edges(result)]


def _noise(result: Result, task: str, arm: str) -> Claim:
    """Return the claim that a batch's gradient is less noisy than that of a shuffled one."""
    of = result.arms(task)[arm]
    noise = of.variance[:, TRAINED]
    ours = (
        f"{show(noise, 2, 1)}, start {show(of.variance[:, 0], 2, 1)}; quarter "
        f"{show(quarter(result, of), 2, 1)}, half {show(half(result, of), 2, 1)}"
    )
    note = (
        f"over shuffled epochs, whose values are exact; after {result.config.early} epoch and at "
        f"the start. First the variance of a batch's gradient, then the squared error of the mean "
        f"gradient over a quarter and half of an epoch. 95 % intervals over seeds with batches "
        f"(and, but for the flowers, data) of their own"
    )
    statement = f"{task}: less noisy batches, {arm}"
    verdict = holds(1 - float(noise.mean()), margin(noise), noise.size)
    return Claim("beyond", statement, "", ours, verdict, note)


def quarter(result: Result, of: Outcome) -> FloatArray:
    """Return the error of a quarter of an epoch over that of a shuffled one, by seed."""
    return _part(result, of, of.quarter, 4)


def half(result: Result, of: Outcome) -> FloatArray:
    """Return the error of half an epoch over that of a shuffled one, by seed."""
    return _part(result, of, of.half, 2)


def _part(result: Result, of: Outcome, errors: FloatArray, parts: int) -> FloatArray:
    """Return errors over (M - m)/(M - 1): what m of the M batches of a shuffled epoch have."""
    n, k = result.sizes[of.task]
    count = n // k
    return np.asarray(errors[:, TRAINED] / ((count - count // parts) / (count - 1)))


def _loss(result: Result, task: str, arm: str, at: int) -> Claim:
    """Return the claim that an early or late loss is lower than that of shuffled epochs."""
    config, of = result.config, result.arms(task)[arm]
    logs = result.logs(task, arm, "loss", at)
    cells = [interval(logs)]
    if of.accuracy.size:
        more = paired(100 * of.accuracy[:, at], 100 * result.arms(task)[SHUFFLED].accuracy[:, at])
        cells.append(f"accuracy {show(of.accuracy[:, at])}, more by {_range(*more)}")
    epochs = (config.early, config.late)[at]
    note = (
        f"training loss less the least one, over that of shuffled epochs, after {config.early} and "
        f"after {config.late} epochs with a rate that falls to 0, each at its own best rate, which "
        f"{config.tuning} other seeds chose ({config.large_tuning} of MNIST and the flowers); "
        f"accuracy on other items, in percent. Of so many intervals, one in twenty misses"
    )
    when = f"{epochs} epoch{'' if epochs == 1 else 's'}"
    statement = f"{task}: less loss after {when}, {arm}"
    verdict = holds(-float(logs.mean()), margin(logs), logs.size)
    return Claim("beyond", statement, "", "; ".join(cells), verdict, note)


def _cost(result: Result, task: str) -> Claim:
    """Return what a batch costs, in milliseconds of CPU time, and what an update does."""
    n, k = result.sizes[task]
    cells = [f"{arm} {milliseconds(of)}" for arm, of in result.arms(task).items()]
    ours = f"{'; '.join(cells)}; an update {1e3 * result.update[task]:.2f}"
    return Claim("beyond", f"{task}: CPU ms a batch, n = {n:,}, k = {k}", "", ours)


def _edges(result: Result) -> Claim:
    """Return how often the best rate is at an end of the grid, so that a better one may be out."""
    ends, chosen = 0, 0
    for each in result.outcomes:
        grid = result.config.grid(each.task)
        ends += int(np.sum((each.rates == grid[0]) | (each.rates == grid[-1])))
        chosen += each.rates.size
    return Claim("beyond", "best rates at an end of the grid", "", f"{ends} of {chosen}")


def summary(result: Result) -> list[list[str]]:
    """Return the cells of a table, one row a task and way, shuffled epochs first."""
    config = result.config
    heads = ["task", "way", "variance of a batch", "error of half an epoch"]
    heads += [f"{what}, epoch {last}" for what in ("loss", "accuracy")
              for last in (config.early, config.late)]  # fmt: skip
    found = [[*heads, "CPU ms a batch"]]
    for task, (n, k) in result.sizes.items():
        for number, (arm, of) in enumerate(result.arms(task).items()):
            row = [f"{task} (n = {n:,}, k = {k})" if number == 0 else "", arm]
            if arm == SHUFFLED:
                row += ["1", "1", *(f"{of.loss[:, at].mean():.2g} = 1" for at in (EARLY, LATE))]
            else:
                row += [show(of.variance[:, TRAINED], 2, 1), show(half(result, of), 2, 1)]
                row += [interval(result.logs(task, arm, "loss", at)) for at in (EARLY, LATE)]
            row += [show(of.accuracy[:, at]) if of.accuracy.size else "" for at in range(2)]
            found.append([*row, milliseconds(of)])
    return found


def milliseconds(of: Outcome) -> str:
    """Return the CPU time of a batch, the median over seeds."""
    return f"{1e3 * float(np.median(of.seconds)):.2g}"


def interval(logs: FloatArray) -> str:
    """Return "0.93 (0.90 to 0.96)" from logarithms of ratios, with more digits of small ones."""
    mean, low, high = ratio(logs)
    digits = 2 if mean >= 0.1 else 4
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _range(mean: float, half: float) -> str:
    """Return "0.3 (-0.1 to 0.7)"; what rounds to 0 has no sign."""
    middle, low, high = (round(value, 1) + 0.0 for value in (mean, mean - half, mean + half))
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"
