"""What a design does, before anything is trained: functions of a design, in closed form.

    dmsgd.diagnostics.class_shares(design, y)          # who is in a batch
    dmsgd.diagnostics.coverage(design, steps=100)      # how much of the data has been seen
    dmsgd.diagnostics.room(design)                     # rank and effective rank against k
    dmsgd.diagnostics.gradient_variance(design, g)     # the two terms of the paper's theorem

A function whose result comes from draws is called estimate_..., and says how far off it may be.
"""

from dmsgd.diagnostics.advice import Advice, advise
from dmsgd.diagnostics.concerns import concerns
from dmsgd.diagnostics.diversity import (
    LogDeterminant,
    Room,
    estimate_log_determinant,
    estimate_repulsion,
    estimate_similarity,
    mean_similarity,
    room,
)
from dmsgd.diagnostics.estimates import Estimate
from dmsgd.diagnostics.examination import Examination, examine
from dmsgd.diagnostics.exposure import coverage, effective_batch, effective_items, neglected
from dmsgd.diagnostics.frequency import (
    class_shares,
    correlation,
    estimate_inclusion,
    evenness,
    suggest_w,
)
from dmsgd.diagnostics.gradients import item_gradients
from dmsgd.diagnostics.observed import Observed, observed_inclusion
from dmsgd.diagnostics.prospects import Price, Prospect
from dmsgd.diagnostics.variance import GradientVariance, estimate_variance, gradient_variance

__all__ = [
    "Advice",
    "Estimate",
    "Examination",
    "GradientVariance",
    "LogDeterminant",
    "Observed",
    "Price",
    "Prospect",
    "Room",
    "advise",
    "class_shares",
    "concerns",
    "correlation",
    "coverage",
    "effective_batch",
    "effective_items",
    "estimate_inclusion",
    "estimate_log_determinant",
    "estimate_repulsion",
    "estimate_similarity",
    "estimate_variance",
    "evenness",
    "examine",
    "gradient_variance",
    "item_gradients",
    "mean_similarity",
    "neglected",
    "observed_inclusion",
    "room",
    "suggest_w",
]
