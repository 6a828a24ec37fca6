"""Samplers of k-DPPs, for `KDPP(spectrum, k, sampler=...)`."""

from dmsgd.samplers.contract import PreparedSampler, Sampler
from dmsgd.samplers.plain import reference
from dmsgd.samplers.rejection_sampling import rejection

__all__ = ["PreparedSampler", "Sampler", "reference", "rejection"]
