"""Kernels: how similar items are, and their spectra, exact or approximate."""

from dmsgd.kernels.composed import Product
from dmsgd.kernels.coreset import coreset
from dmsgd.kernels.kernel import Kernel, as_kernel, exact
from dmsgd.kernels.linear import Linear, identity, strata
from dmsgd.kernels.nystrom import nystrom
from dmsgd.kernels.pivoted_cholesky import pivoted_cholesky
from dmsgd.kernels.precomputed import Precomputed
from dmsgd.kernels.rbf import RBF, median_scale

__all__ = [
    "RBF",
    "Kernel",
    "Linear",
    "Precomputed",
    "Product",
    "as_kernel",
    "coreset",
    "exact",
    "identity",
    "median_scale",
    "nystrom",
    "pivoted_cholesky",
    "strata",
]
