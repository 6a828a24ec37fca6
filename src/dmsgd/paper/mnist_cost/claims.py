"""Table 5 beside ours."""

from __future__ import annotations

import numpy as np

from dmsgd.paper.intervals import holds, margin, show
from dmsgd.paper.mnist_cost.result import PAPER, Result
from dmsgd.paper.protocol import CHEAP, Claim


def claims(result: Result) -> list[Claim]:
    """Return both rows of the table, and what sampling costs as a share of a step."""
    found = []
    for number, k in enumerate(result.config.ks):
        sample, step = result.sample[number], float(np.median(result.step[number]))
        share = 100 * sample / step
        theirs = PAPER.get(k)
        paper = f"{theirs[0]} / {theirs[1]} = {theirs[0] / theirs[1]:.0%}" if theirs else ""
        found.append(
            Claim(
                "Table 5",
                f"a batch costs less than {CHEAP:g} % of a CNN step, k = {k}",
                paper,
                f"{sample.mean():.5f} / {step:.3f} = {show(share, 2, 1.0)} %",
                holds(CHEAP - float(share.mean()), margin(share), share.size),
                "CPU seconds on one thread for both, of the median step; the bound is ours; a "
                "GPU would shorten the step and not the draw",
            )
        )
    tables = ", ".join(f"{seconds:.2f}" for seconds in result.tables)
    setup = (
        f"{result.setup:.0f} s once, leaving out {result.trace_error:.1%} of the kernel's trace; "
        f"then {tables} s for the tables of each k"
    )
    return [*found, Claim("beyond", "set-up of the RBF kernel's factor", "", setup)]
