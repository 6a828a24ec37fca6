"""Kernels: how similar items are."""

from dmsgd.kernels.kernel import Kernel, as_kernel
from dmsgd.kernels.linear import Linear, identity, strata
from dmsgd.kernels.precomputed import Precomputed
from dmsgd.kernels.product import Product
from dmsgd.kernels.rbf import RBF, median_scale

__all__ = [
    "RBF",
    "Kernel",
    "Linear",
    "Precomputed",
    "Product",
    "as_kernel",
    "identity",
    "median_scale",
    "strata",
]
