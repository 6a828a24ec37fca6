"""Estimators for scikit-learn: one that learns from diverse batches, one that selects rows."""

from dmsgd.inputs.messages import require

require("sklearn", "dmsgd.sklearn")

from dmsgd.sklearn.diversified import Diversified
from dmsgd.sklearn.selector import DiverseSelector

__all__ = ["DiverseSelector", "Diversified"]
