"""The Nyström approximation of a kernel from a few landmark items (Affandi et al. 2013)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from dmsgd.kernels import RBF, Kernel
from dmsgd.memory import reserve
from dmsgd.seeding import Seed
from dmsgd.spectra.eigen import DEFAULT_TOL
from dmsgd.spectra.factor import of_factor
from dmsgd.spectra.landmarks import choose_landmarks
from dmsgd.spectra.spectrum import Spectrum
from dmsgd.spectra.streamed_nystrom import of_landmarks
from dmsgd.streams.rows import Rows


def nystrom(kernel: Kernel, landmarks: Any, how: str = "uniform", seed: Seed = 0) -> Spectrum:
    """Return the spectrum of L̂ = C W⁺ Cᵀ, with its relative trace error.

    landmarks: how many items, or their numbers; C holds their columns of L, W their block.
    how:       "uniform" at random, or "kmeans": the items nearest to k-means centres.

    N·m kernel entries and O(N m²) operations for m landmarks. The result is exact for L̂ <= L.
    For an RBF kernel over features in blocks, C is made block by block and never kept.
    """
    items = choose_landmarks(kernel, landmarks, how, seed)
    values, vectors = linalg.eigh(kernel.block(items, items), check_finite=False)
    kept = values > DEFAULT_TOL * values[-1]
    if isinstance(kernel, RBF) and isinstance(kernel.features, Rows):
        whitening = vectors[:, kept] / np.sqrt(values[kept])
        return of_landmarks(kernel, items, whitening, f"Nyström, {items.size} landmarks ({how})")
    reserve(2 * kernel.n * items.size, "the columns of the landmarks", "use fewer landmarks")
    F = kernel.columns(items) @ (vectors[:, kept] / np.sqrt(values[kept]))
    trace = kernel.diag().sum()
    left = max(trace - np.einsum("ij,ij->", F, F), 0.0) / trace
    return of_factor(kernel, F, f"Nyström, {items.size} landmarks ({how})", float(left))
