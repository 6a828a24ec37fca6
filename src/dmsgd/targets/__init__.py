"""Targets: choose how often each item is drawn, by the closest k-DPP with these probabilities."""

from dmsgd.targets.prescription import prescribe

__all__ = ["prescribe"]
