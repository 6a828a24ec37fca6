"""Kernels: how similar items are, and their spectra, exact or approximate."""

from dmsgd.kernels.contract import Kernel, exact
from dmsgd.kernels.feature_kernels import RBF, Linear, with_quality
from dmsgd.kernels.landmarks import coreset, nystrom
from dmsgd.kernels.pivoted_cholesky import pivoted_cholesky
from dmsgd.kernels.precomputed import Precomputed

__all__ = [
    "RBF", "Kernel", "Linear", "Precomputed", "coreset", "exact", "nystrom", "pivoted_cholesky",
    "with_quality",
]  # fmt: skip
