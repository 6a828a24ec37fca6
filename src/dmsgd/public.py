"""The names users type, each imported from where it lives."""

from dmsgd.designs import (
    DPP,
    KDPP,
    Design,
    Stratified,
    Uniform,
    clustered,
    correlation,
    diversify,
    unbiased_weights,
)
from dmsgd.errors import RankError, SamplingError
from dmsgd.features import anneal, concat, normalize, one_hot
from dmsgd.kernels import RBF, Kernel, Linear, Precomputed, identity, median_scale, strata
from dmsgd.spectra import Spectrum, exact

__all__ = [
    "DPP",
    "KDPP",
    "RBF",
    "Design",
    "Kernel",
    "Linear",
    "Precomputed",
    "RankError",
    "SamplingError",
    "Spectrum",
    "Stratified",
    "Uniform",
    "anneal",
    "clustered",
    "concat",
    "correlation",
    "diversify",
    "exact",
    "identity",
    "median_scale",
    "normalize",
    "one_hot",
    "strata",
    "unbiased_weights",
]
