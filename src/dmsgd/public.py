"""The names users type, each imported from where it lives."""

from dmsgd.designs import (
    DPP,
    KDPP,
    Design,
    PoissonDisk,
    Stratified,
    SwapChain,
    Uniform,
    clustered,
    correlation,
    diversify,
    suggest_scale,
    suggest_w,
    unbiased_weights,
)
from dmsgd.errors import KernelWarning, RankError, SamplingError, TargetError
from dmsgd.features import anneal, concat, normalize, one_hot
from dmsgd.kernels import RBF, Kernel, Linear, Precomputed, identity, median_scale, strata
from dmsgd.prescription import density_target, prescribe
from dmsgd.schedules import Schedule, presample
from dmsgd.spectra import Spectrum, coreset, exact, nystrom, pivoted_cholesky

__all__ = [
    "DPP",
    "KDPP",
    "RBF",
    "Design",
    "Kernel",
    "KernelWarning",
    "Linear",
    "PoissonDisk",
    "Precomputed",
    "RankError",
    "SamplingError",
    "Schedule",
    "Spectrum",
    "Stratified",
    "SwapChain",
    "TargetError",
    "Uniform",
    "anneal",
    "clustered",
    "concat",
    "coreset",
    "correlation",
    "density_target",
    "diversify",
    "exact",
    "identity",
    "median_scale",
    "normalize",
    "nystrom",
    "one_hot",
    "pivoted_cholesky",
    "presample",
    "prescribe",
    "strata",
    "suggest_scale",
    "suggest_w",
    "unbiased_weights",
]
