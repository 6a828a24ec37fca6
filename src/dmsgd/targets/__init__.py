"""Targets: choose how often each item is drawn, by the closest k-DPP with these probabilities."""

from dmsgd.targets.named import density
from dmsgd.targets.named import named_target as named_target
from dmsgd.targets.prescription import prescribe

__all__ = ["density", "prescribe"]
