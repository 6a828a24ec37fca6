"""Spectra: the eigenvalues and eigenvectors of a kernel that every design is built on."""

from dmsgd.spectra.eigenpairs import Spectrum

__all__ = ["Spectrum"]
