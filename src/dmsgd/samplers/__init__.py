"""Samplers of k-DPPs, for `KDPP(spectrum, k, sampler=...)`."""

from dmsgd.samplers.protocol import PreparedSampler, Sampler
from dmsgd.samplers.reference import reference
from dmsgd.samplers.rejection import rejection

__all__ = ["PreparedSampler", "Sampler", "reference", "rejection"]
