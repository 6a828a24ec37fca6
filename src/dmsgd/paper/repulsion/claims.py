"""Steps over those of uniform batches, beside the variance that explains them."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.intervals import holds, margin, shown
from dmsgd.paper.protocol import Claim
from dmsgd.paper.repulsion.result import SHUFFLED, UNIFORM, Fall, Outcome, Result, ratio


def claims(result: Result) -> list[Claim]:
    """Return for every problem what each way to draw batches does to steps, loss and variance."""
    found = []
    for problem in dict.fromkeys(each.problem for each in result.outcomes):
        arms = dict.fromkeys(each.arm for each in result.outcomes if each.problem == problem)
        found += [_steps(result, problem, arm) for arm in arms if arm != UNIFORM]
    return [*found, *(_fall(result, fall) for fall in result.falls), *_edges(result)]


def _steps(result: Result, problem: str, arm: str) -> Claim:
    """Return the claim that an arm needs fewer steps to the late loss, over all batch sizes."""
    of = [each for each in result.outcomes if (each.problem, each.arm) == (problem, arm)]
    late = pooled(result, of, "late")
    cells = [f"late {_interval(late)}"]
    if len(of) > 1:
        cells[0] += f", by k: {' / '.join(_point(result, each, 'late') for each in of)}"
    cells.append(f"early {_interval(pooled(result, of, 'early'))}")
    if of[0].decayed.size:
        cells.append(f"decayed {_interval(pooled(result, of, 'decayed'))}")
    if of[0].variance.size and arm != SHUFFLED:
        noise = " / ".join(f"{each.variance[:, 1].mean():.2f}" for each in of)
        cells.append(f"variance {noise}")
    config = result.config
    note = (
        f"over uniform batches, each at its own best rate, which other streams of batches chose; "
        f"95 % intervals over {config.seeds} seeds with data of their own. Early, late: steps "
        f"to the loss that uniform batches have after {config.early} and {config.late} (NMF: "
        f"{config.nmf_early} and {config.nmf_late}). Decayed: excess loss after {config.late} "
        f"steps with a rate that falls to 0. Variance: of a batch's gradient, at the optimum. All "
        f"sizes of batch together, then k = {', '.join(map(str, config.ks))}"
    )
    sizes = f", k = {of[0].k}" if len(of) == 1 else ""
    statement = f"{problem}{sizes}: {arm} takes fewer steps"
    verdict = holds(-float(late.mean()), margin(late), config.seeds)
    return Claim("beyond", statement, "", "; ".join(cells), verdict, note)


def summary(result: Result) -> list[list[str]]:
    """Return the cells of a table of late steps, one row a problem and what kernels see of it."""
    heads = ["problem", "kernel and cells see", "k", "k-DPP: steps", "by k", "variance",
             "cells: steps", "by k", "variance", "shuffled: steps"]  # fmt: skip
    found = [heads]
    for problem in dict.fromkeys(each.problem for each in result.outcomes):
        ks = [k for name, k in result.cases() if name == problem]
        for number, what in enumerate(result.seen(problem, ks[0])):
            drawn = [k for k in ks if what in result.seen(problem, k)]
            row = [problem if number == 0 else "", what, " / ".join(map(str, drawn))]
            for arm in (f"k-DPP on {what}", f"cells of {what}"):
                row += _cells(result, problem, arm)
            row.append(_cells(result, problem, SHUFFLED)[0] if number == 0 else "")
            found.append(row)
    return found


def _cells(result: Result, problem: str, arm: str) -> list[str]:
    """Return late steps over uniform batches', the same by k, and the variance by k."""
    of = [each for each in result.outcomes if (each.problem, each.arm) == (problem, arm)]
    if not of:
        return ["", "", ""]
    by_k = " / ".join(_point(result, each, "late") for each in of) if len(of) > 1 else ""
    noise = [f"{each.variance[:, 1].mean():.2f}" for each in of if each.variance.size]
    return [_interval(pooled(result, of, "late")), by_k, " / ".join(noise)]


def pooled(result: Result, of: list[Outcome], what: str) -> FloatArray:
    """Return the mean over batch sizes of log(arm / uniform), by seed."""
    logs = [result.logs(each.problem, each.k, each.arm, what) for each in of]
    return np.asarray(np.mean(logs, axis=0))


def _interval(logs: FloatArray) -> str:
    mean, low, high = ratio(logs)
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"


def _point(result: Result, outcome: Outcome, what: str) -> str:
    return f"{ratio(result.logs(outcome.problem, outcome.k, outcome.arm, what))[0]:.2f}"


def _fall(result: Result, fall: Fall) -> Claim:
    """Return how fast the variance falls with k, against uniform batches."""
    config = result.config
    ks = np.log(fall.ks)
    more = np.array([-np.polyfit(ks, np.log(row), 1)[0] for row in fall.ratio])
    plain = -np.polyfit(ks, np.log(1 / np.array(fall.ks) - 1 / config.items), 1)[0]
    half = margin(more)
    ours = (
        f"{shown(float(more.mean()), half, 2, sign=True)} (uniform {plain:.2f}); ratios "
        f"{' / '.join(f'{value:.2f}' for value in fall.ratio.mean(axis=0))}"
    )
    note = (
        f"p with variance ~ k^-p, less that of uniform batches, and the ratios of variances, for "
        f"k = {', '.join(map(str, fall.ks))}; {len(fall.ratio)} seeds"
    )
    verdict = holds(float(more.mean()), half, len(fall.ratio))
    statement = f"{fall.problem}: the variance falls faster with k, {fall.arm}"
    return Claim("beyond", statement, "", ours, verdict, note)


def _edges(result: Result) -> list[Claim]:
    """Return how often the best rate is at an end of the grid, so that a better one may be out."""
    found = []
    for name, grid, nmf in (
        ("rates", result.config.rates, False),
        ("forget factors of NMF", result.config.forgetting, True),
    ):
        of = [each.rates for each in result.outcomes if each.problem.startswith("NMF") == nmf]
        if of:
            low, high = (sum(int(np.sum(r == end)) for r in of) for end in (grid[0], grid[-1]))
            within = f"{len(grid)} from {grid[0]:.3g} to {grid[-1]:.3g}{'' if nmf else ' (x 1/L)'}"
            ours = f"{low} at the lower end, {high} at the upper, of {sum(r.size for r in of):,}"
            found.append(Claim("beyond", f"best {name} within {within}", "", ours))
    return found
