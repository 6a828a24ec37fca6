"""Samplers: how a k-DPP is drawn. Pass one to `KDPP(spectrum, k, sampler=...)`."""

from dmsgd.samplers.protocol import Draw, Sampler
from dmsgd.samplers.reference import reference
from dmsgd.samplers.rejection import rejection

__all__ = ["Draw", "Sampler", "reference", "rejection"]
