"""Kernels: how similar items are, and their spectra, exact or approximate."""

from dmsgd.kernels.contract import Kernel, exact
from dmsgd.kernels.contract import as_kernel as as_kernel
from dmsgd.kernels.landmarks import coreset, nystrom
from dmsgd.kernels.linear import Linear, Product
from dmsgd.kernels.pivoted_cholesky import pivoted_cholesky
from dmsgd.kernels.precomputed import Precomputed
from dmsgd.kernels.quality import with_quality
from dmsgd.kernels.rbf import RBF, median_scale

__all__ = [
    "RBF",
    "Kernel",
    "Linear",
    "Precomputed",
    "Product",
    "coreset",
    "exact",
    "median_scale",
    "nystrom",
    "pivoted_cholesky",
    "with_quality",
]
