"""Ratios of variances, and how well their reasons tell them."""

from __future__ import annotations

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.halves import Halves, halved
from dmsgd.paper.intervals import holds, margin, paired, show, shown
from dmsgd.paper.noise.result import Result
from dmsgd.paper.protocol import Claim


def claims(result: Result) -> list[Claim]:
    """Return the ratio of variances for every kernel, and how well its reasons tell it."""
    steps, found = result.config.steps, []
    when = ", ".join(str(step) for step in steps)
    note = (
        f"prescribed / plain SGD, after {when} steps of plain SGD; in brackets the uniform batch "
        f"that one of {result.config.k} is worth"
    )
    for each in result.outcomes:
        cells = (
            f"{show(ratio, 2, 1)} ({worth.mean():.0f})"
            for ratio, worth in zip(each.prescribed.T, each.worth.T, strict=True)
        )
        statement = f"{each.problem}, kernel on {each.kernel}: variance ratio"
        found.append(Claim("beyond", statement, "", "; ".join(cells), note=note))
    return [*found, *_regimes(result), *halved(halves(result)), *_reasons(result)]


def _regimes(result: Result) -> list[Claim]:
    """Return how far above plain SGD the unbiased regimes get, and which of them is less noisy."""
    found = []
    for name, field in (
        ("the uniform target", "prescribed"),
        ("the kernel's own b_i and weights 1/(N b_i)", "reweighted"),
    ):
        values = _gathered(result, field)
        statement = f"less than 2 % noisier than plain SGD in all cases: {name}"
        ours = f"{values.min():.2f} to {values.max():.2f}"
        found.append(Claim("beyond", statement, "", ours, holds(1.02 - float(values.max()))))
    note = "mean over kernels and steps, paired by seed; it depends on the kernels that were chosen"
    for problem in dict.fromkeys(each.problem for each in result.outcomes):
        of = [each for each in result.outcomes if each.problem == problem]
        prescribed, reweighted = (
            np.mean([getattr(each, field) for each in of], axis=(0, 2))
            for field in ("prescribed", "reweighted")
        )
        less = paired(reweighted, prescribed)
        ours = (
            f"{shown(*less, 3, sign=True)} ({show(reweighted, 2, 1)} and {show(prescribed, 2, 1)})"
        )
        statement = f"{problem}: the uniform target is less noisy than weights 1/(N b_i)"
        found.append(Claim("beyond", statement, "", ours, holds(*less, prescribed.size), note))
    return found


def halves(result: Result) -> list[Halves]:
    """Return how much less noisy than plain SGD unbiased updates are, mean over kernels and steps.

    With the kernel's b and with its b alone the weights are 1/(N b_i); with a uniform b there are
    none.
    """
    found = []
    for problem in dict.fromkeys(each.problem for each in result.outcomes):
        of = [each for each in result.outcomes if each.problem == problem]
        less = [
            100 - 100 * np.mean([getattr(each, field) for each in of], axis=(0, 2))
            for field in ("same_b", "reweighted", "prescribed")
        ]
        what = f"{problem}: less gradient variance, unbiased, % of plain SGD's"
        found.append(Halves("beyond", what, np.zeros(result.config.seeds), *less))
    return found


def _reasons(result: Result) -> list[Claim]:
    """Return how well the measured reasons tell the ratio, in every seed."""
    ratio, seen, likeness, strength = (
        np.array([getattr(each, field) for each in result.outcomes])
        for field in ("prescribed", "seen", "likeness", "strength")
    )
    told = {
        "what the kernel sees (R² on k eigenvectors) times its strength": 1 - seen * strength,
        "the likeness of gradients that exclude each other, times strength": 1
        - likeness * strength,
    }
    found = []
    for name, values in told.items():
        correlation = np.array(
            [
                np.corrcoef(ratio[:, seed].ravel(), values[:, seed].ravel())[0, 1]
                for seed in range(ratio.shape[1])
            ]
        )
        ours = (
            f"correlation {show(correlation, 3, 1)}, mean error {np.abs(ratio - values).mean():.3f}"
        )
        verdict = holds(float(correlation.mean()) - 0.9, margin(correlation), correlation.size)
        statement = f"the ratio correlates above 0.9 with one minus {name}"
        found.append(Claim("beyond", statement, "", ours, verdict))
    return found


def _gathered(result: Result, field: str) -> FloatArray:
    return np.concatenate([getattr(each, field).ravel() for each in result.outcomes])
