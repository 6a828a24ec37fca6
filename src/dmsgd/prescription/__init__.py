"""Choose how often each item is seen: the k-DPP closest to a given one with prescribed b_i.

targets       what is asked for: b*, one number per item
marginals     b(θ) of the law tilted by θ, the map that is inverted
fixed_point   the inversion
feasibility   why a target cannot be reached, in words
tilt          `prescribe`, which puts these together
"""

from dmsgd.prescription.targets import density_target, named_target
from dmsgd.prescription.tilt import prescribe, tilted

__all__ = ["density_target", "named_target", "prescribe", "tilted"]
