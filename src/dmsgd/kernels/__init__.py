"""Kernels: how similar items are."""

from dmsgd.kernels.kernel import Kernel, as_kernel
from dmsgd.kernels.linear import Linear, identity, strata
from dmsgd.kernels.precomputed import Precomputed
from dmsgd.kernels.rbf import RBF, median_scale

__all__ = [
    "RBF",
    "Kernel",
    "Linear",
    "Precomputed",
    "as_kernel",
    "identity",
    "median_scale",
    "strata",
]
