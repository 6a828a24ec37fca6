"""What a design does, before anything is trained.

    comparison = dmsgd.diagnostics.compare(X, k=64, labels=y)   # several designs, side by side
    print(dmsgd.diagnostics.recommend(comparison).reason)
    dmsgd.diagnostics.gradient_variance(design, gradients)      # exact, with baselines

Functions named estimate_... work from draws and return their standard error.
"""

from dmsgd.diagnostics.compare import compare
from dmsgd.diagnostics.frequency import (
    check_schedule,
    class_shares,
    correlation,
    coverage,
    effective_batch,
    effective_items,
    estimate_inclusion,
    evenness,
    suggest_w,
)
from dmsgd.diagnostics.gradients import gradient_variance
from dmsgd.diagnostics.recommend import recommend
from dmsgd.diagnostics.similarity import estimate_repulsion, estimate_similarity

__all__ = [
    "check_schedule",
    "class_shares",
    "compare",
    "correlation",
    "coverage",
    "effective_batch",
    "effective_items",
    "estimate_inclusion",
    "estimate_repulsion",
    "estimate_similarity",
    "evenness",
    "gradient_variance",
    "recommend",
    "suggest_w",
]
