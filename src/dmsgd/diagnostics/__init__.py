"""What is in the data and what a design does, before anything is trained.

    found = dmsgd.diagnostics.inspect(X, k=64, labels=y)      # which batches to use, and why
    print(found)
    dmsgd.diagnostics.gradient_variance(design, gradients)    # exact, with baselines

All is exact, or comes with its standard error.
"""

from dmsgd.diagnostics.inspection import Inspection
from dmsgd.diagnostics.measures import class_shares, gradient_variance
from dmsgd.diagnostics.study import inspect

__all__ = ["Inspection", "class_shares", "gradient_variance", "inspect"]
