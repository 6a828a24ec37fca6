"""What is in the data and what a design does, before anything is trained.

    found = dmsgd.diagnostics.inspect(X, k=64, labels=y)      # which batches to use, and why
    print(found)
    dmsgd.diagnostics.gradient_variance(design, gradients)    # exact, with baselines

`estimate_inclusion` counts draws; all else is exact, or comes with its standard error.
"""

from dmsgd.diagnostics.frequency import (
    check_schedule,
    class_shares,
    correlation,
    coverage,
    effective_batch,
    estimate_inclusion,
    evenness,
)  # fmt: skip
from dmsgd.diagnostics.gradients import gradient_variance
from dmsgd.diagnostics.inspection import Inspection
from dmsgd.diagnostics.study import inspect

__all__ = [
    "Inspection", "check_schedule", "class_shares", "correlation", "coverage", "effective_batch",
    "estimate_inclusion", "evenness", "gradient_variance", "inspect",
]  # fmt: skip
