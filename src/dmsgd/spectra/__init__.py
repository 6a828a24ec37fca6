"""Spectra: the eigenvalues and eigenvectors of a kernel that every design is built on."""

from dmsgd.spectra.cholesky import pivoted_cholesky
from dmsgd.spectra.coreset import coreset
from dmsgd.spectra.exact import exact
from dmsgd.spectra.nystrom import nystrom
from dmsgd.spectra.spectrum import Spectrum
from dmsgd.spectra.strength import effective_rank, repulsion

__all__ = [
    "Spectrum",
    "coreset",
    "effective_rank",
    "exact",
    "nystrom",
    "pivoted_cholesky",
    "repulsion",
]
